"""The steps of one measurement: which build they take, and what an engine that fails costs."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

import pytest
from langgraph.graph import START, StateGraph
from tests.graph.conftest import Search
from tests.graph.memory_engine import MemoryEngine
from tests.graph.scripted_model import ScriptedModel

from ridgeline.graph.search.ideas.earnings import author_outcomes, writer_outcomes
from ridgeline.graph.search.ideas.memory import tried_ideas
from ridgeline.graph.search.judging.judging import failure_text, retry_engine_failures, run_step
from ridgeline.tools.errors import EngineError, MachineBusyError, StorageError
from ridgeline.tools.records.error_map import LimitUse, Measure
from ridgeline.tools.records.results import Build, Evaluation, Trial, Verdict
from ridgeline.tools.records.vocabulary import Purpose, ReasonCode, Status


async def in_a_node(function: Any, *given: Any) -> Any:
    """Return what `function` returns inside a graph's node: the tool node works nowhere else."""
    found = []

    async def node(_: Any) -> dict[str, Any]:
        found.append(await function(*given))
        return {}

    graph = StateGraph(dict)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    await graph.compile().ainvoke({})
    return found[0]


class FailsOnce(MemoryEngine):
    """An engine that breaks at the first verification of each kernel."""

    def _verify(self, task: Any) -> Any:
        if self.counts[f"VerifyTask:{task.candidate.id}"] == 1:
            raise EngineError("the judge died")
        return super()._verify(task)


async def test_engine_failure_is_no_verdict_on_an_idea_and_is_measured_again_in_the_next_session(
    search: Search,
) -> None:
    search.engine = FailsOnce()
    await search.run(search.context(rounds=1, ideas=2, implementations=1))
    assert tried_ideas(search.archive) == ()
    assert author_outcomes(search.archive, 2) == writer_outcomes(search.archive, 2) == []
    assert search.archive.evaluation("r1i0v0a0") is None
    failed = {failure.candidate_id for failure in search.archive.engine_failures()}
    assert failed == {"seed-naive", "r1i0v0a0", "r1i1v0a0"}
    await in_a_node(retry_engine_failures, search.context())
    assert search.archive.engine_failures() == []
    evaluation = search.archive.evaluation("r1i0v0a0")
    assert evaluation is not None and evaluation.status is Status.OK
    assert [idea.id for idea in tried_ideas(search.archive)] == ["r1i0", "r1i1"]
    assert len(author_outcomes(search.archive, 2)) == len(writer_outcomes(search.archive, 2)) == 2
    assert search.archive.ledger_totals()["cpu_s"] >= evaluation.total_s * 3


async def test_engine_that_fails_is_not_tried_again_in_the_same_session(search: Search) -> None:
    search.model = ScriptedModel(kernel=lambda r: {"source": "// crashes VerifyTask\n// speed 2.0\n"})
    await search.run(search.context(rounds=2, ideas=1, implementations=1))
    assert search.engine.counts["VerifyTask:r1i0v0a0"] == 1
    assert [f.candidate_id for f in search.archive.engine_failures()] == ["r1i0v0a0", "r2i0v0a0"]


async def test_a_machine_too_busy_to_time_a_kernel_is_told_as_that(search: Search) -> None:
    class Busy(MemoryEngine):
        def _benchmark(self, task: Any) -> Any:
            raise MachineBusyError("the machine is too busy to time this kernel")

    search.engine = Busy()
    await search.run(search.context(rounds=1, ideas=1, implementations=1))
    reason = "no verdict, the kernel may be sound: the machine is too busy to time this kernel"
    assert {failure.reason for failure in search.archive.engine_failures()} == {reason}


async def test_build_is_the_one_of_the_step_at_hand(search: Search) -> None:
    """Between two steps the compiler changes, so that the second one makes another build."""
    context = search.context(rounds=1, ideas=1, implementations=1)
    await search.run(context)
    candidate = search.archive.candidate("seed-naive")
    evaluations = []
    for compiler in ("old", "new"):

        class Engine(MemoryEngine):
            def _compile(self, task: Any, compiler: str = compiler) -> Any:
                return dataclasses.replace(super()._compile(task), key=f"{compiler}-{task.candidate.id}")

        search.engine = Engine()
        context = search.context()
        step = "compile" if compiler == "old" else "benchmark"
        evaluations.append(await in_a_node(run_step, context, step, candidate.id, Purpose.EVALUATE))
    assert evaluations[0] is None
    assert isinstance(evaluations[1], Evaluation) and evaluations[1].build is not None
    assert evaluations[1].build.key == "new-seed-naive"


class Ending(MemoryEngine):
    """An engine that one kernel ends while the others are being verified; as LocalEngine does, it then refuses all."""

    def __init__(self) -> None:
        super().__init__()
        self.ended = asyncio.Event()

    async def submit(self, task: Any) -> Any:
        if type(task).__name__ == "VerifyTask":
            if "speed 9" in task.candidate.source:
                raise StorageError("the disk is full")
            await self.ended.wait()
            raise EngineError("the engine is closed")
        return await super().submit(task)


async def test_kernels_beside_one_that_ends_the_search_are_not_stored_as_the_engines_failure(search: Search) -> None:
    search.engine = Ending()
    context = search.context(rounds=1, ideas=1, implementations=1)
    (context.problem.path.parent / "seeds" / "ends.cpp").write_text("// speed 9\n")
    with pytest.raises(StorageError):
        await search.run(context)
    search.engine.ended.set()
    await asyncio.sleep(0.05)
    assert search.archive.evaluations() == [] == search.archive.engine_failures()


def test_a_repair_is_told_the_whole_error_map_and_no_more_than_fits() -> None:
    reason = "shifted: values of out differ; 3.1 % are wrong, at the last 3 of 767 on axis 1; a scale?"
    nearest = LimitUse(measure=Measure.ROW, figure=3e-4, limit=4e-5)
    trials = tuple(Trial(name=f"trial_{n}", rel_error=1.0, gate=0.1, passed=False, nearest=nearest) for n in range(99))
    code = ReasonCode.WRONG_VALUES
    verdict = Verdict(status=Status.WRONG, reason_code=code, reason=reason, trials=trials)
    evaluation = Evaluation(
        key="k", candidate_id="c", purpose=Purpose.SEARCH, status=Status.WRONG, reason_code=code, reason=reason,
        verdict=verdict,
    )  # fmt: skip
    text = failure_text(evaluation)
    assert reason in text and "a row's error 0.0003, gate 4e-05 (7.5 x)" in text
    assert "and 87 further trials" in text and len(text) < 2000
    endless = dataclasses.replace(evaluation, reason="x" * 10**6)
    assert len(failure_text(endless)) < 6000


def test_a_repair_is_told_the_first_of_a_compilers_messages() -> None:
    code = ReasonCode.COMPILER_FAILED
    log = "the first error\n" + "more\n" * 10_000
    build = Build(key="k", status=Status.COMPILE_ERROR, reason_code=code, log=log)
    evaluation = Evaluation(
        key="k", candidate_id="c", purpose=Purpose.SEARCH, status=Status.COMPILE_ERROR, reason_code=code,
        reason="no", build=build,
    )  # fmt: skip
    assert "the first error" in failure_text(evaluation) and len(failure_text(evaluation)) < 7000
