"""Statistics on synthetic samples whose true median is known."""

import random

import pytest

from ridgeline.tools.measure.statistics import (
    PairedRatio,
    StoppingRule,
    interval_rank,
    median_interval,
    paired_ratio,
    percentile,
)


def test_interval_rank_matches_published_sign_test_tables() -> None:
    assert [interval_rank(n) for n in (5, 6, 8, 9, 10, 12, 15, 20, 30)] == [0, 1, 1, 2, 2, 3, 4, 6, 10]


@pytest.mark.parametrize("n", [6, 10, 20, 40])
def test_interval_covers_the_median_of_a_skewed_distribution_in_95_percent(n: int) -> None:
    rng = random.Random(n)
    true_median = 1.0
    covered = 0
    for _ in range(3000):
        low, high = median_interval([rng.lognormvariate(0.0, 0.5) for _ in range(n)])
        covered += low <= true_median <= high
    assert 0.94 <= covered / 3000 <= 0.99


def test_interval_of_drifting_pairs_ignores_the_drift_that_both_sides_share() -> None:
    rng = random.Random(1)
    candidate = [(1 + 0.1 * i) * rng.gauss(1, 0.002) for i in range(20)]
    reference = [(1 + 0.1 * i) * 1.5 * rng.gauss(1, 0.002) for i in range(20)]
    measured = paired_ratio(reference, candidate)
    assert measured.ratio == pytest.approx(1.5, rel=0.005)
    assert measured.half_width < 0.005


def test_one_disturbed_block_does_not_move_the_interval() -> None:
    calm = [1.0 + 0.001 * i for i in range(12)]
    disturbed = [*calm[:-1], 30.0]
    assert median_interval(disturbed) == median_interval(calm)


def test_interval_of_too_few_values_is_their_range_and_counts_as_unknown() -> None:
    assert median_interval([3.0, 1.0, 2.0]) == (1.0, 3.0)
    assert paired_ratio([1.0, 1.0], [1.0, 1.0]).half_width == float("inf")


def test_percentile_interpolates() -> None:
    values = [4.0, 1.0, 3.0, 2.0, 5.0]
    assert [percentile(values, p) for p in (0, 10, 50, 90, 100)] == [1.0, 1.4, 3.0, 4.6, 5.0]


def test_empty_samples_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one value"):
        median_interval([])
    with pytest.raises(ValueError, match="at least one value"):
        percentile([], 50)


def _ratio(low: float, high: float, pairs: int) -> PairedRatio:
    return PairedRatio(ratio=(low + high) / 2, ci95=(low, high), pairs=pairs)


def test_stopping_rule_waits_for_the_smallest_number_of_pairs_even_when_narrow() -> None:
    rule = StoppingRule(smallest=10, largest=40)
    assert not rule.is_done(_ratio(1.0, 1.0, 8), elapsed_s=0)
    assert rule.is_done(_ratio(1.0, 1.0, 10), elapsed_s=0)


def test_stopping_rule_ends_a_wide_measurement_at_its_caps() -> None:
    rule = StoppingRule(smallest=10, largest=40, time_s=3)
    assert not rule.is_done(_ratio(0.5, 1.5, 20), elapsed_s=1)
    assert rule.is_done(_ratio(0.5, 1.5, 40), elapsed_s=1)
    assert rule.is_done(_ratio(0.5, 1.5, 12), elapsed_s=4)


def test_stopping_rule_gives_up_early_only_when_the_whole_interval_is_slow() -> None:
    rule = StoppingRule(smallest=10, largest=40, give_up_below=0.8)
    assert rule.is_done(_ratio(0.2, 0.5, 6), elapsed_s=0)
    assert not rule.is_done(_ratio(0.2, 0.9, 6), elapsed_s=0)
    assert not rule.is_done(_ratio(0.2, 0.5, 4), elapsed_s=0)
