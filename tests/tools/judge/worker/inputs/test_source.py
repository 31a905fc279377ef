"""The contents that timed calls meet: new in every set, of the inputs' own kind, and not a few draws in disguise."""

from __future__ import annotations

import pytest
import torch
from tests.tools.judge.worker.made import made_of

from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.inputs import source as judge_inputs
from ridgeline.tools.judge.worker.inputs.source import SecretSource
from ridgeline.tools.judge.worker.inputs.timed_sets import is_intact
from ridgeline.tools.judge.worker.inputs.values.structure import is_mask, order_of
from ridgeline.tools.judge.worker.inputs.values.transforms import (
    row_scaled,
    shifted,
    whole_numbers,
    with_one_run,
    with_outliers,
)
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.modelnew.tensor_bits import equal_bits
from ridgeline.tools.records.trial_names import TWEAKED

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
        assert is_intact(filling, index, views)
    return list(sets)


def test_contents_of_a_block_are_no_mixtures_of_a_few() -> None:
    contents = torch.stack([x.flatten().double() for (x,) in refilled("torch.randn(16, 64)")])
    singular = torch.linalg.svdvals(contents)
    assert float(singular[-1]) > 0.05 * float(singular[2])  # every set adds a direction of its own


def test_contents_stay_within_the_range_of_the_draws() -> None:
    for (x,) in refilled("torch.rand(16, 64)"):
        assert float(x.min()) >= 0 and float(x.max()) <= 1


@pytest.mark.parametrize(
    "symmetric", ["a + a.mT", "((a + a.mT) > 0).float()", "(3 * (a + a.mT)).long()", "a @ a.mT + 1"]
)
def test_symmetric_inputs_stay_symmetric(symmetric: str) -> None:
    if "@" in symmetric:
        symmetric = (
            f"(lambda x: x.tril() + x.tril(-1).mT)({symmetric})"  # a sum of products is symmetric but for rounding
        )
    contents = [x for (x,) in refilled(f"(lambda a: {symmetric})(torch.randn(16, 16))")]
    assert all(torch.equal(x, x.mT) for x in contents)
    assert any(not torch.equal(x, contents[0]) for x in contents)


def test_a_symmetric_input_that_is_always_alike_is_told_by_no_few_rows_and_stays_definite() -> None:
    positions = "torch.arange(64.) - torch.arange(64.)[:, None]"
    known = torch.exp(-(torch.arange(64.0) - torch.arange(64.0)[:, None]).abs() / 8).double()
    for (x,) in refilled(f"torch.exp(-({positions}).abs() / 8)", body="torch.linalg.cholesky(x)"):
        assert torch.equal(x, x.mT) and float(torch.linalg.eigvalsh(x.double())[0]) > 0
        singular = torch.linalg.svdvals(x.double() / known)
        assert float(singular[-1]) > 1e-5  # as a product of vectors: rank one or two


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
    for _, mask in (*map(secret.transformed, (shifted, row_scaled, whole_numbers), "abc"), secret.tweaked("d", "e")):
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


@pytest.mark.parametrize(
    "draw",
    [
        "torch.randint(0, 900, (8, 1)) + torch.arange(64)",
        "(torch.randperm(900)[:8, None] * 64 + torch.arange(64)).flatten()",
    ],
)
def test_most_timed_sets_have_positions_and_slots_as_they_are_drawn_and_no_trial_has(draw: str) -> None:
    """A kernel that looks whether they follow each other gains what its callers gain."""
    reference = Reference(REFERENCE.format(names="x, at", body="x[at]", inputs=f"torch.randn(65536), {draw}"))
    source = SecretSource(reference, b"secret")

    def follow_each_other(at: torch.Tensor) -> bool:
        return bool((at.view(8, 64).diff(dim=1) == 1).all())

    assert not any(follow_each_other(source.nominal(f"trial {i}")[1]) for i in range(16))
    filling, views = source.fill("renewal:1", 64), source.given("views")
    timed = 0
    for index in range(64):
        filling.write(index, views)
        timed += follow_each_other(views[1])
    assert 36 <= timed <= 60


LAYER = """    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(64, 32)

    def forward"""


def test_tweaked_parameters_differ_in_one_row_each() -> None:
    source = REFERENCE.format(names="x", body="self.layer(x)", inputs="torch.randn(4, 64)")
    secret = SecretSource(Reference(source.replace("    def forward", LAYER)), b"secret")
    base = secret.weights.random("nominal_1")
    tweaked = secret.weights.with_slices(base, "tweaked_1")
    assert int((base["layer.weight"] != tweaked["layer.weight"]).any(dim=1).sum()) == 1
    assert int((base["layer.bias"] != tweaked["layer.bias"]).sum()) == 1


def test_tweaked_trials_change_a_row_of_each_parameter_and_a_number_of_each() -> None:
    source = REFERENCE.format(names="x", body="self.layer(x)", inputs="torch.randn(4, 64)")
    contents = made_of(source.replace("    def forward", LAYER)).book.contents
    given, none, row, number = (contents.at_hand(trial)[1] for trial in ("nominal_1", *TWEAKED))
    differing = [
        [int((given[name] != changed[name]).sum()) for name in ("layer.weight", "layer.bias")]
        for changed in (none, row, number)
    ]
    assert differing == [[0, 0], [64, 1], [1, 1]]


def test_a_changed_input_is_noticed() -> None:
    reference = Reference(REFERENCE.format(names="x", body="x * 2", inputs="torch.randn(16, 64)"))
    filling = SecretSource(reference, b"secret").fill("renewal:1", 3)
    views = (torch.empty(16, 64),)
    filling.write(1, views)
    views[0][5, 7] += 1
    assert not is_intact(filling, 1, views)


def test_integers_beside_floats_differ_in_every_set() -> None:
    sets = refilled("torch.randn(64), torch.randint(0, 1000, (64,))", names="x, n", body="x + n", n_sets=200)
    assert len({tuple(n.tolist()) for _, n in sets}) == 200


def test_a_draw_too_slow_for_every_set_is_chosen_from_element_by_element(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge_inputs, "_DRAWS_S", 0.0)
    sets = refilled("torch.randn(64), torch.randint(0, 1000, (64,))", names="x, n", body="x + n")
    assert len({tuple(n.tolist()) for _, n in sets}) == 24
    assert all(len({int(n[i]) for _, n in sets}) <= 2 for i in range(64))


def test_permutations_stay_permutations() -> None:
    for _, places in refilled("torch.randn(64), torch.randperm(64)", names="x, p", body="x[p]"):
        assert sorted(places.tolist()) == list(range(64))


def test_sorted_inputs_stay_sorted() -> None:
    for (x,) in refilled("torch.rand(64).sort().values"):
        assert bool((x.diff() >= 0).all())


def test_definite_matrices_stay_definite() -> None:
    for (x,) in refilled("(lambda b: b @ b.mT + 0.1 * torch.eye(16))(torch.randn(16, 16))"):
        assert float(torch.linalg.eigvalsh(x)[0]) > 0


ALIKE = {
    "a table": "torch.linspace(0, 1, 48).sin().view(6, 8)",
    "positions": "torch.arange(48) / 48",
    "falling frequencies": "0.1 ** (torch.arange(8) / 8)",
    "one number": "torch.tensor(0.5)",
    "zeros": "torch.zeros(6, 8)",
    "ones": "torch.ones(6, 8)",
    "a symmetric matrix": "2 * torch.eye(8)",
    "equal rows": "torch.arange(8).sin().expand(6, 8).contiguous()",
    "a mask": "torch.ones(6, 8, dtype=torch.bool)",
    "a causal mask of numbers": "torch.ones(8, 8).tril()",
    "a padding mask of integers": "(torch.arange(8) < torch.arange(2, 8)[:, None]).long()",
    "lengths": "torch.full((16,), 100)",
    "offsets": "torch.arange(0, 90, 10)",
    "a permutation": "torch.arange(64).view(8, 8).mT.flatten()",
}


@pytest.mark.parametrize("kind", ALIKE)
def test_an_input_that_is_always_alike_is_changed_within_its_range(kind: str) -> None:
    given, trials, sets = changed(ALIKE[kind])
    for other in (*trials, sets[0], sets[1]):
        assert not torch.equal(given, other), kind
        assert other.double().min() >= min(0.0, float(given.min())) and other.double().max() <= max(
            1.0, float(given.max())
        )
        assert order_of(other) == order_of(given) or not order_of(given) or is_mask(given), kind
    assert not torch.equal(sets[0], sets[1]) or given.numel() < 9, kind


@pytest.mark.parametrize("drawn", ["", ", torch.randperm(32)"])
def test_elements_of_a_table_that_is_always_alike_are_mixed_by_themselves(drawn: str) -> None:
    """Beside a permutation every set is a draw: with one weight for a row two numbers told all of it."""
    names, table = (
        "x, k, p" if drawn else "x, k",
        "torch.exp(-(torch.arange(32.)[:, None] - torch.arange(33.)).abs() / 8)",
    )
    inputs = f"torch.randn(9), {table}{drawn}"
    body = "x * 2 + k[p].sum()" if drawn else "x * 2 + k.sum()"
    reference = Reference(REFERENCE.format(names=names, body=body, inputs=inputs))
    secret, given = SecretSource(reference, b"secret"), reference.draw_inputs(0)[1].double()
    trials = [secret.nominal(f"trial {i}") for i in range(24)]
    for contents in (trials, refilled(inputs, names=names, body=body)):
        tables = [views[1].double() for views in contents]
        made_up = [sum(_least_left(given, i, row) < 1e-5 for i, row in enumerate(table)) for table in tables]
        assert min(made_up) < 16 and sum(each < 32 for each in made_up) > 20, "of 32 rows, in 24 draws"
        assert contents is not trials or sum(each > 24 for each in made_up) > 4, "few others are there, too"


def _least_left(given: torch.Tensor, i: int, row: torch.Tensor) -> float:
    """Return what no mixture of one of the given rows with another explains of a row, over its norm."""
    away = given - given[i]
    weights = ((row - given[i]) @ away.mT) / away.square().sum(-1).clamp_min(1e-12)
    return float((row - given[i] - weights[:, None] * away).norm(dim=-1).min() / row.norm())


@pytest.mark.parametrize(
    "inputs",
    ["torch.full((8, 8), -torch.inf).triu(1)", "torch.arange(9)", "torch.zeros(9).long()"],
)
def test_an_input_none_of_whose_values_may_be_others_is_kept_and_named(inputs: str) -> None:
    reference = Reference(REFERENCE.format(names="x, k", body="x * 2 + k.sum()", inputs=f"torch.randn(9), {inputs}"))
    secret = SecretSource(reference, b"secret")
    assert (secret.ways.kept, secret.ways.varied) == ((1,), ())
    assert equal_bits(secret.nominal("a")[1], secret.given("b")[1])


def changed(alike: str) -> tuple[torch.Tensor, list[torch.Tensor], list[torch.Tensor]]:
    """Return an input that is always alike as it is given, as two trials have it, and as timed sets have it."""
    inputs = f"torch.randn(9), {alike}"
    secret = SecretSource(Reference(REFERENCE.format(names="x, k", body="x * 2 + k.sum()", inputs=inputs)), b"secret")
    sets = [views[1] for views in refilled(inputs, names="x, k", body="x * 2 + k.sum()")]
    return secret.given("a")[1], [secret.nominal("b")[1], secret.tweaked("a", "c")[1]], sets


def test_no_parameter_stays_an_identity() -> None:
    source = REFERENCE.format(names="x", body="self.layer(x)", inputs="torch.randn(4, 64)")
    identity = LAYER.replace("32)", "64, bias=False)\n        nn.init.eye_(self.layer.weight)")
    secret = SecretSource(Reference(source.replace("    def forward", identity)), b"secret")
    assert int((secret.weights.random("a")["layer.weight"] == torch.eye(64)).sum()) < 64


def test_a_buffer_of_zeros_and_ones_stays_a_mask() -> None:
    source = REFERENCE.format(names="x", body="x * self.mask", inputs="torch.randn(80, 80)")
    mask = LAYER.replace("self.layer = nn.Linear(64, 32)", 'self.register_buffer("mask", torch.ones(80, 80).tril())')
    secret = SecretSource(Reference(source.replace("    def forward", mask)), b"secret")
    assert torch.equal(secret.weights.random("a")["mask"], torch.ones(80, 80).tril())


def test_outliers_are_few_and_far_beyond_the_rest() -> None:
    secret = SecretSource(Reference(REFERENCE.format(names="x", body="x * 2", inputs="torch.rand(64, 96)")), b"secret")
    (x,) = secret.transformed(with_outliers, "a")
    assert {int(n) for n in (x > 88.8).sum(dim=1)} == {0, 1}
    assert float(x.min()) >= 0


def test_a_tweaked_input_of_one_dimension_differs_in_a_part() -> None:
    secret = SecretSource(Reference(REFERENCE.format(names="x", body="x * 2", inputs="torch.randn(160)")), b"secret")
    assert 0 < int((secret.given("a")[0] != secret.tweaked("a", "b")[0]).sum()) <= 10


def test_a_run_is_a_64th_of_one_row_that_samples_of_every_row_rarely_meet() -> None:
    secret = SecretSource(
        Reference(REFERENCE.format(names="x", body="x * 2", inputs="torch.randn(32, 256)")), b"secret"
    )
    places = []
    for i in range(20):
        differs = secret.given("a")[0] != secret.tweaked("a", f"b{i}", with_one_run)[0]
        rows, columns = differs.nonzero(as_tuple=True)
        assert len(set(rows.tolist())) == 1
        assert columns.tolist() == list(range(int(columns[0]), int(columns[0]) + 4))
        places.append((int(rows[0]), int(columns[0])))
    assert len(set(places)) > 15
