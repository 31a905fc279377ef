"""Masks, labels and numbers have connected areas, as far as the reference takes that; what has structure stays."""

from __future__ import annotations

import pytest
import torch
from tests.tools.judge.worker.made import Made, made

from ridgeline.tools.judge.worker.inputs.arrangements.areas import areas
from ridgeline.tools.records.trial_names import SOLID

DRAWS = range(20)
MASK = "torch.rand(4, 1, 32, 48) < 0.6"


def drawn(shape: tuple[int, int, int], seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return where each picture is set, and whether that is within an area."""
    generator = torch.Generator().manual_seed(seed)
    is_inside = torch.arange(shape[0]) % 2 == 0
    return areas(shape, is_inside, generator), is_inside


def solid(found: Made, argument: int = 0) -> torch.Tensor:
    return found.book.contents.of(SOLID)[0][argument]


def depth_of(mask: torch.Tensor) -> int:
    """Return after how many rounds of erosion nothing is left of a picture."""
    rounds, left = 0, mask.float()[None, None]
    while bool(left.any()):
        assert rounds < mask.numel()
        rounds, left = rounds + 1, -torch.nn.functional.max_pool2d(-left, 3, 1, 1)
    return rounds


@pytest.mark.parametrize("seed", DRAWS)
def test_areas_are_deep_and_never_a_whole_picture(seed: int) -> None:
    is_set, is_inside = drawn((4, 64, 64), seed)
    for picture, inside in zip(is_set, is_inside, strict=True):
        assert bool(picture.any()) and not bool(picture.all())
        assert depth_of(picture) >= 10 and (inside or depth_of(~picture) >= 5)


def test_one_dimension_has_areas_along_it() -> None:
    is_set, _ = drawn((2, 1, 64), 0)
    changes = (is_set[..., 1:] != is_set[..., :-1]).sum(-1)
    assert int(changes.max()) <= 6 and bool(is_set.any(-1).all()) and not bool(is_set.all(-1).any())


def test_a_mask_is_set_and_clear_alone_and_both_ways_come() -> None:
    mask = solid(made("mask", MASK, "return mask.float().cumsum(-1)"))
    assert mask.dtype == torch.bool and not bool(mask.flatten(1).all(1).any())
    corners = torch.stack([mask[..., y, x] for y in (0, -1) for x in (0, -1)]).float().mean(0)
    assert int((corners > 0.5).sum()) == 2


def test_labels_are_alike_in_areas_and_stay_within_their_range() -> None:
    labels = solid(made("labels", "torch.randint(90, (4, 32, 48))", "return labels.float().cumsum(-1)"))
    assert int(labels.min()) >= 0 and int(labels.max()) < 90
    for picture in labels:
        assert int(picture.flatten().bincount().max()) > 32 * 48 / 8


def test_numbers_are_near_one_in_areas_and_never_exactly() -> None:
    x = solid(made("x", "torch.randn(4, 3, 32, 48)", "return x.cumsum(-1)")).flatten(0, 1)
    steps = (x[..., 1:] - x[..., :-1]).abs()
    assert float((steps < 0.5).float().mean(dim=(1, 2)).min()) > 0.15
    assert torch.unique(x[0]).numel() > 32 * 48 / 2


def test_pictures_lie_in_the_last_two_long_dimensions() -> None:
    mask = solid(made("mask", "torch.rand(2, 32, 48, 3) < 0.5", "return mask.float().cumsum(1)"))
    for picture in mask.movedim(-1, 1).flatten(0, 1):
        assert max(depth_of(picture), depth_of(~picture)) >= 4


def test_rows_that_may_not_be_alike_are_not() -> None:
    body = "assert bool((mask.any(-1) & ~mask.all(-1)).all())", "return mask.float().cumsum(-1)"
    found = made("mask", MASK, *body)
    assert SOLID in found.domain.names and f"{SOLID} mask" not in found.domain.skipped
    changes = (solid(found)[..., 1:] != solid(found)[..., :-1]).sum(-1)
    assert int((changes <= 6).sum()) > 16


def test_what_the_reference_refuses_is_named_and_the_other_has_areas() -> None:
    body = "flips = (x[:, 1:] * x[:, :-1] < 0).sum(-1)", "assert int(flips.min()) > 60", "return x * 2, y * 2"
    found = made("x, y", "torch.randn(16, 256), torch.randn(16, 256)", *body)
    assert SOLID in found.domain.names and f"{SOLID} x" in found.domain.skipped
    assert f"{SOLID} y" not in found.domain.skipped


@pytest.mark.parametrize(
    "draw",
    [
        "torch.randn(16, 16).tril()",
        "torch.cov(torch.randn(16, 64))",
        "torch.randn(16, 64).sort(-1).values",
        "torch.stack([torch.randperm(64) for _ in range(4)])",
        "torch.randn(7, 7)",
    ],
)
def test_inputs_with_structure_and_short_ones_have_no_areas(draw: str) -> None:
    assert SOLID not in made("x", draw, "return x * 2").domain.names


def test_errors_count_beside_what_an_output_usually_varies_by() -> None:
    found = made("x", "torch.randn(16, 64)", "return torch.tanh(x).mean(-1, keepdim=True) + x / 1e3")
    usual, alike = (found.book.case(name).expected[0] for name in ("nominal_0", SOLID))
    assert alike.scale >= usual.spread / usual.norm * alike.norm
    softmax = made("x", "torch.randn(64, 1024)", "return x.softmax(-1)")
    usual, alike = (softmax.book.case(name).expected[0] for name in ("nominal_0", SOLID))
    assert alike.spread < 0.9 * usual.spread / usual.norm * alike.norm <= alike.scale
