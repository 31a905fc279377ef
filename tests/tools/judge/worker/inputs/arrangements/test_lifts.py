"""Inputs lifted in blocks, in a trial and in timed sets: some columns far above others, large numbers beside each other."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from tests.tools.judge.worker.grading.judged import Judged
from tests.tools.judge.worker.made import Made, made

from ridgeline.tools.judge.worker.inputs.arrangements.lifts import apart, blocked
from ridgeline.tools.judge.worker.inputs.distributions import Distribution, SetKind
from ridgeline.tools.judge.worker.inputs.values.structure import range_without_sentinels
from ridgeline.tools.records.trial_names import APART, NOMINAL

BLOCKED = "blocked"
SYMMETRIC = torch.randn(16, 16, generator=torch.Generator().manual_seed(0))


def lifted(found: Made, seed: int) -> list[torch.Tensor]:
    """Return the first input as the trial and as a timed set have it."""
    views = tuple(map(torch.empty_like, found.source.given("a")))
    timed = found.source.timed_set(f"timed {seed}", views, 1, SetKind(Distribution.BLOCKED))
    return [found.source.blocked(f"{BLOCKED} {seed}")[0], timed[0]]


def test_one_column_is_the_largest_in_most_rows() -> None:
    found = made("logits", "torch.randn(512, 8)", "return logits.softmax(-1)")
    assert BLOCKED in found.domain.names
    by_trial, timed = zip(
        *(
            [float(logits.argmax(-1).bincount(minlength=8).max()) / 512 for logits in lifted(found, seed)]
            for seed in range(8)
        ),
        strict=True,
    )
    assert min(by_trial) > 0.25 and sorted(by_trial + timed)[8] > 0.5  # as drawn some 0.15


def test_numbers_that_are_never_negative_stay_so_and_zeros_of_structure_stay() -> None:
    for seed in range(8):
        generator = torch.Generator().manual_seed(seed)
        assert bool((blocked(torch.rand(33, 7), generator) >= 0).all())
        triangle = blocked(torch.randn(16, 16).tril(), generator)
        assert torch.equal(triangle, triangle.tril())


@pytest.mark.parametrize("tensor", [torch.eye(4), torch.zeros(0), torch.tensor(2.0)])
def test_masks_and_single_numbers_stay(tensor: torch.Tensor) -> None:
    assert torch.equal(blocked(tensor, torch.Generator().manual_seed(3)), tensor)


@pytest.mark.parametrize("shape", [(5,), (1, 1), (1, 9), (9, 1), (2, 3, 4, 5)])
def test_any_shape_is_lifted_and_its_strides_do_not_matter(shape: tuple[int, ...]) -> None:
    tensor = torch.randn(shape)
    changed = blocked(tensor, torch.Generator().manual_seed(1))
    assert changed.shape == shape and not torch.equal(changed, tensor)
    strided = blocked(tensor.mT.contiguous().mT if len(shape) > 1 else tensor, torch.Generator().manual_seed(1))
    assert torch.equal(strided, changed)


def rounds(n: int) -> Callable[[torch.Tensor], torch.Tensor]:
    def rank(logits: torch.Tensor) -> torch.Tensor:
        moves, ranks = logits.softmax(-1), torch.full((256,), 1 / 256)
        for _ in range(n):
            ranks = 0.15 / 256 + 0.85 * ranks @ moves
        return ranks

    return rank


def five_of_each_block(x: torch.Tensor) -> torch.Tensor:
    return x.view(8, -1, 256).topk(5).values.flatten(1).topk(8).values


def room_for_twice(logits: torch.Tensor) -> torch.Tensor:
    expert = torch.nn.functional.one_hot(logits.argmax(-1), 8)
    return logits * (expert.cumsum(0) * expert <= 2 * len(logits) // 8).all(-1, keepdim=True)


CASES = {
    "rounds are left out": ("logits", "torch.randn(256, 256)", rounds(14), rounds(100)),
    "five of each block": ("x", "torch.randn(8, 8192)", five_of_each_block, lambda x: x.topk(8).values),
    "room for twice the mean": ("logits", "torch.randn(2048, 8)", room_for_twice, lambda logits: logits * 1),
}
BODIES = {
    "rounds are left out": (
        "moves, ranks = logits.softmax(-1), torch.full((256,), 1 / 256, dtype=logits.dtype)",
        "for _ in range(100):",
        "    ranks = 0.15 / 256 + 0.85 * ranks @ moves",
        "return ranks",
    ),
    "five of each block": ("return x.topk(8).values",),
    "room for twice the mean": ("return logits * 1",),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", CASES)
def test_what_relies_on_even_places_is_wrong(name: str) -> None:
    names, inputs, relying, honest = CASES[name]
    secrets = [bytes([n]) for n in range(6)]
    judged = [Judged(names, inputs, *BODIES[name], secret=secret) for secret in secrets]
    assert all(each.passes(NOMINAL[0], relying) and each.passes(BLOCKED, honest) for each in judged)
    assert sum(not each.passes(BLOCKED, relying) for each in judged) >= 4


def three_of_each_lane(x: torch.Tensor) -> torch.Tensor:
    return x.view(8, -1, 256).topk(3, dim=1).values.flatten(1).topk(8).values


@pytest.mark.parametrize("relying", [five_of_each_block, three_of_each_lane])
def test_most_sets_of_few_rows_hold_the_largest_numbers_in_one_block_or_lane(
    relying: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    hidden = 0
    for seed in range(60):
        x = blocked(
            torch.randn(8, 8192, generator=torch.Generator().manual_seed(seed)), torch.Generator().manual_seed(seed)
        )
        hidden += torch.equal(relying(x), x.topk(8).values)
    assert hidden <= 12  # of 60


def test_whole_numbers_hold_their_largest_together_within_their_range() -> None:
    found = made("scores", "torch.randint(0, 1 << 24, (8, 8192), dtype=torch.int32)", "return scores.topk(8).values")
    given, hidden = found.source.given("a")[0], 0
    for seed in range(10):
        for scores in lifted(found, seed):
            assert int(scores.min()) >= 0 and int(scores.max()) < 1 << 24
            hidden += torch.equal(five_of_each_block(scores), scores.topk(8).values)
    assert torch.equal(five_of_each_block(given), given.topk(8).values) and hidden <= 9  # of 20


def test_whole_numbers_that_the_reference_refuses_lifted_are_named_and_the_others_are_lifted() -> None:
    bound = "assert int((labels == 99).sum(-1).max()) < 30"
    found = made("x, labels", "torch.randn(8, 512), torch.randint(0, 100, (8, 512))", bound, "return x * labels")
    assert BLOCKED in found.domain.names and "blocked labels" in found.domain.skipped
    x, labels = found.source.blocked("a")
    assert float(x.max()) > 8 and int((labels == 99).sum(-1).max()) < 30


@pytest.mark.parametrize("draw", ["randn", "rand"])
def test_the_smallest_lie_together_in_some_sets_too(draw: str) -> None:
    hidden = 0
    for seed in range(40):
        generator = torch.Generator().manual_seed(seed)
        x = -blocked(getattr(torch, draw)(64, 8192, generator=generator), torch.Generator().manual_seed(seed))
        smallest = x.view(64, -1, 256).topk(5).values.flatten(1).topk(8).values
        hidden += torch.equal(smallest, x.topk(8).values)
    assert hidden <= 12  # of 40


def test_no_row_of_whole_numbers_is_lifted_to_one_alone() -> None:
    found = made("scores", "torch.randint(0, 1000, (8192, 28), dtype=torch.int32)", "return scores * 2.0")
    for scores in lifted(found, 1):
        assert int((scores >= 998).sum()) > 4000 and not bool((scores == scores[:, :1]).all(-1).any())


def test_groups_of_rows_share_hardly_a_column_in_matrices_of_any_shape() -> None:
    for seed, tensor in enumerate((torch.randn(96, 64), torch.randn(3, 64, 96), torch.rand(96, 64))):
        changed = apart(tensor, torch.Generator().manual_seed(seed))
        stayed = (changed == tensor).float()
        assert 1 / 10 < float(stayed.mean()) < 1 / 3
        assert bool((changed <= tensor).all()) and bool((changed >= 0).all()) is bool((tensor >= 0).all())
        groups = {tuple(row) for row in stayed.reshape(-1, stayed.shape[-1]).tolist()}
        assert 4 <= len(groups) <= 8 and torch.tensor(sorted(groups)).sum(0).max() == 1


@pytest.mark.parametrize(
    "tensor",
    [torch.randn(7, 64), torch.randn(64), torch.eye(16), torch.ones(16, 16), SYMMETRIC + SYMMETRIC.mT],
)
def test_few_rows_masks_and_symmetric_matrices_are_not_set_apart(tensor: torch.Tensor) -> None:
    assert torch.equal(apart(tensor, torch.Generator().manual_seed(0)), tensor)


def test_zeros_of_structure_stay_where_groups_are_set_apart() -> None:
    triangle = apart(torch.randn(32, 32).tril(), torch.Generator().manual_seed(0))
    assert torch.equal(triangle, triangle.tril())


def test_some_timed_sets_are_apart_and_the_trial_of_blocks_is_not() -> None:
    found = made("x", "torch.randn(96, 64)", "return torch.sigmoid(x)")
    views = tuple(map(torch.empty_like, found.source.given("a")))
    drawn = [found.source.timed_set(f"{i}", views, 1, SetKind(Distribution.BLOCKED))[0] for i in range(24)]
    are_low = [float((x < -2).float().mean()) > 1 / 2 for x in drawn]
    assert 2 <= sum(are_low) <= 12
    assert not any(float((found.source.blocked(f"{i}")[0] < -2).float().mean()) > 1 / 2 for i in range(24))


def test_inputs_without_groups_have_no_such_trial() -> None:
    assert APART not in made("x", "torch.randn(512)", "return torch.sigmoid(x)").domain.names
    assert APART not in made("x, i", "torch.randn(512), torch.randint(512, (9,))", "return x[i]").domain.names


SENTINELS = {
    "labels that do not count": (4000, "0.2", -100),
    "few labels, and pixels without one": (21, "0.1", 255),
    "empty places": (2048, "0.3", 2**31 - 1),
}


@pytest.mark.parametrize("case", SENTINELS)
def test_no_number_lies_between_the_others_and_a_sentinel(case: str) -> None:
    count, share, sentinel = SENTINELS[case]
    draw = f"torch.where(torch.rand(64, 32) < {share}, {sentinel}, torch.randint(0, {count}, (64, 32)))"
    found = made("x, y", f"{draw}, torch.randn(64, 32)", "return y * (x != x.max()) + x.clamp(0, 20)")
    for seed in range(6):
        for numbers in lifted(found, seed):
            inside = (numbers >= 0) & (numbers < count)
            assert bool((inside | (numbers == sentinel)).all()) and bool((numbers == sentinel).any())


@pytest.mark.parametrize(
    "draw",
    ["torch.randint(0, 4000, (64, 32))", "torch.randint(-9, 9, (64, 32))", "2 ** torch.randint(0, 40, (64, 32))"],
)
def test_a_range_without_such_numbers_is_whole(draw: str) -> None:
    for seed in range(20):
        torch.manual_seed(seed)
        numbers = eval(draw)
        assert range_without_sentinels(numbers) == (int(numbers.min()), int(numbers.max()))


def test_a_large_tensor_is_not_told_by_one_of_its_columns_and_its_ends_are_its_own() -> None:
    numbers = torch.randint(50_000, (400_000, 8))
    numbers[:, 0] = torch.randint(6, (400_000,))
    numbers[3, 5], numbers[5, 3] = 0, 49_999
    assert range_without_sentinels(numbers) == (0, 49_999)
    numbers[torch.rand(numbers.shape) < 0.1] = -100
    assert range_without_sentinels(numbers) == (0, 49_999)


@pytest.mark.parametrize("trial", ["nominal_0", BLOCKED, "banded", "corridor"])
@pytest.mark.parametrize("count", [20, 4000])
def test_no_trial_has_a_number_between_labels_and_a_sentinel(trial: str, count: int) -> None:
    draw = f"torch.where(torch.rand(4, 64, 64) < 0.2, -100, torch.randint(1, {count}, (4, 64, 64)))"
    found = made("x, y", f"torch.randn(4, 64, 64), {draw}", "return x.cumsum(-1) * (y % 7 + 1) + y.clamp(0, 20)")
    numbers = found.book.contents.of(trial)[0][1] if trial in found.domain.names else torch.tensor(-100)
    assert bool(((numbers == -100) | ((numbers >= 0) & (numbers < count))).all())
