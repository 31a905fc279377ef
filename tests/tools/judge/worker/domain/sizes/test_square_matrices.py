"""Square matrices are as near a multiple of the identity as the reference stays well conditioned with."""

from __future__ import annotations

import pytest
import torch
from tests.tools.judge.worker.made import made, made_of

from ridgeline.tools.judge.worker.domain.sizes.trial_sizes import slowest
from ridgeline.tools.judge.worker.grading.outputs.compare import compare
from ridgeline.tools.records.trial_names import (
    BANDED,
    BANDED_HIGH,
    LARGE_DIAGONALS,
    LARGE_VECTORS,
    NEAR_IDENTITIES,
    NEAR_IDENTITY,
    SMALL_NEAR_IDENTITY,
)

COUNTED = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.counts = nn.Parameter(0.5 + torch.rand(16, 16))

    def forward(self, x):
        steps = self.counts / self.counts.sum(1, keepdim=True)
        belief = torch.full_like(x[0], 1 / 16)
        for seen in x:
            belief = (belief @ steps) * seen
            belief = belief / belief.sum(1, keepdim=True)
        return belief


def get_inputs():
    return [0.5 + torch.rand(160, 8, 16)]


def get_init_inputs():
    return []
"""
CELL = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(50, 32)
        self.inner = nn.Linear(32, 32)

    def forward(self, tokens):
        state = torch.zeros(tokens.shape[1], 32, dtype=self.table.weight.dtype)
        for row in self.table(tokens):
            state = torch.tanh(row + self.inner(state))
        return state


def get_inputs():
    return [torch.randint(0, 50, (160, 8))]


def get_init_inputs():
    return []
"""
LAYER = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(64, 64)

    def forward(self, x):
        return self.layer(x)


def get_inputs():
    return [torch.randn(32, 64)]


def get_init_inputs():
    return []
"""


def test_transitions_that_hardly_leave_their_state_need_every_step() -> None:
    """Their counts over a row's sum mix at any size."""
    found = made_of(COUNTED)

    def believed(last: int, name: str) -> torch.Tensor:
        case = found.book.case(name)
        counts, x = case.parameters["counts"].double(), case.inputs[0].double()
        belief = torch.full_like(x[0], 1 / 16)
        for seen in x[len(x) - last :]:
            belief = (belief @ (counts / counts.sum(1, keepdim=True))) * seen
            belief = belief / belief.sum(1, keepdim=True)
        return belief

    assert set(NEAR_IDENTITIES) & set(found.domain.names)
    wrong = {
        name: compare(believed(48, name), found.book.case(name).expected[0]).errors.overall
        for name in ("nominal_0", *NEAR_IDENTITIES)
        if name in found.domain.names
    }
    assert wrong.pop("nominal_0") < 1e-9
    assert max(wrong.values()) > 1e-2


def test_a_cell_near_the_identity_beside_a_small_table_needs_every_step() -> None:
    found = made_of(CELL)

    def carried(last: int, name: str, dtype: torch.dtype = torch.float64) -> torch.Tensor:
        case = found.book.case(name)
        table, weight, bias = (case.parameters[n].to(dtype) for n in ("table.weight", "inner.weight", "inner.bias"))
        tokens = case.inputs[0]
        state = torch.zeros(tokens.shape[1], 32, dtype=dtype)
        for row in table[tokens[len(tokens) - last :]]:
            state = torch.tanh(row + state @ weight.mT + bias)
        return state

    for name, is_seen in (("nominal_0", False), (SMALL_NEAR_IDENTITY, True)):
        expected = found.book.case(name).expected[0]
        assert (compare(carried(48, name), expected).errors.overall > 1e-4) is is_seen
        assert compare(carried(160, name, torch.float32), expected).errors.overall < 5e-6


def test_matrices_that_merely_scale_the_output_are_not_brought_near_the_identity() -> None:
    assert not set(NEAR_IDENTITIES) & set(made_of(LAYER).domain.names)
    products = made("x, y", "torch.randn(64, 64), torch.randn(64, 64)", "return x @ y")
    assert not set(NEAR_IDENTITIES) & set(products.domain.names)


def test_a_square_input_is_near_the_identity_too() -> None:
    body = ("state = x[0]", "for row in x:", "    state = torch.tanh(state @ a) + row / 8", "return state")
    found = made("x, a", "torch.randn(120, 32), torch.randn(32, 32) / 12", *body)
    assert SMALL_NEAR_IDENTITY in found.domain.names
    inputs = found.book.case(SMALL_NEAR_IDENTITY).inputs
    assert float(inputs[1].amax(1).min()) > 0.5 and float(inputs[0].abs().max()) < 1


def test_a_softmax_of_small_logits_leaves_a_state_where_it_is_behind_large_diagonals() -> None:
    source = COUNTED.replace("0.5 + torch.rand(16, 16)", "0.02 * torch.randn(16, 16)")
    found = made_of(source.replace("self.counts / self.counts.sum(1, keepdim=True)", "self.counts.softmax(1)"))
    case = found.book.case(LARGE_DIAGONALS)
    assert float(case.parameters["counts"].softmax(1).diagonal().min()) > 0.9


def test_logits_of_a_few_long_rows_that_are_compared_are_as_large_as_gates() -> None:
    source = LAYER.replace("nn.Linear(64, 64)", "nn.Linear(64, 2, bias=False)")
    body = "kept, new = self.layer.weight.softmax(0)\n        return kept * torch.tanh(x) + new * x"
    found = made_of(source.replace("return self.layer(x)", body))
    largest = float(found.book.case(LARGE_VECTORS).parameters["layer.weight"].abs().max())
    assert largest == pytest.approx(6, rel=1e-3)


@pytest.mark.parametrize(
    ("moved", "expected"),
    [
        ({6: 3.0, 12: 2.8, 18: 0.5, 24: 0.05}, 12),
        ({6: 1.0, 12: 2.0, 18: 3.0, 24: 4.0}, 24),
        ({6: 1.0, 12: 1.9, 18: 0.0, 24: 1.0}, 24),
    ],
    ids=["saturated", "to the edge", "alike"],
)
def test_of_sizes_the_most_that_settles_about_as_late_as_any_is_taken(moved: dict[int, float], expected: int) -> None:
    assert slowest(24, moved.__getitem__) == expected
    assert slowest(1, float) == 1


def test_a_square_mask_of_infinities_and_numbers_near_the_end_of_a_type_are_no_fault() -> None:
    mask = "torch.full((64, 64), -torch.inf).triu(1)"
    masked = made("x, m", f"torch.randn(64, 64), {mask}", "return (torch.tanh(x @ x.mT) + m).softmax(-1)")
    assert set(NEAR_IDENTITIES) & set(masked.domain.names)
    for name in set(NEAR_IDENTITIES) & set(masked.domain.names):
        assert torch.equal(masked.book.case(name).inputs[1].isinf(), torch.ones(64, 64).triu(1).bool())
    large = made("x, m", "torch.randn(8, 64), 1e38 * (1 + torch.rand(64, 64))", "return torch.tanh(x @ (m / 1e38))")
    assert large.domain.names


PATHS = ("reached = torch.exp(logs[:4])", "for _ in range(31):",
         "    reached = torch.minimum(reached, (reached[:, :, None] + torch.exp(logs)).amin(1))", "return reached")  # fmt: skip
WALK = ("step = (scores / 4).softmax(1)", "found = start", "for _ in range(64):",
        "    found = 0.1 * start + 0.9 * step @ found", "return found")  # fmt: skip


def test_shortest_paths_along_a_line_need_every_round() -> None:
    found = made("logs", "torch.randn(32, 32)", *PATHS)

    def reached(rounds: int, name: str) -> torch.Tensor:
        lengths = found.book.case(name).inputs[0].double().exp()
        reached = lengths[:4]
        for _ in range(rounds):
            reached = torch.minimum(reached, (reached[:, :, None] + lengths).amin(1))
        return reached

    for name, is_seen in (("nominal_0", False), (BANDED_HIGH, True)):
        assert (compare(reached(22, name), found.book.case(name).expected[0]).errors.overall > 1e-3) is is_seen


def test_a_walk_along_a_line_is_longer() -> None:
    found = made("scores, start", "torch.randn(32, 32), torch.randn(32, 4)", *WALK)
    scores = found.book.case(BANDED).inputs[0]
    beyond = torch.ones(32, 32).triu(2).bool()
    assert float(scores[beyond].max()) < float(scores[~(beyond | beyond.mT)].min())


SHARES = ("mixed = logits.exp()", "for _ in range(32):", "    mixed = mixed / mixed.sum(1, keepdim=True)",
          "    mixed = mixed / mixed.sum(0, keepdim=True)", "return mixed")  # fmt: skip


def test_small_logits_are_told_apart_along_a_line_too() -> None:
    found = made("logits", "0.02 * torch.randn(16, 16)", *SHARES)

    def shares(rounds: int, name: str) -> torch.Tensor:
        mixed = found.book.case(name).inputs[0].double().exp()
        for _ in range(rounds):
            mixed = mixed / mixed.sum(1, keepdim=True)
            mixed = mixed / mixed.sum(0, keepdim=True)
        return mixed

    for name, is_seen in (("nominal_0", False), (BANDED, True)):
        assert (compare(shares(24, name), found.book.case(name).expected[0]).errors.overall > 1e-4) is is_seen


COSTS = "torch.randint(0, 10000, (4, 48)), torch.randint(1, 1000, (48, 48), dtype=torch.int32)"
ROUNDS = (
    "for _ in range(47):",
    "    start = torch.minimum(start, (start[:, :, None] + costs).amin(1))",
    "return start",
)


def test_costs_that_are_whole_numbers_lead_along_a_line_too() -> None:
    found = made("start, costs", COSTS, *ROUNDS)

    def wrong_after(rounds: int, name: str) -> int:
        reached, costs = found.book.case(name).inputs
        for _ in range(rounds):
            reached = torch.minimum(reached, (reached[:, :, None] + costs).amin(1))
        return int((reached != found.book.case(name).expected[0].values).sum())

    assert wrong_after(20, "nominal_0") == 0
    assert wrong_after(20, BANDED_HIGH) > 10
    assert LARGE_DIAGONALS not in found.domain.names, "none is larger than the largest"


def test_whole_numbers_stay_where_the_reference_refuses_them_beside_what_it_takes() -> None:
    body = (
        "assert float(ids.diagonal().double().mean()) < 90",
        "for _ in range(16):",
        "    x = torch.tanh(x @ w)",
        "return x + ids[0]",
    )
    found = made("x, w, ids", "torch.randn(4, 24), torch.randn(24, 24), torch.randint(0, 100, (24, 24))", *body)
    assert NEAR_IDENTITY in found.domain.names and 2 in found.source.lifts
    _, weights, ids = found.book.case(NEAR_IDENTITY).inputs
    assert float(ids.diagonal().double().mean()) < 90
    assert weights.diagonal().unique().numel() == 1
