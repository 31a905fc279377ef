"""Results that contradict themselves are not made, and not read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ridgeline.tools.records.results import Build, Evaluation, StepResult, Timing, Verdict
from ridgeline.tools.records.vocabulary import Purpose, ReasonCode, Status

TIMING = Timing(status=Status.OK, median_ms=1.0, reference_ms=2.0, speedup=2.0)
OK: dict[str, StepResult] = {
    "build": Build(status=Status.OK, key="k"),
    "verdict": Verdict(status=Status.OK),
    "timing": TIMING,
    "evaluation": Evaluation(status=Status.OK, key="k", candidate_id="c", purpose=Purpose.SEARCH, timing=TIMING),
}


@pytest.mark.parametrize("result", OK.values(), ids=OK)
@pytest.mark.parametrize(
    ("contradiction", "says"),
    [
        ({"reason_code": ReasonCode.WRONG_VALUES}, "reason code wrong_values has status wrong, not ok"),
        ({"status": Status.WRONG}, "status wrong needs a reason code"),
        (
            {"status": Status.TIMEOUT, "reason_code": ReasonCode.WRONG_VALUES},
            "reason code wrong_values has status wrong, not timeout",
        ),
    ],
)
def test_a_status_is_that_of_its_code(result: StepResult, contradiction: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        replace(result, **contradiction)
    with pytest.raises(ValueError, match=says):
        type(result).from_json(result.to_json() | contradiction)


@pytest.mark.parametrize("figure", ["median_ms", "reference_ms", "speedup"])
def test_a_timing_that_failed_has_no_figures(figure: str) -> None:
    failed = Timing(status=Status.UNTRUSTED, reason_code=ReasonCode.NEW_THREAD)
    with pytest.raises(ValueError, match="a timing of status untrusted has figures"):
        replace(failed, **{figure: 1.0})


def test_a_timing_that_is_ok_has_a_median() -> None:
    with pytest.raises(ValueError, match="needs a median"):
        Timing(status=Status.OK)


def test_an_evaluation_that_contradicts_itself_is_told_by_its_candidate() -> None:
    with pytest.raises(ValueError, match="c: status ok needs a timing"):
        replace(OK["evaluation"], timing=None)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="c: status wrong needs a reason code"):
        replace(OK["evaluation"], status=Status.WRONG)


@pytest.mark.parametrize("result", OK.values(), ids=OK)
def test_a_result_comes_back_from_json(result: StepResult) -> None:
    assert type(result).from_json(result.to_json()) == result


def test_the_slowdown_of_renewals_is_a_field_and_lies_among_the_clocks_of_json() -> None:
    timing = replace(TIMING, clocks={"sm_mhz": 1980.0}, renewal_slowdown=1.02)
    told = timing.to_json()
    assert told["clocks"] == {"sm_mhz": 1980.0, "renewal_slowdown": 1.02}
    assert told["renewal_slowdown"] == 1.02
    assert Timing.from_json(told) == timing
    earlier = {name: value for name, value in told.items() if name != "renewal_slowdown"}
    assert Timing.from_json(earlier) == timing, "as an archive of an earlier version has it"


def test_a_timing_on_a_cpu_has_no_slowdown() -> None:
    told = TIMING.to_json()
    assert (told["clocks"], told["renewal_slowdown"]) == ({}, None)
