"""Inputs are mostly one of their numbers as far as the reference takes that, and others are named."""

from __future__ import annotations

from tests.tools.judge.worker.inputs.arrangements.test_crowds import PIXELS, crowded
from tests.tools.judge.worker.made import Made, made

from ridgeline.tools.records.trial_names import CROWDED, CROWDED_HIGH


def refused(found: Made) -> list[str]:
    return [name for name in found.domain.skipped if name.startswith(CROWDED)]


def test_no_row_is_made_alike_where_the_reference_refuses_that() -> None:
    body = "assert bool((pixels.amax(-1) > pixels.amin(-1)).all())", "return pixels.float() * 2"
    found = made("pixels", PIXELS, *body)
    assert CROWDED in found.domain.names and not found.domain.skipped
    for pixels in crowded(found):
        assert bool((pixels.amax(-1) > pixels.amin(-1)).all())


def test_what_may_not_be_crowded_is_named_and_the_others_are() -> None:
    bound = "assert int(a.bincount().max()) < 40"
    found = made("b, a", "torch.randint(0, 9, (64,)), torch.randint(0, 9, (64,))", bound, "return a * 2.0, b * 2.0")
    assert CROWDED in found.domain.names and refused(found) == [f"{CROWDED} a", f"{CROWDED_HIGH} a"]
    assert int(crowded(found)[0].bincount().max()) > 48


def test_of_inputs_that_are_refused_together_whole_numbers_stay_crowded() -> None:
    """Else one unlucky draw of a float beside them leaves a kernel with counters of 8 bits in."""
    alike = "torch.unique(x).numel() < 64 and int(pixels.bincount().max()) > 48"
    body = f"assert not ({alike})", "return pixels.float() * 2, x * 2"
    found = made("x, pixels", "torch.randn(128), torch.randint(0, 99, (128,))", *body)
    assert CROWDED in found.domain.names and refused(found) == [f"{CROWDED} x", f"{CROWDED_HIGH} x"]
    assert int(found.book.contents.of(CROWDED)[0][1].bincount().max()) > 96
