"""Which whole numbers are lifted, or lie near their places: those that the reference takes, whatever it refuses beside them."""

from __future__ import annotations

from tests.tools.judge.worker.made import made

from ridgeline.tools.records.trial_names import APART, BLOCKED

LABELS = "torch.randint(0, 100, (8, 512)), torch.randint(0, 100, (8, 512))"


def test_what_the_reference_refuses_lifted_is_named_and_the_others_are_lifted() -> None:
    bound = "assert int((a == 99).sum(-1).max()) < 30"
    found = made("a, b", LABELS, bound, "return a * b")
    assert f"{BLOCKED} a" in found.domain.skipped and f"{BLOCKED} b" not in found.domain.skipped
    assert set(found.source.lifts) == {1}
    assert int((found.source.blocked("one")[1] == 99).sum(-1).max()) >= 30


def test_what_the_reference_refuses_near_its_places_is_lifted_all_the_same() -> None:
    in_no_order = "assert float((a[:, 256:] - a[:, :256]).double().mean()) < 10"
    found = made("a, b", LABELS, in_no_order, "return a * b")
    assert f"{APART} a" in found.domain.skipped and APART in found.domain.names
    assert set(found.source.links.near) == {1} and set(found.source.lifts) == {0, 1}
