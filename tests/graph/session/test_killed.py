"""A search that is killed goes on: no reply is asked for twice, and nothing is measured twice."""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.graph.conftest import write_problem
from tests.graph.loopback import Answer, Server, serve
from tests.graph.programs import started
from tests.graph.session.test_session import SETTINGS
from tests.warm_python import WarmProgram

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.calls.journal import Journal
from ridgeline.tools.records.vocabulary import Origin

pytestmark = pytest.mark.long

CHILD = """
import asyncio, sys
from pathlib import Path
from ridgeline import SearchOptions, run_search
from ridgeline.graph.offline import OfflineModel
from ridgeline.graph.models.retry import RetryPolicy
from ridgeline.graph.models.registry import make_model
from ridgeline.problems.spec import load_problem
from tests.graph.memory_engine import MemoryEngine

folder, url, resume = Path(sys.argv[1]), sys.argv[2], sys.argv[3] == "resume"
problem = load_problem(folder / "problem" / "problem.yaml")
engine = MemoryEngine(delay_s=0.03, log=folder / "engine.log")
model = make_model("openai:loop@" + url + "/v1", policy=RetryPolicy(attempts=3, base_s=0.05))
options = SearchOptions(problem=problem, run_dir=folder / "run", resume=resume)
print(asyncio.run(run_search(options, engine=engine, models=[model])).state)
"""


def search(folder: Path, url: str, how: str, stdout: int | None = None) -> WarmProgram:
    """Begin a search whose model is at the server, or resume it, in a process of its own."""
    return started(CHILD, folder, url, how, stdout=stdout)


def reply_to(request: dict[str, Any]) -> str:
    """Answer a prompt: as many ideas as it asks for, or a kernel whose speed depends on the idea's words."""
    prompt = request["prompt"]
    if "Write one complete kernel" in prompt:
        title = prompt.split("## The idea\n\n**")[1].split("**")[0]
        return json.dumps({"source": f"// {title}\n// {len(prompt)}\n// speed 1.{30 + len(title) % 9}\n", "notes": ""})
    count = int(prompt.split("Propose ")[1].split()[0])
    round_ = prompt.split("This is round ")[1].split()[0]
    words = [f"{chr(97 + int(round_))}{chr(97 + n)}word" for n in range(count)]
    mechanisms = {w: f"{w}one {w}two {w}three" for w in words}
    ideas = [{"title": f"{w} {w}x", "mechanism": m, "category": "memory_access"} for w, m in mechanisms.items()]
    return json.dumps({"ideas": ideas})


def test_killed_search_resumes_with_no_reply_asked_twice_and_no_evaluation_run_twice(tmp_path: Path) -> None:
    write_problem(tmp_path / "problem", search=SETTINGS | {"rounds": 3})
    arrived: dict[str, int] = {}
    judged: set[tuple[str, str]] = set()

    with serve(lambda n, request: Answer(reply_to(request), delay_s=0.05)) as server:
        for kill, wanted in enumerate((4, 13)):
            process = search(tmp_path, server.url, "resume" if kill else "new")
            while len(server.requests) < wanted and process.poll() is None:
                time.sleep(0.005)
            process.send_signal(signal.SIGKILL)
            process.wait()
            prompts, evaluations = _finished(tmp_path / "run")
            seen = _times_asked(server)
            arrived |= {prompt: seen[prompt] for prompt in prompts if prompt not in arrived}
            judged |= evaluations
        said, _ = search(tmp_path, server.url, "resume", stdout=subprocess.PIPE).communicate(timeout=60)
    assert said.strip() == "finished"
    assert arrived and judged
    with Archive.open(tmp_path / "run", create=False) as archive:
        written = {c.id for c in archive.candidates(origin=Origin.MODEL)}
        totals = Journal(archive).totals()
    assert written == {f"r{r}i{i}v{v}a0" for r in (1, 2, 3) for i in (0, 1) for v in (0, 1)}
    assert totals.calls == 3 + 12, "three ideations and twelve kernels"
    assert {prompt: _times_asked(server)[prompt] for prompt in arrived} == arrived
    # at most what was in flight at the two kills is sent again: a round's four branches
    assert len(server.requests) - 15 <= totals.repeated <= 2 * 4
    lines = [json.loads(line) for line in (tmp_path / "engine.log").read_text().splitlines()]
    runs = Counter(
        (e["task"], e["candidate"]) for e in lines if e["purpose"] == "search" and e["task"] != "CompileTask"
    )
    assert {key: runs[key] for key in judged if runs[key] != 1} == {}


def _finished(run_dir: Path) -> tuple[set[str], set[tuple[str, str]]]:
    """Return the prompts' hashes of calls that have their reply, and the measurements of finished evaluations."""
    with Archive.open(run_dir, create=False) as archive:
        prompts = {call.prompt_sha256 for call in Journal(archive).calls("finished")}
        ids = [e.candidate_id for e in archive.evaluations() if e.candidate_id.startswith("r")]
    return prompts, {(task, candidate_id) for candidate_id in ids for task in ("VerifyTask", "BenchmarkTask")}


def _times_asked(server: Server) -> Counter[str]:
    """Return how often each prompt, by its hash, reached the server."""
    return Counter(hashlib.sha256(request["prompt"].encode()).hexdigest() for request in server.requests)
