"""Masks are corridors through whole pictures, and one of several nearly clear; each of them in some fields."""

from __future__ import annotations

import pytest
import torch
from tests.tools.judge.worker.made import Made, made

from ridgeline.tools.judge.worker.inputs.arrangements.corridors import with_corridors
from ridgeline.tools.records.trial_names import CORRIDOR

MASK = "torch.rand(4, 1, 32, 48) < 0.6"


def corridors(*shape: int, n_inputs: int, seed: int) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(seed)
    given = tuple(torch.rand(shape, generator=generator) < 0.5 for _ in range(n_inputs))
    return with_corridors(given, generator, chosen=range(n_inputs))


def reached(seeds: torch.Tensor, mask: torch.Tensor) -> int:
    """Return after how many rounds nothing spreads any more from seeds within a mask, of one picture."""
    x, mask = (seeds & mask).float()[None, None], mask.float()[None, None]
    rounds = 0
    while True:
        assert rounds < mask.numel()
        further = torch.minimum(torch.nn.functional.max_pool2d(x, 3, 1, 1), mask)
        if torch.equal(further, x):
            return rounds
        rounds, x = rounds + 1, further


@pytest.mark.parametrize("seed", range(12))
def test_a_corridor_is_as_long_as_a_quarter_of_the_places_of_its_picture(seed: int) -> None:
    seeds, mask = corridors(4, 1, 64, 64, n_inputs=2, seed=seed)
    pairs = [(x[0], y[0]) for x, y in zip(seeds, mask, strict=True)]
    assert max(reached(x, y) for x, y in pairs) >= 900
    assert max(reached(y, x) for x, y in pairs) >= 900
    assert sorted(min(int(x.sum()), int(y.sum())) for x, y in pairs) == [1] * 4


@pytest.mark.parametrize("seed", range(6))
def test_one_picture_has_fields_of_each_kind(seed: int) -> None:
    seeds, mask = (each[0, 0] for each in corridors(1, 1, 64, 64, n_inputs=2, seed=seed))
    assert max(reached(seeds, mask), reached(mask, seeds)) >= 200


@pytest.mark.parametrize("seed", range(6))
def test_a_single_mask_is_a_corridor_set_or_clear(seed: int) -> None:
    [mask] = corridors(2, 64, 64, n_inputs=1, seed=seed)
    shares = sorted(float(each.float().mean()) for each in mask)
    assert shares[0] < 0.52 < shares[1] + 0.05


def of_trial(found: Made) -> tuple[torch.Tensor, ...]:
    return found.book.contents.of(CORRIDOR)[0]


def test_masks_of_any_type_are_corridors_and_keep_it() -> None:
    found = made("a", "(torch.rand(2, 32, 32) < 0.5).float()", "return a.cumsum(-1)")
    [a] = of_trial(found)
    assert CORRIDOR in found.domain.names and a.dtype == torch.float32 and torch.unique(a).tolist() == [0, 1]


def test_labels_of_a_masks_shape_hold_their_ends() -> None:
    found = made("a, b", f"{MASK}, torch.randint(9, (4, 1, 32, 48))", "return (a * b).float().cumsum(-1)")
    _, labels = of_trial(found)
    assert torch.unique(labels).tolist() == [0, 8]


@pytest.mark.parametrize("kind", ["int64", "int32", "uint8"])
def test_labels_without_a_mask_are_a_corridor_of_one_and_walls_of_another(kind: str) -> None:
    found = made("labels", f"torch.randint(4, (4, 24, 24), dtype=torch.{kind})", "return labels.cumsum(-1)")
    [labels] = of_trial(found)
    assert (
        CORRIDOR in found.domain.names
        and str(labels.dtype) == f"torch.{kind}"
        and torch.unique(labels).tolist() == [0, 3]
    )
    ways = [picture == end for picture in labels for end in (0, 3)]
    assert max(reached(way & (torch.arange(576).view(24, 24) == way.int().argmax()), way) for way in ways) >= 100


def test_what_the_reference_refuses_is_named() -> None:
    found = made(
        "a",
        MASK,
        "assert not bool(a[..., 8:40].all(-1).any() | a[..., 6:26, :].all(-2).any())",
        "return a.float().cumsum(-1)",
    )
    assert CORRIDOR not in found.domain.names and f"{CORRIDOR} a" in found.domain.skipped


@pytest.mark.parametrize("draw", ["torch.randn(32, 32)", "torch.rand(64, 4) < 0.5", "torch.randint(999, (32, 32))"])
def test_numbers_narrow_masks_and_words_are_no_corridors(draw: str) -> None:
    assert CORRIDOR not in made("x", draw, "return x * 2").domain.names
