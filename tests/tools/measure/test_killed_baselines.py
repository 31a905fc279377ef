"""A mode whose judge died, or whose compiler was killed, is tried once more, and no failure of PyTorch's then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ridgeline.tools.errors import EngineError, JudgeDied, NoRoomError, RidgelineError, TrustedProcessLost
from ridgeline.tools.measure.baselines import measure_next
from ridgeline.tools.records.baselines import Baseline, Baselines, Floor
from ridgeline.tools.records.problem import DescribedTarget
from ridgeline.tools.records.reference_mode import ReferenceMode
from ridgeline.tools.records.vocabulary import PrecisionClass

EAGER = Baseline(name=ReferenceMode.EAGER, precision_class=PrecisionClass.FP32, median_ms=1.0)
COMPILED = replace(EAGER, name=ReferenceMode.COMPILE, median_ms=0.5)
DIED = JudgeDied("the judge died during prepare_mode (killed by signal 9)")
KILLS: list[RidgelineError] = [
    DIED,
    NoRoomError("reference.py: memory ran out"),
    EngineError(
        "compile: InductorError: CppCompileError: C++ compile error g++: fatal error: Killed signal terminated "
        "program cc1plus compilation terminated.",
        was_killed=True,
    ),
]
FAILURES: list[RidgelineError] = [
    EngineError("compile: InductorError: CppCompileError: C++ compile error kernel.cpp:3:1: error: expected ';'"),
    EngineError("compile: InductorError: of these words alone nothing follows: `ptxas` failed with error code -9"),
    TrustedProcessLost("the judge did not answer prepare_mode within 300 s"),
]


class Judge:
    """A judge that is not asked."""

    def close(self) -> None:
        """Nothing runs."""


@pytest.fixture
def measure(
    make_problem: Callable[..., DescribedTarget], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[Baseline, int]]:
    """Return what times the mode where its tries end so, in order, and says how many were made."""
    problem = make_problem()
    floor = Floor(floor_ms=0.1, compute_floor_ms=0.0, bound="memory", bandwidth_gbps=1.0, gflops=1.0)
    pending = Baselines(device=problem.device, entries=(EAGER,), floor=floor, pending=(ReferenceMode.COMPILE,))

    def make(*ends: RidgelineError | Baseline) -> tuple[Baseline, int]:
        left: Iterator[RidgelineError | Baseline] = iter(ends)
        tries = 0

        def tried(*_: Any) -> Baseline:
            nonlocal tries
            tries += 1
            end = next(left)
            if isinstance(end, RidgelineError):
                raise end
            return end

        monkeypatch.setattr("ridgeline.tools.measure.baselines._time_mode", tried)
        found = measure_next(problem, pending, start_judge=Judge, cache_dir=tmp_path)  # type: ignore[arg-type]
        return found.entries[-1], tries

    return make


@pytest.mark.parametrize("kill", KILLS, ids=str)
def test_a_mode_that_was_killed_once_is_timed_by_another_judge(measure: Any, kill: RidgelineError) -> None:
    assert measure(kill, COMPILED) == (COMPILED, 2)


@pytest.mark.parametrize("kill", KILLS, ids=str)
def test_a_mode_that_was_killed_twice_has_failed_and_is_kept_on_no_disk(measure: Any, kill: RidgelineError) -> None:
    entry, tries = measure(kill, kill)
    assert (entry.median_ms, entry.error, entry.was_killed, tries) == (None, str(kill), True, 2)
    assert measure(COMPILED) == (COMPILED, 1)


@pytest.mark.parametrize("failure", FAILURES, ids=str)
def test_a_failure_of_pytorch_is_tried_once_and_kept(measure: Any, failure: RidgelineError) -> None:
    entry, tries = measure(failure)
    assert (entry.error, entry.was_killed, tries) == (str(failure), False, 1)
    assert measure(COMPILED) == (entry, 0)


def test_a_failure_of_pytorch_after_a_kill_is_its_own(measure: Any) -> None:
    entry, tries = measure(DIED, FAILURES[0])
    assert (entry.was_killed, tries) == (False, 2)
    assert measure(COMPILED) == (entry, 0)
