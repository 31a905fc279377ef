"""A verification by a judge that grades as a test says, of a runner that answers at once."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from tests.descriptions import description_of
from tests.tools.measure.answering import Answering

from ridgeline.tools.judge.messages import Examine, ExamineRepeat, Poison, Prepare
from ridgeline.tools.judge.replies import Different, Done, Element, Graded, Same
from ridgeline.tools.measure.verify import Verification
from ridgeline.tools.records.error_map import LimitUse, Measure
from ridgeline.tools.records.results import Trial, Verdict
from ridgeline.tools.records.vocabulary import PrecisionClass
from ridgeline.tools.runner.deadline import Deadline

TRIALS = ("nominal_0", "nominal_1", "shifted")


class JudgeByFactor(Answering):
    """Grades `shifted` by the factors given, one for each secret; other trials lie at a tenth of their limits."""

    def __init__(self, factors: Sequence[float], *, difference: float = 0.0, trials: Sequence[str] = TRIALS) -> None:
        super().__init__(n_sets=2)
        self.problem = SimpleNamespace(
            trials=tuple(trials), n_sets=2, description=description_of(), degenerate=None, scalars={}
        )
        self.factors = factors
        self.difference = difference  # between two runs, over the gate
        self.draw = 0

    def redraw(self) -> None:
        self.draw += 1

    def prepare(self, _request: Prepare) -> Done:
        return Done()

    def poison(self, _request: Poison) -> Done:
        return Done()

    def detect_change(self, _request: Any) -> Any:
        return SimpleNamespace(changed=False)

    def examine(self, request: Examine) -> Graded:
        factor = self.factors[min(self.draw, len(self.factors) - 1)] if request.trial == "shifted" else 0.1
        use = LimitUse(measure=Measure.ROW, figure=factor * 4e-5, limit=4e-5)
        trial = Trial(name=request.trial, rel_error=1e-6, gate=1e-5, passed=use.is_within, nearest=use)
        worst = None if use.is_within else Element(index=(0,), got=1.0, expected=2.0)
        return Graded(trial=trial, measured=PrecisionClass.FP32 if use.is_within else None, output="out", worst=worst)

    def examine_repeat(self, request: ExamineRepeat) -> Same | Different:
        if not self.difference:
            return Same()
        graded = self.examine(Examine(trial=request.trial, set_index=request.set_index))
        return Different(difference=self.difference * 1e-5, graded=graded)


@dataclass
class IdleRunner:
    """Answers at once; the process it names is the test's own, which has no new threads."""

    pid: int = os.getpid()
    calls: int = 0
    call_s: float = 1e-4  # that it says a call took
    deadline: Deadline = field(default_factory=lambda: Deadline(1.0, "verification", further_s=3.0))

    def run(self, _set_index: int) -> Any:
        self.calls += 1
        return SimpleNamespace(parent_s=self.call_s)

    def expect_silence(self) -> None: ...

    def set_scalars(self, _values: Sequence[float]) -> None: ...

    def cont(self) -> None: ...

    def stop(self) -> None: ...


def judged(
    judge: JudgeByFactor, *, extra_trials: int = 0, own_secrets: int = 0, idle: IdleRunner | None = None
) -> Verdict:
    runner: Any = idle or IdleRunner()
    process: Any = judge
    return Verification(process, runner, PrecisionClass.FP32).run(extra_trials, own_secrets)
