"""A search killed at many random instants: what was stored is never asked for or measured again."""

from __future__ import annotations

import hashlib
import itertools
import json
import random
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest
from tests.graph.conftest import write_problem
from tests.graph.loopback import Answer, Server, serve
from tests.graph.session.test_killed import reply_to, search
from tests.graph.session.test_session import SETTINGS
from tests.warm_python import WarmProgram

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.calls.journal import Journal
from ridgeline.checkpoints.calls.kept_texts import KeptTexts

pytestmark = pytest.mark.long

STEPS = ("VerifyTask", "BenchmarkTask")
ROUNDS, IDEAS, IMPLEMENTATIONS = 12, 2, 2
LIFE_S = 0.4
"""Longest life after a session's first request; a round takes about 0.3 s."""


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("kills", "rng_seed"), [(5, 20), *(pytest.param(15, rng_seed, marks=pytest.mark.slow) for rng_seed in range(7))]
)
def test_what_was_stored_at_a_kill_is_never_asked_for_or_measured_again(
    kills: int, rng_seed: int, tmp_path: Path
) -> None:
    shape = {"rounds": ROUNDS, "ideas": IDEAS, "implementations": IMPLEMENTATIONS}
    write_problem(tmp_path / "problem", search=SETTINGS | shape)
    instants, lives, made = random.Random(rng_seed), random.Random(rng_seed + 100), 0
    paid: dict[str, int] = {}  # how often a prompt whose answer is stored was sent by then
    judged: Counter[tuple[str, str]] = Counter()
    with serve(lambda n, request: Answer(reply_to(request), delay_s=instants.uniform(0.01, 0.05))) as server:
        for kill in itertools.count():
            if kill >= kills and paid:  # on a busy machine the first lives end before an answer is stored
                break
            process = search(tmp_path, server.url, "resume" if kill else "new")
            if _killed(process, server, lives.uniform(0, LIFE_S) * max(1, kill - kills)):
                break
            made += 1
            for prompt in _paid_prompts(tmp_path / "run"):
                paid.setdefault(prompt, _times_asked(server)[prompt])
            for key, times in _measured(tmp_path).items():
                judged.setdefault(key, times)
        assert search(tmp_path, server.url, "resume", stdout=subprocess.DEVNULL).wait(timeout=120) == 0
        seen = _times_asked(server)
    print(
        f"{made} kills, {len(server.requests)} requests, {len(paid)} answers and {len(judged)} steps stored at a kill"
    )
    assert made >= kills - 5, "the search ended before it was killed often"
    assert paid
    assert {prompt: seen[prompt] for prompt in paid} == paid
    finished = _measured(tmp_path)
    assert {key: finished[key] for key in judged} == judged
    with Archive.open(tmp_path / "run", create=False) as archive:
        totals = Journal(archive).totals()
    assert totals.calls == ROUNDS * (1 + IDEAS * IMPLEMENTATIONS)
    assert (totals.in_flight, totals.failed) == (0, 0)
    assert len(server.requests) - totals.calls <= totals.repeated <= made * IDEAS * IMPLEMENTATIONS


def _killed(process: WarmProgram, server: Server, life_s: float) -> bool:
    """Kill a session some time after its first request; say whether it had ended by itself."""
    before = len(server.requests)
    while len(server.requests) == before and process.poll() is None:
        time.sleep(0.001)
    time.sleep(life_s)
    process.send_signal(signal.SIGKILL)
    return process.wait() == 0


def _paid_prompts(run_dir: Path) -> set[str]:
    """Return the prompts' hashes of calls whose reply, or whose answer as it arrived, is stored."""
    with Archive.open(run_dir, create=False) as archive:
        calls, texts = Journal(archive).calls(), KeptTexts(archive)
        return {c.prompt_sha256 for c in calls if c.state == "finished" or texts.unread_answer(c.call_id)}


def _measured(folder: Path) -> Counter[tuple[str, str]]:
    """Return how often each candidate with a stored evaluation was verified and timed.

    A diagnosis is a step of its own, which a kill may cut short after the evaluation is stored.
    """
    with Archive.open(folder / "run", create=False) as archive:
        ended = {e.candidate_id for e in archive.evaluations()}
    lines = [json.loads(line) for line in (folder / "engine.log").read_text().splitlines()]
    found = [(e["task"], e["candidate"]) for e in lines if e["purpose"] == "search" and e["task"] in STEPS]
    return Counter(key for key in found if key[1] in ended)


def _times_asked(server: Server) -> Counter[str]:
    """Return how often each prompt, by its hash, reached the server."""
    return Counter(hashlib.sha256(request["prompt"].encode()).hexdigest() for request in server.requests)
