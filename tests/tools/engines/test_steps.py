"""Which steps a candidate takes, and the evaluation that they add up to."""

from __future__ import annotations

import pytest
from tests.candidates import candidate_of
from tests.graph.memory_engine import DESCRIPTION, MemoryEngine, target

from ridgeline.tools.engine import CompileTask
from ridgeline.tools.engines.steps import STEPS, Measured, Step, take_steps
from ridgeline.tools.records.keys import evaluation_key
from ridgeline.tools.records.results import Build, Timing, Verdict
from ridgeline.tools.records.vocabulary import Purpose, ReasonCode, Status

PROBLEM = target().described(DESCRIPTION)


async def taken(source: str, upto: Step = "benchmark") -> Measured:
    engine, candidate = MemoryEngine(), candidate_of(source)
    build = await engine.submit(CompileTask(problem=PROBLEM, candidate=candidate))
    return await take_steps(engine, PROBLEM, candidate, build, purpose=Purpose.EVALUATE, upto=upto)


@pytest.mark.parametrize("step", STEPS)
async def test_no_step_after_the_one_asked_for_is_taken(step: Step) -> None:
    measured = await taken("// speed 2\n", step)
    assert [measured.build is None, measured.verdict is None, measured.timing is None].count(False) == (
        STEPS.index(step) + 1
    )
    assert measured.is_over == (step == "benchmark")


@pytest.mark.parametrize(
    ("source", "status", "code"),
    [
        ("// fails compile\n", Status.COMPILE_ERROR, ReasonCode.COMPILER_FAILED),
        ("// fails verify\n", Status.WRONG, ReasonCode.WRONG_VALUES),
        ("// fails benchmark\n", Status.UNTRUSTED, ReasonCode.WITNESS_DISAGREES),
    ],
)
async def test_step_that_fails_is_the_last_and_gives_the_evaluation_its_status(
    source: str, status: Status, code: ReasonCode
) -> None:
    measured = await taken(source)
    evaluation = measured.evaluation(total_s=1.5)
    assert measured.is_over
    assert (evaluation.status, evaluation.reason_code, evaluation.total_s) == (status, code, 1.5)
    assert evaluation.key == evaluation_key(measured.build.key, PROBLEM, Purpose.EVALUATE)


def test_cached_build_took_no_time() -> None:
    ok = {"status": Status.OK}
    build, verdict, timing = (
        Build(key="b", build_s=2.0, **ok),
        Verdict(verify_s=3.0, **ok),
        Timing(median_ms=1.0, benchmark_s=5.0, **ok),
    )
    cached = Build(key="b", build_s=2.0, cached=True, **ok)
    of = {"candidate_id": "r1i0v0a0", "purpose": Purpose.SEARCH, "key": "k"}
    assert Measured(build=build, verdict=verdict, timing=timing, **of).steps_s == 10.0
    assert Measured(build=cached, verdict=verdict, **of).steps_s == 3.0
