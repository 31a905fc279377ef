"""What is proven of a gain: by an alternating run of the two, else by intervals that are apart."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import pytest

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.history.gains import Gain, Proof, gain_over, gain_over_eager, measured_side_by_side
from ridgeline.tools.records.finding import Finding
from ridgeline.tools.records.keys import comparison_key
from ridgeline.tools.records.results import Comparison, Evaluation, FailedComparison
from ridgeline.tools.records.vocabulary import PrecisionClass, ReasonCode


def timed(story: SimpleNamespace, name: str, speedup: float, low: float, high: float) -> Evaluation:
    found: Evaluation = story.ok(name, speedup)
    assert found.timing is not None
    return dataclasses.replace(found, timing=dataclasses.replace(found.timing, speedup_ci95=(low, high)))


@pytest.mark.parametrize(
    ("interval", "proof"),
    [
        ((1.01, 1.3), Proof.FASTER),
        ((0.97, 1.08), Proof.OPEN),
        ((0.7, 0.99), Proof.SLOWER),
        ((1.0, 2.0), Proof.OPEN),
        (None, Proof.OPEN),
    ],
)
def test_a_gain_is_proven_where_its_interval_excludes_1(interval: tuple[float, float] | None, proof: Proof) -> None:
    assert Gain(ratio=1.02, interval=interval).proof is proof


def test_intervals_that_overlap_prove_nothing_and_those_apart_do(story: SimpleNamespace) -> None:
    parent = timed(story, "a", 2.0, 1.8, 2.2)
    overlapping = gain_over(parent, timed(story, "b", 2.4, 2.1, 2.6), {})
    apart = gain_over(parent, timed(story, "b", 2.4, 2.3, 2.5), {})
    assert overlapping is not None and overlapping.proof is Proof.OPEN
    assert apart is not None and apart.proof is Proof.FASTER and apart.ratio == pytest.approx(1.2)
    assert apart.interval == pytest.approx((2.3 / 2.2, 2.5 / 1.8))


def test_an_alternating_run_of_the_two_decides_in_either_order(archive: Archive, story: SimpleNamespace) -> None:
    pair = Comparison(ratio=1.1, ratio_ci95=(1.05, 1.2), first_ms=1.1, second_ms=1.0, blocks=9)
    archive.save("comparisons", comparison_key("a", "b", "builds"), "b", pair)
    broken = FailedComparison(finding=Finding(code=ReasonCode.CRASHED, reason="crashed"), at_fault=1)
    archive.save("comparisons", comparison_key("a", "c", "builds"), "c", broken)
    pairs = measured_side_by_side(archive)
    slower, faster = timed(story, "a", 2.0, 1.0, 4.0), timed(story, "b", 1.9, 1.0, 4.0)
    forward, backward = gain_over(slower, faster, pairs), gain_over(faster, slower, pairs)
    assert forward is not None and forward.proof is Proof.FASTER and forward.is_side_by_side
    assert backward is not None and backward.proof is Proof.SLOWER
    assert ("a", "c") not in pairs


def test_two_classes_of_precision_have_no_interval_in_common(story: SimpleNamespace) -> None:
    parent, reduced = story.ok("a", 2.0), story.ok("b", 4.0)
    verdict = dataclasses.replace(reduced.verdict, precision_class=PrecisionClass.TF32)
    found = gain_over(parent, dataclasses.replace(reduced, verdict=verdict), {})
    assert found is not None and found.interval is None and found.proof is Proof.OPEN


def test_without_a_time_there_is_no_gain(story: SimpleNamespace) -> None:
    assert gain_over(None, story.ok("b", 2.0), {}) is None
    assert gain_over(story.ok("a", 2.0), None, {}) is None
    assert gain_over_eager(None) is None
