"""A search whose rounds are full of candidates that try to stop it: it ends as any search does, each has its verdict."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from ridgeline import SearchOptions, SearchResult, run_search
from ridgeline.checkpoints.archive import Archive
from ridgeline.graph.models.requests import IdeationRequest, KernelRequest, Reply
from ridgeline.graph.search.events import OnEvent
from ridgeline.problems.spec import ProblemSpec, load_problem
from ridgeline.tools.records.results import Evaluation
from ridgeline.tools.records.vocabulary import Origin, ReasonCode, Status
from tests.eager_engine import EagerOnlyEngine
from tests.live_processes import processes_naming

from . import modules, native
from .stopper import CHEATS, Stopper

pytestmark = [pytest.mark.sandboxed, pytest.mark.slow, pytest.mark.timeout(1200)]

CALL_TIMEOUT_S = 10.0
COMPILER_S = 5
"""Of a compiler's processor time: what spins in one takes that long."""
MIB = 1 << 20
MOST_KEPT_BYTES = 100 * MIB
"""Of a run folder and a cache together; one library of a stopper may have 64 MiB."""


class Script:
    """A model whose ideas are the candidates of a round, in order; it counts the kernels that it was asked for."""

    name = "script"

    def __init__(self, rounds: Sequence[Sequence[Stopper]]) -> None:
        self._rounds = rounds
        self._sources = {
            _idea(number, place)["title"]: each.source
            for number, candidates in enumerate(rounds, 1)
            for place, each in enumerate(candidates)
        }
        self.written = 0

    async def propose(self, request: IdeationRequest) -> Reply:
        ideas = [_idea(request.round, place) for place in range(len(self._rounds[request.round - 1]))]
        return Reply(text=json.dumps({"ideas": ideas}))

    async def write(self, request: KernelRequest) -> Reply:
        self.written += 1
        return Reply(text=json.dumps({"source": self._sources[request.idea.title]}))


def _idea(round_: int, place: int) -> dict[str, str]:
    """Return an idea that shares no word with another."""
    word = f"idea{round_}of{place}"
    mechanism = " ".join(f"{word}{letter}" for letter in "bcd")
    return {"title": f"{word} {word}a", "mechanism": mechanism, "category": "memory_access"}


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield a folder that has the search's cache and all of its temporary files."""
    with tempfile.TemporaryDirectory(prefix="ridgeline-stoppers-", dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)  # confined code may become another user
        for variable, place in {"TMPDIR": "tmp", "RIDGELINE_CACHE_DIR": "cache", "RIDGELINE_HOME": "home"}.items():
            (folder / place).mkdir()
            (folder / place).chmod(0o755)
            monkeypatch.setenv(variable, str(folder / place))
        monkeypatch.setattr(tempfile, "tempdir", None)
        monkeypatch.setattr("ridgeline.tools.build.interfaces.C_CPU_S", COMPILER_S)
        yield folder


def _problem(folder: Path, interface: str, rounds: Sequence[Sequence[Stopper]]) -> ProblemSpec:
    """Return the cheats' problem, one kernel for each idea and no repair."""
    search = {"rounds": len(rounds), "ideas": max(map(len, rounds)), "implementations": 1, "repairs": 0}
    search |= {"tune_trials": 0, "floor_margin": None, "stall_rounds": None}
    data = {"name": "stopped", "reference": "reference.py", "interface": interface, "search": search}
    folder.mkdir()
    (folder / "reference.py").write_text((CHEATS / "reference.py").read_text())
    (folder / "problem.yaml").write_text(json.dumps(data | {"call_timeout_s": CALL_TIMEOUT_S}))
    return load_problem(folder / "problem.yaml")


ROUNDS = {
    "c": (
        (native.honest(1), *native.COMPILED, native.honest(2)),
        (*native.LOADED, native.honest(3)),
        (native.honest(4),),
    ),
    "module": ((modules.honest(1), *modules.FILES, modules.honest(2)), (modules.honest(3),)),
}


@pytest.mark.parametrize("interface", ROUNDS)
async def test_search_full_of_stoppers_ends_with_a_verdict_for_each_and_nothing_left_to_do(
    folder: Path, interface: str
) -> None:
    rounds = ROUNDS[interface]
    options = {"problem": _problem(folder / "problem", interface, rounds), "run_dir": folder / "run"}
    model = Script(rounds)
    result = await _searched(SearchOptions(**options), model)
    assert result.state == "no_gain"
    with Archive.open_read_only(folder / "run") as archive:
        found = {(c.round, c.id): archive.evaluation(c.id) for c in archive.candidates(origin=Origin.MODEL)}
        assert archive.engine_failures() == []
    asked = [each for round_ in rounds for each in round_]
    assert len(found) == len(asked) == model.written

    wrong = list(_wrong(rounds, found))
    assert not wrong, "\n".join(wrong)
    _assert_nothing_is_left(folder)

    again, events = Script(rounds), list[dict[str, Any]]()
    resumed = await _searched(SearchOptions(**options, resume=True), again, events.append)
    assert (resumed.state, resumed.best_id, again.written) == (result.state, result.best_id, 0)
    assert events == []


async def _searched(options: SearchOptions, model: Script, on_event: OnEvent | None = None) -> SearchResult:
    engine = EagerOnlyEngine()
    try:
        return await run_search(options, engine=engine, models=[model], on_event=on_event)
    finally:
        await engine.aclose()


def _wrong(rounds: Sequence[Sequence[Stopper]], found: dict[tuple[int, str], Evaluation | None]) -> Iterator[str]:
    """Yield a line for each candidate that did not end as it has to."""
    for number, candidates in enumerate(rounds, 1):
        for place, each in enumerate(candidates):
            evaluation = found.get((number, f"r{number}i{place}v0a0"))
            if evaluation is None:
                yield f"{each.name}: no evaluation"
            elif evaluation.reason_code not in each.codes or not evaluation.reason.isprintable():
                yield f"{each.name}: {evaluation.status} {evaluation.reason_code}: {evaluation.reason[:300]!r}"
            elif evaluation.status is not Status.OK and not evaluation.reason:
                yield f"{each.name}: no reason"
            elif ReasonCode.NONE in each.codes and evaluation.status is Status.OK and evaluation.timing is None:
                yield f"{each.name}: not timed"


def _assert_nothing_is_left(folder: Path) -> None:
    assert list((folder / "cache" / "tmp").iterdir()) == []
    assert list((folder / "tmp").iterdir()) == []
    kept = sum(path.lstat().st_blocks * 512 for name in ("run", "cache") for path in (folder / name).rglob("*"))
    assert kept < MOST_KEPT_BYTES, f"{kept >> 20} MiB"
    assert processes_naming(str(folder)) == []
