"""The contents that timed calls meet: new in every set, of the inputs' own kind, and not a few draws in disguise."""

from __future__ import annotations

import torch

from ridgeline.tools.judge_inputs import SecretSource
from ridgeline.tools.judge_reference import Reference, Tensors

REFERENCE = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, {names}):
        return {body}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""


def refilled(inputs: str, *, names: str = "x", body: str = "x * 2", n_sets: int = 24) -> list[Tensors]:
    reference = Reference(REFERENCE.format(names=names, body=body, inputs=inputs))
    sets = tuple(tuple(t.clone() for t in reference.draw_inputs(0)) for _ in range(n_sets))
    filling = SecretSource(reference, b"secret").fill("renewal:1", n_sets)
    for index, views in enumerate(sets):
        filling.write(index, views)
        assert filling.is_intact(index, views)
    return list(sets)


def test_contents_of_a_block_are_no_mixtures_of_a_few() -> None:
    contents = torch.stack([x.flatten().double() for (x,) in refilled("torch.randn(16, 64)")])
    singular = torch.linalg.svdvals(contents)
    assert float(singular[-1]) > 0.05 * float(singular[2])  # every set adds a direction of its own


def test_contents_stay_within_the_range_of_the_draws() -> None:
    for (x,) in refilled("torch.rand(16, 64)"):
        assert float(x.min()) >= 0 and float(x.max()) <= 1


def test_symmetric_inputs_stay_symmetric() -> None:
    for (x,) in refilled("(lambda a: a + a.mT)(torch.randn(16, 16))"):
        assert torch.equal(x, x.mT)


def test_zeros_that_are_structure_stay_zero() -> None:
    for (x,) in refilled("torch.randn(16, 16).tril()"):
        assert torch.equal(x, x.tril())


MASKED = "torch.randn(16, 16), torch.full((16, 16), float('-inf')).triu(1)"


def test_a_mask_of_infinities_stays_one() -> None:
    for x, mask in refilled(MASKED, names="x, m", body="x + m"):
        assert torch.equal(mask, torch.full((16, 16), -torch.inf).triu(1))
        assert bool(torch.isfinite(x).all())


def test_a_draws_own_infinities_and_nans_are_kept_where_they_are() -> None:
    for (x,) in refilled("torch.where(torch.rand(64) < 0.2, torch.nan, torch.randn(64))"):
        assert 0 < int(x.isnan().sum()) < 64


def test_transforms_leave_a_mask_of_infinities_in_place() -> None:
    reference = Reference(REFERENCE.format(names="x, m", body="x + m", inputs=MASKED))
    secret = SecretSource(reference, b"secret")
    for _, mask in (secret.shifted("a"), secret.row_scaled("b"), secret.integers("c"), secret.tweaked("d", "e")):
        assert torch.equal(mask.isinf(), torch.ones(16, 16).triu(1).bool())
        assert not bool(mask.isnan().any())


def test_integers_alone_differ_in_every_set() -> None:
    contents = {tuple(x.tolist()) for (x,) in refilled("torch.randint(0, 1000, (64,))")}
    assert len(contents) == 24


def test_reduced_types_and_single_numbers_are_refilled() -> None:
    body = "x.float() * y"
    for x, y in refilled("torch.randn(4, 8).bfloat16(), torch.randn(())", names="x, y", body=body):
        assert x.dtype == torch.bfloat16
        assert bool(torch.isfinite(x).all()) and bool(torch.isfinite(y))


LAYER = """    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(64, 32)

    def forward"""


def test_tweaked_parameters_differ_in_one_row_each() -> None:
    source = REFERENCE.format(names="x", body="self.layer(x)", inputs="torch.randn(4, 64)")
    secret = SecretSource(Reference(source.replace("    def forward", LAYER)), b"secret")
    base, tweaked = secret.parameters("nominal_1"), secret.tweaked_parameters("nominal_1", "tweaked_1")
    assert int((base["layer.weight"] != tweaked["layer.weight"]).any(dim=1).sum()) == 1
    assert int((base["layer.bias"] != tweaked["layer.bias"]).sum()) == 1


def test_a_changed_input_is_noticed() -> None:
    reference = Reference(REFERENCE.format(names="x", body="x * 2", inputs="torch.randn(16, 64)"))
    filling = SecretSource(reference, b"secret").fill("renewal:1", 3)
    views = (torch.empty(16, 64),)
    filling.write(1, views)
    views[0][5, 7] += 1
    assert not filling.is_intact(1, views)
