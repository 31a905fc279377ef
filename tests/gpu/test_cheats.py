"""Every cheat of interface c on CUDA: the table of tests/cheats tells how the judge must end it, beside an honest kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from ridgeline.tools.records.problem import DescribedTarget
from ridgeline.tools.records.results import Build, Timing, Verdict
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import Status

from ..cheats.catalogue import cases  # noqa: TID252  tests are no installed package
from ..cheats.court import gains_nothing  # noqa: TID252  as above
from ..cheats.trick import Case, Form, Stage  # noqa: TID252
from . import waves
from .affine import REFERENCE
from .bench import report

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

HALF_AS_LARGE = REFERENCE.replace("32768", "16384")
SOURCE = (Path(__file__).parent / "sources" / "cheats.cu").read_text()
CASES = cases(Form.CUDA)
JUDGED = [case for case in CASES if case.end.control in ("", "itself")]
GAINLESS = [case for case in CASES if case not in JUDGED]


class Court:
    """Judges the cheats by name; an honest kernel's timing serves every cheat beside it.

    A cheat with a file of its own has a problem by the first word of its name; all others are one file's.
    """

    def __init__(self, bench) -> None:
        self.bench = bench
        self.problems = {
            word: bench.problem(waves.reference_of(word), name=word)
            for word in waves.SHAPES
            if any(case.name.startswith(word) for case in CASES)
        }
        self.cheated = bench.problem(HALF_AS_LARGE, name="cheated")
        self.built: dict[str, tuple[Candidate, Build]] = {}
        for problem in (*self.problems.values(), self.cheated):
            sources = {case.name: _source(case.name) for case in CASES if self.problem_of(case.name) is problem}
            self.built |= bench.build(problem, sources)
        self.timings: dict[str, Build | Verdict | Timing] = {}

    def problem_of(self, name: str) -> DescribedTarget:
        return self.problems.get(name.partition("_")[0], self.cheated)

    def judge(self, name: str, stage: Stage) -> Build | Verdict | Timing:
        outcome = self.bench.judge(self.problem_of(name), *self.built[name], timed=stage is Stage.TIME)
        slowdown = outcome.timing.renewal_slowdown if outcome.timing else None
        speedup = outcome.timing.speedup if outcome.timing else None
        report("cheats", cheat=name, said=outcome.said(), speedup=speedup, renewal_slowdown=slowdown)
        return outcome.last

    def timed(self, name: str, *, again: bool = False) -> Build | Verdict | Timing:
        if again or name not in self.timings:
            self.timings[name] = self.judge(name, Stage.TIME)
        return self.timings[name]


def _source(name: str) -> str:
    if name in waves.names():
        return waves.source_of(name)
    return SOURCE.replace("#define CHEAT 0", f"#define CHEAT {name}", 1)


@pytest.fixture(scope="module")
def court(bench) -> Court:
    return Court(bench)


@pytest.mark.parametrize("case", JUDGED, ids=lambda c: c.name)
def test_judge_gives_the_right_reason(court: Court, case: Case) -> None:
    found = court.timed(case.name) if case.end.control else court.judge(case.name, case.end.stage)
    assert case.is_end(found), found
    assert case.end.is_ok or found.reason


@pytest.mark.parametrize("case", GAINLESS, ids=lambda c: c.name)
def test_cheat_within_the_rules_of_the_clock_gains_nothing(court: Court, case: Case) -> None:
    gain = gains_nothing(court.timed, case.name, case.end.control, margin=1.05)
    assert gain is None, gain


def test_an_honest_kernel_still_passes_after_all_of_them(court: Court) -> None:
    found = court.timed("HONEST", again=True)
    assert isinstance(found, Timing) and found.status is Status.OK, found
    assert found.renewal_slowdown is not None and found.renewal_slowdown < 1.2
