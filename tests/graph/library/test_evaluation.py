"""What `evaluate` gives a program: a typed value of one kernel, a list of several, the JSON line of each."""

from __future__ import annotations

import dataclasses
import json
import pickle
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.graph.conftest import write_problem
from tests.graph.memory_engine import MemoryEngine

from ridgeline.checkpoints.result import read_schema
from ridgeline.graph.library.evaluation import Evaluation, aevaluate, wait_listener
from ridgeline.problems.spec import ProblemSpec
from ridgeline.tools.engine import BaselineTask, CompileTask, DescribeTask, Task
from ridgeline.tools.errors import EngineError, MachineBusyError
from ridgeline.tools.machine.waits import Wait
from ridgeline.tools.records.finding import Finding
from ridgeline.tools.records.results import Build
from ridgeline.tools.records.vocabulary import PrecisionClass, ReasonCode, Status

GOOD, BAD = "// speed 2.0\n", "// fails verify\n"


@pytest.fixture
def problem(tmp_path: Path) -> ProblemSpec:
    return write_problem(tmp_path / "problem")


async def test_one_file_gives_one_evaluation(problem: ProblemSpec, tmp_path: Path) -> None:
    file = tmp_path / "good.cpp"
    file.write_text(GOOD)
    for given in (file, str(file)):
        judged = await aevaluate(problem, given, engine=MemoryEngine())
        assert (judged.file, judged.status, judged.reason_code) == (str(file), Status.OK, ReasonCode.NONE)
        assert judged.is_ok and judged.reason == ""
        assert judged.speedup == 2.0 and judged.reference_ms == pytest.approx(2 * (judged.median_ms or 0))
        assert judged.speedup_ci95 is not None and judged.speedup_ci95[0] <= 2.0 <= judged.speedup_ci95[1]
        assert judged.precision_class is PrecisionClass.FP32


def test_a_wait_is_told_once_for_each_holder_and_that_it_is_over() -> None:
    lines: list[str] = []
    listener = wait_listener(lines.append)
    had = Wait(device="cpu", holder="", holders=0, is_news=True)
    for holder in ("pid 12 (a)", "pid 12 (a)", "pid 13 (b)"):
        listener(Wait(device="cpu", holder=holder, is_news=True))
    listener(had)
    listener(Wait(device="cpu", holder="pid 12 (a)", is_news=False))
    listener(had)
    listener(Wait(device="cpu", holder="pid 12 (a)", is_news=True))
    listener(None)  # given up, as by Ctrl-C
    a, b = (f"waiting for cpu: {holder} holds it" for holder in ("pid 12 (a)", "pid 13 (b)"))
    assert lines == [a, b, "cpu is free: going on", a]


async def test_a_text_with_a_line_break_is_a_source(problem: ProblemSpec) -> None:
    judged = await aevaluate(problem, BAD, engine=MemoryEngine())
    assert (judged.file, judged.status, judged.reason) == ("kernel.cpp", Status.WRONG, "row 3 differs")
    assert not judged.is_ok and (judged.speedup, judged.speedup_ci95, judged.median_ms) == (None, None, None)


async def test_a_list_gives_a_list_and_may_mix_sources_and_files(problem: ProblemSpec, tmp_path: Path) -> None:
    file = tmp_path / "file.cpp"
    file.write_text(GOOD)
    judged = await aevaluate(problem, [GOOD, file, BAD], engine=MemoryEngine())
    assert [each.file for each in judged] == ["kernel-1.cpp", str(file), "kernel-2.cpp"]
    assert [each.status for each in judged] == ["ok", "ok", "wrong"]
    assert await aevaluate(problem, [], engine=MemoryEngine()) == []


async def test_an_evaluation_has_the_line_of_the_contract_and_lets_nobody_change_it(problem: ProblemSpec) -> None:
    for source in (GOOD, BAD):
        judged = await aevaluate(problem, source, engine=MemoryEngine())
        line = json.loads(json.dumps(judged.to_dict()))
        jsonschema.validate(line, read_schema("evaluation"))
        assert line["status"] == judged.status and line["speedup"] == judged.speedup
        judged.to_dict()["labels"].append("mine")
        assert judged.to_dict() == line
        with pytest.raises(FrozenInstanceError):
            judged.status = Status.OK  # type: ignore[misc]


async def test_every_field_is_one_of_the_line(problem: ProblemSpec) -> None:
    judged = await aevaluate(problem, GOOD, engine=MemoryEngine())
    names = set(type(judged).__dataclass_fields__) - {"_line"}
    assert names <= set(judged.to_dict())


async def test_an_evaluation_can_be_pickled_hashed_and_turned_into_plain_data(problem: ProblemSpec) -> None:
    judged = await aevaluate(problem, GOOD, engine=MemoryEngine())
    again = pickle.loads(pickle.dumps(judged))
    assert again == judged and hash(again) == hash(judged) and again.to_dict() == judged.to_dict()
    assert dataclasses.asdict(judged)["speedup"] == 2.0
    line = judged.to_dict()
    kept = Evaluation.of_line(line)
    line["labels"].append("mine")
    assert kept.to_dict() == judged.to_dict()


async def test_every_kernel_has_an_id_of_its_own(problem: ProblemSpec, tmp_path: Path) -> None:
    files = [tmp_path / folder / "kernel.cpp" for folder in ("a", "b")] + [tmp_path / "kernel-2.cpp"]
    for file in files:
        file.parent.mkdir(exist_ok=True)
        file.write_text(BAD)
    engine = CompiledIds()
    judged = await aevaluate(problem, [GOOD, *files], engine=engine)
    assert [each.status for each in judged] == ["ok", "wrong", "wrong", "wrong"]
    assert engine.ids == ["file-kernel", "file-kernel-2", "file-kernel-3", "file-kernel-2-2"]


@pytest.mark.parametrize(
    ("reason", "errors", "told"),
    [
        ("kernel.cpp:3:13: error: 'inv' is not known", 1, "mine.cpp:3:13: error: 'inv' is not known"),
        ("kernel.cpp:3:13: error: no", 2, "mine.cpp:3:13: error: no; and 1 more error"),
        ("kernel.cpp:1:10: fatal error: a.h: no", 3, "mine.cpp:1:10: fatal error: a.h: no; and 2 more errors"),
        ("setmaxnreg, wgmma: these exist on sm_90a", 9, "setmaxnreg, wgmma: these exist on sm_90a"),
    ],
)
async def test_a_kernel_that_does_not_compile_is_told_its_first_error_and_how_many_more_there_are(
    problem: ProblemSpec, tmp_path: Path, reason: str, errors: int, told: str
) -> None:
    class Refusing(MemoryEngine):
        def _compile(self, task: CompileTask) -> Build:
            return Build.failed(Finding(code=ReasonCode.COMPILER_FAILED, reason=reason), key="k", errors=errors)

    file = tmp_path / "mine.cpp"
    file.write_text(BAD)
    judged = await aevaluate(problem, file, engine=Refusing())
    assert (judged.status, judged.reason) == (Status.COMPILE_ERROR, told)


async def test_pytorch_is_timed_before_the_first_right_kernel_and_never_for_a_wrong_one(problem: ProblemSpec) -> None:
    engine, timed_when_told = MemoryEngine(), []
    sources = [BAD, "// fails compile\n", GOOD, BAD, "// fails benchmark\n"]
    judged = await aevaluate(
        problem, sources, engine=engine, on_evaluation=lambda _: timed_when_told.append(engine.counts["BaselineTask"])
    )
    assert timed_when_told == [0, 0, 1, 1, 1]
    assert [each.status for each in judged] == ["wrong", "compile_error", "ok", "wrong", "untrusted"]
    assert [bool(each.to_dict()["baselines"]) for each in judged] == [False, False, True, False, True]
    assert {count for task, count in engine.counts.items() if task.startswith("Verify")} == {1}


@pytest.mark.parametrize("step", ["Compile", "Verify", "Benchmark"])
async def test_an_engine_that_fails_on_one_kernel_leaves_that_one_unjudged_and_judges_the_next(
    problem: ProblemSpec, step: str
) -> None:
    crash = f"// crashes {step}Task\n{GOOD}"
    judged = await aevaluate(problem, [crash, GOOD, crash + BAD], engine=MemoryEngine())
    assert [each.reason_code for each in judged] == ["engine_failed", "none", judged[2].reason_code]
    assert judged[0].status is Status.REFUSED
    assert judged[0].reason == "the engine failed, the kernel may be sound: the judge died"
    jsonschema.validate(judged[0].to_dict(), read_schema("evaluation"))
    assert bool(judged[0].to_dict()["baselines"]) is (step == "Benchmark")
    assert judged[2].status == ("wrong" if step == "Benchmark" else "refused")


async def test_a_busy_machine_is_not_called_a_failed_engine(problem: ProblemSpec) -> None:
    class Busy(MemoryEngine):
        def _benchmark(self, task: Any) -> Any:
            raise MachineBusyError("the machine is too busy to time this kernel")

    (judged,) = await aevaluate(problem, [GOOD], engine=Busy())
    reason = "no verdict, the kernel may be sound: the machine is too busy to time this kernel"
    assert (judged.reason_code, judged.reason) == ("engine_failed", reason)


async def test_a_judge_that_starts_no_more_ends_the_whole(problem: ProblemSpec) -> None:
    told: list[Evaluation] = []
    with pytest.raises(EngineError, match="the judge cannot start"):
        await aevaluate(problem, ["// crashes VerifyTask\n", GOOD], engine=LosesJudge(), on_evaluation=told.append)
    assert [each.reason_code for each in told] == ["engine_failed"]


async def test_an_engine_that_cannot_time_pytorch_ends_the_whole(problem: ProblemSpec) -> None:
    with pytest.raises(EngineError, match="no baselines"):
        await aevaluate(problem, [GOOD, BAD], engine=LosesJudge())


class LosesJudge(MemoryEngine):
    """Describes the problem once, and times no PyTorch."""

    async def submit(self, task: Task[Any]) -> Any:
        if isinstance(task, DescribeTask) and self.counts["DescribeTask"]:
            raise EngineError("the judge cannot start")
        if isinstance(task, BaselineTask):
            raise EngineError("no baselines")
        return await super().submit(task)


class CompiledIds(MemoryEngine):
    """Remembers what it compiled."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []

    async def submit(self, task: Task[Any]) -> Any:
        if isinstance(task, CompileTask):
            self.ids.append(task.candidate.id)
        return await super().submit(task)
