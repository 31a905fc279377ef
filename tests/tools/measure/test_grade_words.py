"""The sentence of a failed comparison: the limit that broke, the places and the relation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ridgeline.tools.judge.replies import Beyond, Element, Graded, Missing, Touched
from ridgeline.tools.measure.grade_words import explain_fault, explain_grade, not_written_again
from ridgeline.tools.records.error_map import AxisPattern, ErrorMap, LimitUse, Measure, Pattern, Relation
from ridgeline.tools.records.results import Trial
from ridgeline.tools.records.vocabulary import PrecisionClass, ReasonCode

WORST = Element(index=(1, 2), got=1.5, expected=1.0)


def graded(nearest: LimitUse | None = None, draw: int = 0, **fields: object) -> Graded:
    trial = Trial(name="shifted", rel_error=1.8e-6, gate=1e-5, passed=False, nearest=nearest, draw=draw)
    known = {"trial": trial, "measured": None, "output": "out", "worst": WORST}
    return Graded(**(known | fields))  # type: ignore[arg-type]


def test_the_limit_that_broke_is_named_with_its_figure_and_factor() -> None:
    found = explain_grade(graded(LimitUse(measure=Measure.ELEMENT, figure=6.4e-4, limit=3.2e-4)), PrecisionClass.FP32)
    assert found.code is ReasonCode.WRONG_VALUES
    assert found.reason == (
        "shifted: values of out differ (an element's error 0.00064, gate 0.00032 (2 x)); "
        "worst at out[1, 2]: got 1.5, expected 1"
    )


def test_an_integer_is_told_with_every_digit() -> None:
    worst = Element(index=(1, 2), got=31_123_457, expected=31_123_456)
    words = explain_grade(graded(wrong_integers=1, worst=worst), PrecisionClass.FP32).reason
    assert "worst at out[1, 2]: got 31123457, expected 31123456; integers must be exact" in words


def test_few_elements_are_not_called_all_that_is_wrong_where_the_whole_is() -> None:
    whole = LimitUse(measure=Measure.OUTPUT, figure=9e-4, limit=1e-5)
    few, most = (ErrorMap(wrong=wrong, total=1000) for wrong in (20, 990))
    assert (
        "; 2 % are off by more than a single one may be; "
        in explain_grade(graded(whole, error_map=few), PrecisionClass.FP32).reason
    )
    assert "; 99 % are wrong; " in explain_grade(graded(whole, error_map=most), PrecisionClass.FP32).reason


def test_a_gate_of_zero_has_no_factor() -> None:
    found = explain_grade(graded(LimitUse(measure=Measure.OUTPUT, figure=0.5, limit=0.0)), PrecisionClass.FP32)
    assert "(error 0.5, gate 0)" in found.reason


def test_a_looser_class_is_told_with_the_figure_too() -> None:
    nearest = LimitUse(measure=Measure.ROW, figure=3e-4, limit=4e-5)
    like = graded(nearest, measured=PrecisionClass.TF32, is_like_rounding=True)
    found = explain_grade(like, PrecisionClass.FP32)
    assert found.code is ReasonCode.PRECISION_TOO_LOW
    assert "a row's error 0.0003, gate 4e-05 (7.5 x): like tf32 arithmetic" in found.reason
    assert "another constant (an epsilon, a factor)" in found.reason and "worst at out[1, 2]: " in found.reason


def test_where_errors_are_not_as_rounding_has_them_the_places_come_first_and_no_class_is_named() -> None:
    nearest = LimitUse(measure=Measure.ROW, figure=3e-4, limit=4e-5)
    found = explain_grade(graded(nearest, measured=PrecisionClass.TF32), PrecisionClass.FP32)
    assert found.code is ReasonCode.PRECISION_TOO_LOW
    assert found.reason == (
        "shifted: a row's error 0.0003, gate 4e-05 (7.5 x); worst at out[1, 2]: got 1.5, expected 1; sums of very many terms "
        "in one float, another constant (an epsilon, a factor), an approximated function, a difference of nearly equal "
        "numbers, an input that is not read or some work left out, and fp32 is required"
    )


def test_the_rule_of_one_part_in_a_hundred_names_no_class() -> None:
    nearest = LimitUse(measure=Measure.CRFM, figure=0.012, limit=0.01)
    found = explain_grade(graded(nearest, measured=PrecisionClass.FP32), PrecisionClass.CRFM)
    assert found.code is ReasonCode.PRECISION_TOO_LOW
    assert "gate 0.01 (1.2 x): sums of very many terms in one float, another constant" in found.reason
    assert "some work left out; worst at out[1, 2]: " in found.reason, (
        "an error within fp32's gates is no other class's"
    )


def test_a_scalar_has_no_place_and_is_not_all_of_anything() -> None:
    scalar = {"worst": Element(index=(), got=7.5, expected=7.4), "error_map": ErrorMap(wrong=1, total=1)}
    like = {"measured": PrecisionClass.BF16, "is_like_rounding": True}
    found = explain_grade(graded(**scalar, **like), PrecisionClass.FP32)  # type: ignore[arg-type]
    assert found.code is ReasonCode.PRECISION_TOO_LOW, "only the words change"
    assert found.reason.endswith(
        "an input that is not read or some work left out, and fp32 is required; out: got 7.5, expected 7.4"
    )
    infinite = Element(index=(), got=float("inf"), expected=7.4)
    found = explain_grade(graded(non_finite=infinite), PrecisionClass.FP32)
    assert found.reason == "shifted: out is inf, expected 7.4"


def test_where_nothing_is_rounded_a_lost_bit_is_a_wrong_value() -> None:
    nearest = LimitUse(measure=Measure.ELEMENT, figure=7e-6, limit=0.0)
    given = graded(nearest, measured=PrecisionClass.TF32, is_unrounded=True)
    found = explain_grade(replace(given, trial=replace(given.trial, gate=0.0)), PrecisionClass.FP32)
    assert found.code is ReasonCode.WRONG_VALUES
    assert "an element's error 7e-06, gate 0" in found.reason and "PyTorch rounds none of them" in found.reason
    within_tf32 = explain_grade(replace(given, trial=replace(given.trial, gate=1e-4)), PrecisionClass.TF32)
    assert "rounds none" not in within_tf32.reason


def test_a_figure_just_beyond_its_limit_has_a_factor_that_is_not_1_and_the_secret_that_broke_it() -> None:
    nearest = LimitUse(measure=Measure.ROW, figure=4.016e-5, limit=4e-5)
    found = explain_grade(graded(nearest, draw=2), PrecisionClass.FP32)
    assert found.reason.startswith(
        "shifted (secret 3): values of out differ (a row's error 4e-05, gate 4e-05 (1.004 x))"
    )


def test_a_byte_that_is_no_bool_is_said_to_be_none() -> None:
    worst = Element(index=(1, 2), got=64, expected=1)
    found = explain_grade(graded(wrong_integers=5, invalid_bools=3, worst=worst), PrecisionClass.FP32)
    assert found.code is ReasonCode.WRONG_VALUES
    assert found.reason == (
        "shifted: out holds no bool in 3 elements; worst at out[1, 2]: got 64, expected 1; a bool's byte is 0 or 1"
    )


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        (Pattern.ONE, "at index 4 alone on axis 1"),
        (Pattern.FIRST, "at the first 3 of 48 on axis 1"),
        (Pattern.LAST, "at the last 3 of 48 on axis 1"),
        (Pattern.RANGE, "at indices 4 to 9 of 48 on axis 1"),
        (Pattern.BORDERS, "at the borders (3 of 48) on axis 1"),
        (Pattern.EVERY, "at every 3rd index from 4 on axis 1"),
        (Pattern.SOME, "at 3 of 48 indices, 4 to 9, on axis 1"),
    ],
)
def test_every_pattern_has_words(pattern: Pattern, words: str) -> None:
    axis = AxisPattern(axis=1, size=48, pattern=pattern, count=3, first=4, last=9, step=3)
    found = explain_grade(graded(error_map=ErrorMap(wrong=5, total=100, axes=(axis,))), PrecisionClass.FP32)
    assert f"; 5 % are wrong, {words}; worst at" in found.reason


@pytest.mark.parametrize(
    ("step", "word"), [(2, "2nd"), (4, "4th"), (11, "11th"), (12, "12th"), (13, "13th"), (21, "21st"), (112, "112th")]
)
def test_steps_are_told_as_ordinals(step: int, word: str) -> None:
    axis = AxisPattern(axis=0, size=480, pattern=Pattern.EVERY, count=3, first=0, last=9, step=step)
    found = explain_grade(graded(error_map=ErrorMap(wrong=5, total=100, axes=(axis,))), PrecisionClass.FP32)
    assert f"at every {word} index from 0" in found.reason


@pytest.mark.parametrize(
    ("relation", "value", "words"),
    [
        (Relation.CONSTANT, 0.0, "each of those is 0"),
        (Relation.RATIO, -1.0, "those have the wrong sign"),
        (Relation.RATIO, 0.125, "those are 0.125 x the expected values"),
        (Relation.OFFSET, -0.5, "those are the expected values - 0.5"),
        (Relation.OFFSET, 0.5, "those are the expected values + 0.5"),
        (Relation.TRANSPOSED, 0.0, "the values are right and the last two axes are exchanged"),
        (Relation.SHIFTED, 1.0, "the values are right and stand one place too far on axis 1"),
        (Relation.SHIFTED, -1.0, "the values are right and stand one place too early on axis 1"),
        (Relation.OFFSET_BY_AXIS, 0.0, "the difference depends on the index of axis 1 alone: a bias?"),
        (Relation.RATIO_BY_AXIS, 0.0, "the factor depends on the index of axis 1 alone: a scale?"),
    ],
)
def test_every_relation_has_words(relation: Relation, value: float, words: str) -> None:
    found = ErrorMap(wrong=100, total=100, relation=relation, value=value, axis=1)
    assert f"; all are wrong; {words}; worst at" in explain_grade(graded(error_map=found), PrecisionClass.FP32).reason


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (21, "; 21 of 1,000,000 are wrong"),
        (31_000, "; 3.1 % are wrong"),
        (990_000, "; 99 % are wrong"),
        (999_000, "; almost all are wrong"),
        (1_000_000, "; all are wrong"),
    ],
)
def test_shares_are_told_in_words_that_fit_their_size(wrong: int, words: str) -> None:
    found = ErrorMap(wrong=wrong, total=1_000_000)
    assert words in explain_grade(graded(error_map=found), PrecisionClass.FP32).reason


@pytest.mark.parametrize(
    ("count", "total", "width", "words"),
    [
        (512, 1024, 64, "50 % of `out` (512 elements) unwritten, the first at 512 (row 8)"),
        (1, 10_000_000, 4, "1 of 10,000,000 elements of `out` unwritten, the first at 512 (row 128)"),
        (9_999_999, 10_000_000, 4, "almost all of `out` (9,999,999 elements) unwritten, the first at 512 (row 128)"),
        (512, 1024, 1024, "50 % of `out` (512 elements) unwritten, the first at 512"),
        (1024, 1024, 64, "all of `out` unwritten"),
        (1, 1, 1, "all of `out` unwritten"),
    ],
    ids=["a share", "few", "almost all", "one row", "all", "a scalar"],
)
def test_what_was_not_written_is_told_in_words_that_fit_its_share(
    count: int, total: int, width: int, words: str
) -> None:
    missing = Missing(output="out", count=count, total=total, first=512, width=width)
    found = explain_fault("shifted", missing)
    assert (found.code, found.reason) == (ReasonCode.OUTPUT_NOT_WRITTEN, f"shifted: it left {words}")
    found = not_written_again("shifted", missing)
    assert found.code is ReasonCode.STALE_OUTPUT
    assert (
        found.reason == f"shifted: the second call on the same inputs left {words}: every call must do all of its work"
    )


def test_what_was_written_past_an_end_is_told_with_its_place_and_what_to_do() -> None:
    far = explain_fault("shifted", Beyond(output="out", count=8, first=1))
    assert far.code is ReasonCode.OUT_OF_BOUNDS
    assert far.reason == (
        "shifted: writing 1 byte past the end of `out`: 8 bytes there changed; guard the stores of the last block, or of the "
        "last vector"
    )
    near = explain_fault("x", Beyond(output="out", count=1, first=0)).reason
    assert "writing right past the end of `out`: 1 byte there" in near


def test_an_input_that_was_written_is_named() -> None:
    found = explain_fault("shifted", Touched(name="x"))
    assert (found.code, found.reason) == (
        ReasonCode.INPUT_WRITTEN,
        "shifted: it wrote to its input `x`, which is read-only",
    )


def test_values_that_change_from_call_to_call_are_told() -> None:
    assert (
        "another call on the same inputs gives other values"
        in explain_grade(graded(), PrecisionClass.FP32, varies=True).reason
    )
