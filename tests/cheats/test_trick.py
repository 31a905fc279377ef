"""An end says what can be: a code has one status, and the table's words say the status of each."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ridgeline.tools.records.results import Verdict
from ridgeline.tools.records.vocabulary import ReasonCode as R
from ridgeline.tools.records.vocabulary import Status

from .trick import End, c, ended, fails, gainless, harmless, untrusted, wrong
from .tricks.words import CAUGHT_WHEN_TIMED


@pytest.mark.parametrize(
    ("end", "code"),
    [(wrong, R.TIMED_OUTPUT_WRONG), (untrusted, R.STALE_OUTPUT), (fails, R.WRONG_VALUES), (wrong, R.NONE)],
)
def test_an_end_takes_no_code_of_another_status(end: Callable[..., End], code: R) -> None:
    with pytest.raises(AssertionError, match=code):
        end(code)


@pytest.mark.parametrize("codes", [(R.NONE, R.STALE_OUTPUT), (R.CRASHED, R.CRASHED), ()])
def test_an_end_is_no_pass_beside_a_code_and_names_each_code_once(codes: tuple[R, ...]) -> None:
    with pytest.raises(AssertionError):
        ended(*codes)


def test_words_say_the_status_of_each_code() -> None:
    assert ended(R.BACKGROUND_WORK, *CAUGHT_WHEN_TIMED).words() == (
        "`untrusted`: `background_work` or `timed_output_wrong` or `worked_ahead`, "
        "or `wrong`: `stale_output` or `precision_too_low`"
    )
    assert wrong(R.STALE_OUTPUT, R.WRONG_VALUES).words() == "`wrong`: `stale_output` or `wrong_values`"
    assert [harmless().words(), gainless().words(), gainless("itself").words()] == ["no effect", "no gain", "timed"]


def test_a_case_ends_by_any_of_its_codes_and_by_no_other() -> None:
    def found(code: R) -> Verdict:
        return Verdict(status=code.status, reason_code=code, reason="" if code is R.NONE else "so it was found")

    case = c("cheat", ended(*CAUGHT_WHEN_TIMED))
    assert {code for code in R if case.is_end(found(code))} == set(CAUGHT_WHEN_TIMED)
    honest = c("honest", harmless())
    assert honest.end.is_ok and not case.end.is_ok
    assert honest.is_end(Verdict(status=Status.OK)) and not honest.is_end(found(R.STALE_OUTPUT))
