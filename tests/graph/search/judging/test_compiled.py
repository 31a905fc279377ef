"""When PyTorch's compiled configurations are timed: while models think or after the last kernel, before a certificate."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.graph.conftest import Search, write_problem
from tests.graph.mailbox_agent import drop_answers
from tests.graph.memory_engine import DESCRIPTION, EAGER_MS, MemoryEngine
from tests.graph.scripted_model import ScriptedModel

from ridgeline import SearchOptions, run_search
from ridgeline.graph.models.mailbox.model import LaterModel
from ridgeline.graph.search.running import pauses
from ridgeline.problems.spec import Budget
from ridgeline.tools.engine import BaselineTask, CompileTask, NextBaselineTask, PyTorchTask, Task
from ridgeline.tools.errors import EngineError, NotBegun
from ridgeline.tools.records.problem import Description
from ridgeline.tools.records.vocabulary import Purpose

COMPILED = ["compile", "compile_max_autotune"]


class OneDevice(MemoryEngine):
    """A device that measures one thing at a time and writes down in which order; the mode `endless` never ends."""

    pytorch_ms: ClassVar = {"eager": EAGER_MS, "compile": 0.8 * EAGER_MS, "compile_max_autotune": 0.75 * EAGER_MS}

    def __init__(self, endless: str = "", log: Path | None = None) -> None:
        super().__init__()
        self.order: list[str] = []
        self.waiting = 0
        self._endless, self._turn, self._order_log = endless, asyncio.Lock(), log

    async def submit(self, task: Task[Any]) -> Any:
        if isinstance(task, CompileTask):
            return await super().submit(task)
        self.waiting += 1
        async with self._turn:
            self.waiting -= 1
            self._note(f"begin {_name(task)}")
            if isinstance(task, NextBaselineTask) and task.purpose is not Purpose.CERTIFY:
                await self.spend()
                if _name(task) == self._endless:
                    await asyncio.Event().wait()
            answer = await super().submit(task)
            self.order.append(_name(task))
            self._note(f"end {_name(task)}")
            return answer

    async def spend(self) -> None:
        """Take the time that a compiled mode takes."""

    def _note(self, line: str) -> None:
        if self._order_log is not None:
            with self._order_log.open("a") as file:
                file.write(f"{line}\n")


def options(tmp_path: Path, *, resume: bool = False) -> SearchOptions:
    settings = {"rounds": 1, "ideas": 2, "implementations": 1, "tune_trials": 0, "floor_margin": None}
    problem = write_problem(tmp_path / "problem", search=settings)
    return SearchOptions(problem=problem, run_dir=tmp_path / "run", resume=resume)


def _name(task: Task[Any]) -> str:
    if isinstance(task, PyTorchTask):
        mode = task.after.pending[0] if isinstance(task, NextBaselineTask) else "eager"
        return f"{mode} again" if task.purpose is Purpose.CERTIFY else mode
    kind, candidate = type(task).__name__.removesuffix("Task"), getattr(task, "candidate", None)
    return f"{kind} {candidate.id} {getattr(task, 'purpose', '')}" if candidate else kind


def searched(order: list[str]) -> list[int]:
    """Return the places of the search's own timings of what a model wrote."""
    return [n for n, name in enumerate(order) if name.startswith("Benchmark r") and name.endswith(Purpose.SEARCH)]


def certified(order: list[str]) -> list[int]:
    """Return the places of what a certificate measures."""
    return [n for n, name in enumerate(order) if name.endswith((Purpose.CERTIFY, " again"))]


@pytest.fixture
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pauses, "QUIET_S", 0.5)


class UntilAKernelWaits(OneDevice):
    """A device whose first mode ends when a kernel is ready for it."""

    async def spend(self) -> None:
        until = time.monotonic() + 30
        while "compile" not in self.order and not self.waiting and time.monotonic() < until:
            await asyncio.sleep(0.01)


@pytest.mark.usefixtures("short_pauses")
async def test_kernels_come_before_modes_that_are_not_begun_and_the_round_s_end_waits_for_those(search: Search) -> None:
    search.engine = engine = UntilAKernelWaits()
    search.model = ScriptedModel(delay_s=0.5)
    output = await search.run(search.context(rounds=2))
    order = engine.order
    assert [name for name in order if name in COMPILED] == COMPILED
    assert order.index("compile") < searched(order)[0] < order.index("compile_max_autotune")
    assert next(n for n in searched(order) if " r2" in order[n]) > order.index("compile_max_autotune")
    assert certified(order)[0] > order.index("compile_max_autotune")
    assert output["certified"]
    told = [list(event["baselines_ms"]) for event in search.events_named("baseline")]
    assert told == [["eager"], ["eager", *COMPILED]]
    assert search.events_named("timing_pytorch")[0]["pending"] == ["compile_max_autotune"]


async def test_each_mode_is_told_before_it_is_timed_where_the_search_waits_for_it(search: Search) -> None:
    search.engine = OneDevice()
    await search.run(search.context(rounds=1, ideas=1, implementations=1, budget=Budget(wall_s=1e6)))
    assert [event["pending"] for event in search.events_named("timing_pytorch")] == [COMPILED, COMPILED[1:]]


WITHOUT_ROOM = "PyTorch's torch.compile is not timed: InductorError: no space left on device"


class FullDisk(OneDevice):
    """A device beside whose temporary folder there is no room for inductor."""

    async def submit(self, task: Task[Any]) -> Any:
        answer = await super().submit(task)
        if isinstance(task, NextBaselineTask):
            failed = {"median_ms": None, "error": "compile: InductorError: no space left on device"}
            entries = [dataclasses.replace(e, **failed) if e.name == "compile" else e for e in answer.entries]
            return dataclasses.replace(answer, entries=tuple(entries))
        return answer


async def test_no_mode_is_told_that_a_stop_leaves_out(search: Search) -> None:
    search.engine = engine = OneDevice()
    context = search.context(rounds=1, ideas=1, implementations=1, budget=Budget(wall_s=1e6))
    context.is_stopping = lambda: "compile" in engine.order
    with pytest.raises(NotBegun):
        await search.run(context)
    assert [event["pending"] for event in search.events_named("timing_pytorch")] == [COMPILED]


async def test_why_pytorch_s_compiled_configuration_has_no_time_is_a_warning(search: Search) -> None:
    search.engine = FullDisk()
    await search.run(search.context(rounds=1, ideas=1, implementations=1, budget=Budget(wall_s=1e6)))
    warned = [event["message"] for event in search.events_named("warning")]
    assert warned == [WITHOUT_ROOM]


class BreaksThen(FullDisk):
    """… and whose next mode ends with the engine `times` times, each after the call of `then`."""

    def __init__(self, times: int, then: Callable[[], object]) -> None:
        super().__init__()
        self.left, self._then = times, then

    async def spend(self) -> None:
        if self.left and "compile" in self.order:
            self.left -= 1
            self._then()
            raise EngineError("the judge died")


@pytest.mark.parametrize("breaks", [0, 1])
async def test_a_configuration_without_a_time_is_warned_of_once_by_a_search_that_parks(
    tmp_path: Path, breaks: int
) -> None:
    """Where the engine breaks an answer comes, so that the search goes on and parks a second time."""
    asked, told = dataclasses.replace(options(tmp_path), park=True), list[Any]()
    engine = BreaksThen(breaks, lambda: drop_answers(tmp_path / "run"))
    result = await run_search(asked, engine=engine, models=[LaterModel(name="mailbox")], on_event=told.append)
    assert (result.state, result.waiting) == ("waiting", 1 + breaks)
    assert [name for name in engine.order if name in COMPILED] == COMPILED
    assert [event["message"] for event in told if event["event"] == "warning"] == [WITHOUT_ROOM]
    timed = [list(event["baselines_ms"]) for event in told if event["event"] == "baseline"]
    assert timed == [["eager"], *[["eager", "compile"]] * breaks, ["eager", *COMPILED]]


async def test_first_round_s_models_are_told_of_eager_alone_and_later_ones_of_all(search: Search) -> None:
    search.engine = OneDevice()
    await search.run(search.context(rounds=2))
    shown = {request.round: [entry.name for entry in request.baselines.entries] for request in search.model.proposals}
    assert shown == {1: ["eager"], 2: ["eager", *COMPILED]}


async def test_gains_over_pytorch_s_best_are_added_once_that_is_known(search: Search) -> None:
    search.engine = OneDevice()
    await search.run(search.context(rounds=1, ideas=1, implementations=1))
    for evaluation in search.archive.evaluations(purpose=Purpose.SEARCH):
        assert evaluation.speedup_vs_best == pytest.approx(0.75 * (evaluation.speedup or 0.0))


class SlowClock(OneDevice):
    """A device on which each compiled mode takes a minute by the search's clock."""

    context: Any = None

    def _describe(self, _: Any) -> Description:
        return dataclasses.replace(DESCRIPTION, reference_graph=None)  # the seed kernel keeps an offline search going

    async def spend(self) -> None:
        self.context.working.started_s -= 60.0


@pytest.mark.parametrize(("name", "wall_s"), [("scripted", 30.0), ("offline", 30.0), ("offline", None)])
async def test_a_short_wall_budget_is_spent_on_kernels_and_the_certificate_waits(
    search: Search, name: str, wall_s: float | None
) -> None:
    search.engine = engine = SlowClock()
    search.model = ScriptedModel(name)
    engine.context = search.context(rounds=2, budget=Budget(wall_s=wall_s))
    output = await search.run(engine.context)
    assert (output["outcome"], output["round"], output["certified"]) == ("finished", 2, True)
    order = engine.order
    assert len(searched(order)) == 8
    assert searched(order)[-1] < order.index("compile") < order.index("compile_max_autotune") < certified(order)[0]
    assert [name for name in order if name in COMPILED] == COMPILED


class SlowSetUp(SlowClock):
    """A device on which eager PyTorch takes an hour by the search's clock, and each step of a certificate."""

    async def submit(self, task: Any) -> Any:
        if isinstance(task, BaselineTask) or getattr(task, "purpose", None) is Purpose.CERTIFY:
            self.context.working.started_s -= 3600.0
        return await super().submit(task)


async def test_a_limit_on_time_counts_from_the_first_ideas_and_without_the_certificate(search: Search) -> None:
    search.engine = engine = SlowSetUp()
    engine.context = context = search.context(rounds=2, budget=Budget(wall_s=30.0))
    output = await search.run(context)
    assert (output["outcome"], output["round"], output["certified"]) == ("finished", 2, True)
    assert context.finding_s < 30.0 < 2 * 3600.0 < context.wall_s
    run = search.archive.run()
    assert run.finding_s is not None and run.wall_s is not None and run.finding_s < 30.0 < run.wall_s


async def test_no_compiled_mode_is_timed_where_no_kernel_was_right(search: Search) -> None:
    search.engine = engine = SlowClock()
    search.model = ScriptedModel(kernel=lambda r: {"source": f"// {r.idea.title}\n// fails verify\n"})
    engine.context = context = search.context(rounds=1, ideas=1, implementations=1, budget=Budget(wall_s=30.0))
    (context.problem.path.parent / "seeds" / "naive.cpp").write_text("// fails verify\n")
    output = await search.run(context)
    assert (output["outcome"], output["best_id"]) == ("no_gain", None)
    assert not [name for name in engine.order if name in COMPILED]


async def test_search_ends_after_a_round_when_a_compiled_mode_is_at_the_floor(search: Search) -> None:
    search.engine = engine = OneDevice()
    engine.floor_ms = 7.2
    output = await search.run(search.context(rounds=5))
    assert (output["outcome"], output["round"]) == ("at_floor", 1)
