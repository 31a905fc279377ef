"""One judge's secrets let a cheat pass now and then: others say whether that is luck."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from ridgeline.tools.records.results import Timing, Verdict
from ridgeline.tools.records.vocabulary import ReasonCode, Status

from .court import Found, gains_nothing, most_of
from .trick import c, harmless, wrong

CHEAT = c("cheat", wrong(ReasonCode.WRONG_VALUES))
PASSED = Verdict(status=Status.OK)
REFUSED = Verdict(status=Status.WRONG, reason_code=ReasonCode.WRONG_VALUES, reason="40 % are wrong")
OTHERWISE = Verdict(status=Status.WRONG, reason_code=ReasonCode.STALE_OUTPUT, reason="an earlier output")


def _judged(*found: Found, draws: int = 3) -> tuple[Found, str]:
    judges: Iterator[Found] = iter(found)
    return most_of(CHEAT, lambda: next(judges), lambda: next(judges), draws=draws)


def test_no_other_judge_is_asked_where_the_first_says_what_the_table_does() -> None:
    assert _judged(REFUSED) == (REFUSED, "")


def test_a_cheat_that_one_judge_let_pass_is_what_most_of_three_others_say() -> None:
    assert _judged(PASSED, REFUSED, PASSED, REFUSED) == (
        REFUSED, "ok (none), then wrong (wrong_values), then ok (none), then wrong (wrong_values)"
    )  # fmt: skip


@pytest.mark.parametrize(
    "others", [(PASSED, PASSED, REFUSED), (OTHERWISE, OTHERWISE, REFUSED)], ids=("passes", "otherwise")
)
def test_a_cheat_that_most_others_do_not_end_as_told_is_what_the_first_found(others: tuple[Found, ...]) -> None:
    found, said = _judged(PASSED, *others)
    assert found == PASSED and said


def test_an_honest_kernel_that_most_others_refuse_is_refused() -> None:
    judges = iter((REFUSED, REFUSED, PASSED, REFUSED))
    found, _ = most_of(c("honest", harmless()), lambda: next(judges), lambda: next(judges))
    assert found == REFUSED


def test_only_a_cheat_that_is_found_out_or_no_faster_gains_nothing() -> None:
    def timed(found: Found) -> Callable[..., Found]:
        return lambda name, again: found if name == "cheat" else timing(1.0)

    def timing(speedup: float) -> Timing:
        return Timing(status=Status.OK, median_ms=1.0, speedup=speedup, speedup_ci95=(speedup, speedup))

    distrusted = Timing(status=Status.UNTRUSTED, reason_code=ReasonCode.WORKED_AHEAD, reason="ahead")
    assert gains_nothing(timed(distrusted), "cheat", "control") is None
    assert gains_nothing(timed(timing(1.1)), "cheat", "control") is None
    assert gains_nothing(timed(timing(2.0)), "cheat", "control") == timing(2.0)
    broken = Timing(status=Status.COMPILE_ERROR, reason_code=ReasonCode.COMPILER_FAILED, reason="no such header")
    with pytest.raises(AssertionError):
        gains_nothing(timed(broken), "cheat", "control")
