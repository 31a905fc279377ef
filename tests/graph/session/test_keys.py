"""A key reaches its provider and nothing else: no file of the run, no log, no event, no output."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.graph.conftest import write_problem
from tests.graph.loopback import Answer, serve
from tests.graph.models.asked import KEY
from tests.graph.programs import ended
from tests.graph.session.test_killed import reply_to
from tests.graph.session.test_session import SETTINGS

CHILD = """
import asyncio, logging, sys
from pathlib import Path
from ridgeline import SearchOptions, run_search
from ridgeline.graph.models.registry import make_model
from ridgeline.graph.models.retry import RetryPolicy
from ridgeline.graph.session.options import SearchRequest
from ridgeline.graph.session.session import run_resolved
from ridgeline.problems.spec import load_problem
from tests.graph.memory_engine import MemoryEngine

logging.basicConfig(level=logging.DEBUG)
folder, name, url = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
problem = load_problem(folder / "problem" / "problem.yaml")
model = make_model(name, base_url=url, policy=RetryPolicy(attempts=2, base_s=0.01))
search = SearchRequest(problem=problem, run_dir=folder / "run").resolve(models=[model], is_local=False)
print(asyncio.run(run_resolved(search, on_event=print, engine=MemoryEngine())).state)
"""


@pytest.mark.parametrize("name", ["openai:loop", "google_genai:loop"])
def test_a_planted_key_is_found_nowhere_but_at_its_provider(name: str, tmp_path: Path) -> None:
    write_problem(tmp_path / "problem", search=SETTINGS | {"rounds": 2})

    def script(number: int, request: dict[str, object]) -> Answer:
        if number in (2, 4):
            return Answer(status=500 if number == 2 else 400, error=f"went wrong with {KEY}")
        if number == 3:
            return Answer(f"no kernel, only {KEY}")
        return Answer(reply_to(request))

    with serve(script) as server:
        url = f"{server.url}/v1" if name.startswith("openai") else server.url
        keys = {"OPENAI_API_KEY": KEY, "GOOGLE_API_KEY": KEY}
        _, output, errors = ended(CHILD, tmp_path, name, url, **keys)
    assert output.splitlines()[-1] == "finished", errors[-2000:]
    assert any(KEY in value for value in server.requests[0]["headers"].values())
    assert "[key]" in output + errors, "what the server said back was told, without the key"
    files = [path for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert {"archive.sqlite", "run.log", "result.json"} <= {path.name for path in files}
    for content in (output.encode(), errors.encode(), *(path.read_bytes() for path in files)):
        assert KEY.encode() not in content
