"""Numbers and their nouns agree."""

from __future__ import annotations

import pytest

from ridgeline.tools.wording import counted, in_users_words, margin_words, medians_words, whole_numbers_words


@pytest.mark.parametrize(
    ("number", "noun", "words"),
    [
        (1, "finished round", "1 finished round"),
        (0, "idea", "0 ideas"),
        (2, "branch", "2 branches"),
        (3, "model reply", "3 model replies"),
        (2, "key", "2 keys"),
        (12345, "token", "12,345 tokens"),
    ],
)
def test_a_noun_agrees_with_its_number(number: int, noun: str, words: str) -> None:
    assert counted(number, noun) == words


def test_a_margin_is_told_with_the_limit_that_it_is_of() -> None:
    words = "62 % of the nearest limit (shifted, a row's error)"
    assert margin_words(0.617, "shifted", "a row's error") == words
    assert margin_words(None, "shifted", "a row's error") == ""


def test_the_judge_s_inner_names_are_none_of_a_person_s_words() -> None:
    said = "nominal_0 (secret 2): values of gate differ (a row's error 0.0003, gate 4e-05 (7.5 x))"
    told = "inputs like those of get_inputs() (secret 2): values of gate differ (a row's error 0.0003, limit 4e-05 (7.5 x))"
    assert in_users_words(said) == told
    assert (
        in_users_words("outlier: abnominal_0 and nominal are no trials")
        == "outlier: abnominal_0 and nominal are no trials"
    )
    assert (
        margin_words(0.5, "nominal_1", "error")
        == "50 % of the nearest limit (inputs like those of get_inputs(), error)"
    )


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("moved_copy: values differ", "moved_copy (inputs nearly copies of one another, moved): values differ"),
        ("shifted (secret 2): shifted: x", "shifted (inputs 3x + 2) (secret 2): shifted: x"),
        (
            "right for its first calls only: scalars: x",
            "right for its first calls only: scalars (other values of the scalars): x",
        ),
        ("alone_gain: x", "alone_gain (one argument alone of another draw): x"),
        ("extra_3: x", "extra_3 (further inputs like those of get_inputs()): x"),
        ("kernel.cpp:3: outliers: x", "kernel.cpp:3: outliers: x"),
        ("outliers and shifted", "outliers and shifted"),
    ],
)
def test_a_trial_s_contents_are_told_behind_its_name(said: str, told: str) -> None:
    assert in_users_words(said) == told


def test_a_time_that_is_absent_is_called_so_and_no_zero() -> None:
    assert medians_words(None, 2.0236, 2.35) == "time not measured"
    assert medians_words(0.8612, None, None) == "0.8612 ms"
    assert medians_words(0.8612, 2.0236, None) == medians_words(0.8612, 2.0236, 2.35) == "0.8612 ms against 2.0236 ms"


def test_two_medians_of_another_ratio_than_the_speedup_say_so() -> None:
    assert "each one's median; 3.09x is the median of the ratios" in medians_words(4.93, 15.42, 3.09)


def test_an_input_with_the_name_of_a_skipped_trial_was_tried_with_other_numbers() -> None:
    ranges = [{"name": name, "low": 0, "high": 9} for name in ("outliers", "pos")]
    told = whole_numbers_words(ranges, ["outliers", "not_varied pos", "parameter_without_effect pos"])
    assert told == "whole numbers tried: outliers 0 to 9, pos 0 to 9 (only as given)"


def test_an_input_that_is_drawn_anew_is_not_said_to_be_as_given() -> None:
    told = whole_numbers_words([{"name": "pos", "low": 0, "high": 9}], ["only_as_drawn pos"])
    assert told == "whole numbers tried: pos 0 to 9 (only as get_inputs() draws it)"
