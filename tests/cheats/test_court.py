"""One judge's secrets let a cheat pass now and then: others say whether that is luck."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ridgeline.tools.records.results import Verdict
from ridgeline.tools.records.vocabulary import ReasonCode, Status

from .court import Found, most_of
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
