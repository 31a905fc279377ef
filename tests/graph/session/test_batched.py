"""A search whose model is asked through batches, in processes of its own at a loopback provider: killed, moved, resumed."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.graph.conftest import write_problem
from tests.graph.loopback import Answer
from tests.graph.loopback_batches import BatchServer, Held, serve_batches
from tests.graph.memory_engine import MemoryEngine
from tests.graph.programs import started
from tests.graph.session.test_killed import reply_to
from tests.graph.session.test_session import SETTINGS, options
from tests.warm_python import WarmProgram

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.calls.journal import Journal
from ridgeline.graph.models.registry import make_model
from ridgeline.graph.session.session import run_search
from ridgeline.tools.records.vocabulary import Origin

pytestmark = pytest.mark.long

PROVIDERS = ["openai", "google_genai"]
CHILD = """
import asyncio, sys
from pathlib import Path
from ridgeline import SearchOptions, run_search
from ridgeline.graph.models.batch import batches
from ridgeline.graph.cli.summary import closing_lines
from ridgeline.graph.models.registry import make_model
from ridgeline.graph.models.retry import RetryPolicy
from ridgeline.problems.model_calls import PriceSettings
from ridgeline.problems.spec import load_problem
from tests.graph.memory_engine import MemoryEngine

batches.LIMIT_S, batches.SEEN_AFTER_S = 5.0, 1.0  # a batch that was never made is given up 6 s after a kill
batches.GATHER_S = 2.0
folder, run, name, park = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4] == "park"
problem = load_problem(folder / "problem" / "problem.yaml")
prices = {name.partition("@")[0]: PriceSettings(input=1.0, output=10.0)}
model = make_model(name, prices=prices, policy=RetryPolicy(attempts=3, base_s=0.05, cap_s=0.2))
options = SearchOptions(problem=problem, run_dir=run, resume=(run / "archive.sqlite").exists(), park=park)
engine = MemoryEngine(delay_s=0.02, log=folder / "engine.log")
result = asyncio.run(run_search(options, engine=engine, models=[model]))
print(result.state, result.waiting, result.batched)
print(closing_lines(result)[-1])
"""


class Searcher:
    """Starts a search in processes of its own, each with a HOME of its own."""

    def __init__(self, folder: Path, server: BatchServer, provider: str, **search: Any) -> None:
        self.folder, self.run = folder, folder / "run"
        self.name = f"{provider}:loop@{server.url}{'/v1' if provider == 'openai' else ''}?batch"
        self.homes = 0
        write_problem(folder / "problem", search=SETTINGS | search)

    @contextmanager
    def started(self, how: str = "park") -> Iterator[WarmProgram]:
        self.homes += 1
        home = self.folder / f"home{self.homes}"
        home.mkdir()
        words = (self.folder, self.run, self.name, how)
        with started(CHILD, *words, stdout=subprocess.PIPE, HOME=str(home)) as process:
            yield process

    def to_its_end(self, how: str = "park") -> list[str]:
        with self.started(how) as process:
            out, _ = process.communicate(timeout=120)
        assert process.returncode == 0
        return out.splitlines()

    def killed(self, server: BatchServer, wanted: int) -> None:
        """Let the provider kill the search while it answers that it has made the `wanted`-th batch."""
        with self.started() as process:

            def kill(batch: Held) -> None:
                if len(server.batches) == wanted:
                    process.send_signal(signal.SIGKILL)
                    process.wait()

            server.on_created = kill
            assert process.wait(timeout=60) == -signal.SIGKILL
            server.on_created = lambda batch: None


def script(number: int, line: dict[str, Any]) -> Answer:
    return Answer(reply_to(line), input_tokens=1000, output_tokens=200)


@pytest.mark.thorough
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_search_killed_before_it_stores_a_batchs_id_pays_no_request_twice_and_goes_on_elsewhere(
    provider: str, tmp_path: Path
) -> None:
    with serve_batches(script) as server:
        search = Searcher(tmp_path, server, provider, rounds=1, ideas=6)
        search.killed(server, 1)
        assert server.asked == ["r1:ideate:0"]
        search.killed(server, 2)
        assert len(server.asked) == 13, "a round's 12 kernels are one batch"
        server.looks_needed = 99
        assert search.to_its_end()[0] == "waiting 12 12"
        moved = tmp_path / "elsewhere" / "moved"
        shutil.copytree(search.run, moved)
        shutil.rmtree(search.run)
        search.run = moved
        server.looks_needed = 1
        assert search.to_its_end()[0] == "finished 0 0"
    assert len(set(server.asked)) == len(server.asked) == 13
    with Archive.open(moved, create=False) as archive:
        totals = Journal(archive).totals()
        written = archive.candidates(origin=Origin.MODEL)
        assert all(archive.evaluation(candidate.id) is not None for candidate in written)
    assert (len(written), totals.calls, totals.repeated, totals.in_flight) == (12, 13, 0, 0)
    assert totals.usd == pytest.approx(13 * (1000 * 1.0 + 200 * 10.0) / 1e6 / 2)


def test_a_search_that_waits_alive_asks_each_round_in_two_batches(tmp_path: Path) -> None:
    with serve_batches(script) as server:
        search = Searcher(tmp_path, server, "openai", rounds=2)
        assert search.to_its_end("alive")[0] == "finished 0 0"
    assert [len(batch.lines) for batch in server.batches] == [1, 4, 1, 4]
    report = json.loads((search.run / "result.json").read_text())
    assert report["usd"] == pytest.approx(10 * (1000 * 1.0 + 200 * 10.0) / 1e6 / 2)


def test_a_parked_search_says_in_one_line_what_it_waits_for(tmp_path: Path) -> None:
    with serve_batches(script) as server:
        server.looks_needed = 99
        search = Searcher(tmp_path, server, "openai", rounds=1)
        ended, parked = search.to_its_end()
    assert ended == "waiting 1 1"
    assert parked.startswith("parked:  1 request waiting in a batch at the provider; go on: ")
    assert parked.endswith(f"--resume {search.run} --park")
    assert not (search.run / "mailbox").exists() or not list((search.run / "mailbox").iterdir())


async def test_a_batch_is_made_before_pytorchs_compiled_modes_are_timed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-key")
    pending: list[Sequence[str]] = []

    def note(batch: Held) -> None:
        with Archive.open_read_only(tmp_path / "run") as archive:
            baselines = archive.baselines()
        pending.append(baselines.pending if baselines else ())

    with serve_batches(script) as server:
        server.on_created, server.looks_needed = note, 99
        model = make_model(f"openai:loop@{server.url}/v1?batch")
        result = await run_search(options(tmp_path, park=True), engine=MemoryEngine(delay_s=0.5), models=[model])
    assert (result.state, result.batched) == ("waiting", 1)
    assert len(pending) == 1 and pending[0], "the provider works while the device is measured"
    with Archive.open_read_only(tmp_path / "run") as archive:
        baselines = archive.baselines()
    assert baselines is not None and not baselines.pending


@pytest.mark.thorough
def test_searches_killed_at_any_instant_around_a_batch_ask_nothing_twice(tmp_path: Path) -> None:
    with serve_batches(script) as server:
        search = Searcher(tmp_path, server, "openai", rounds=2)
        for kill in range(4):
            _killed_after(search, server, exchanges=len(server.seen) + 1 + kill)
        until = time.monotonic() + 200
        while not search.to_its_end()[0].startswith("finished"):
            assert time.monotonic() < until
    assert len(set(server.asked)) == len(server.asked) == 10
    with Archive.open(search.run, create=False) as archive:
        assert Journal(archive).totals().repeated == 0


def _killed_after(search: Searcher, server: BatchServer, exchanges: int) -> None:
    """Kill a session as soon as the provider has seen so many exchanges, or when it has parked by itself."""
    with search.started() as process:
        _wait(lambda: process.poll() is not None or len(server.seen) >= exchanges)
        process.send_signal(signal.SIGKILL)


def _wait(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not is_so() and time.monotonic() < until:
        time.sleep(0.001)
