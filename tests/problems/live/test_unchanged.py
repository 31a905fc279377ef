"""A module of which a problem is made stays as it was, or as it was where it is refused."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.problems.live.modules import made
from torch import nn
from torch.nn import functional

from ridgeline.tools.errors import ProblemError


class Keeping(nn.Module):
    """Keeps what a module of a user's own may keep between its calls."""

    def __init__(self, forward: Callable[..., Any]) -> None:
        super().__init__()
        self.call = forward
        self.calls = 0
        self.seen: list[int] = []
        self.table = torch.ones(64)
        self.frozen = nn.Parameter(torch.zeros(64), requires_grad=False)
        self.register_buffer("cache", torch.zeros(8, 64))
        self.register_buffer("mean", torch.zeros(64))
        self.register_buffer("variance", torch.ones(64))

    def forward(self, x: torch.Tensor) -> Any:
        return self.call(self, x)


def normed(module: Keeping, x: torch.Tensor) -> torch.Tensor:
    return functional.batch_norm(x, module.mean, module.variance, training=True)


def flattening(module: Keeping, x: torch.Tensor) -> torch.Tensor:
    """Lay a tensor elsewhere, with the values that it has, as an RNN's `flatten_parameters` does on a GPU."""
    module.mean.data = module.mean.clone()
    return x + module.mean


def counting(module: Keeping, x: torch.Tensor) -> torch.Tensor:
    module.calls += 1
    module.seen.append(len(x))
    module.last = 2 * x
    return module.last + module.table


@pytest.mark.parametrize(
    ("forward", "name"),
    [
        (lambda m, x: x - m.mean.mul_(0.9).add_(x.mean(0), alpha=0.1), "mean"),
        (lambda m, x: (m.cache[0].copy_(x[0]), x @ m.cache.T)[1], "cache"),
        (lambda m, x: x if torch.compiler.is_exporting() else x + m.cache.data.add_(1)[0], "cache"),
        (lambda m, x: (m.cache.zero_(), x + 1)[1], "cache"),
        (lambda m, x: x + m.frozen.add_(1), "frozen"),
        (lambda m, x: x + m.table.add_(1), "table"),
        (normed, "mean"),
    ],
)
def test_one_that_writes_its_own_tensors_is_refused_as_the_judge_would_and_left_as_it_was(
    tmp_path: Path, forward: Callable[..., Any], name: str
) -> None:
    module = Keeping(forward)
    was = copy.deepcopy((module.state_dict(), module.table))
    with pytest.raises(
        ProblemError, match=rf"^ProblemSpec.from_module: forward\(\) changes its own `{name}` .*a cache"
    ):
        made(tmp_path, module, torch.randn(8, 64))
    for tensor, before in zip([*module.state_dict().values(), module.table], [*was[0].values(), was[1]], strict=True):
        assert torch.equal(tensor, before)
    assert not (tmp_path / "own").exists()


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.mean.resize_(99),
        lambda m: m.mean.resize_(5),
        lambda m: m.mean.untyped_storage().resize_(0),
        lambda m: m.cache.t_(),
        lambda m: setattr(m.mean, "data", torch.ones(99)),
        lambda m: setattr(m.mean, "data", torch.ones(64)),
        lambda m: setattr(m.frozen, "data", m.frozen.data.half()),
        lambda m: m.table.set_(torch.ones(2, 2)),
    ],
    ids=[
        "larger",
        "smaller",
        "no memory",
        "transposed",
        "of another size",
        "other values",
        "of another type",
        "another",
    ],
)
def test_a_tensor_that_it_makes_another_one_is_refused_and_has_its_memory_again(
    tmp_path: Path, change: Callable[[Keeping], Any]
) -> None:
    module = Keeping(lambda m, x: x if torch.compiler.is_exporting() else (change(m), x + 1)[1])
    tensors = [*module.state_dict(keep_vars=True).values(), module.table]
    was = copy.deepcopy(tensors)
    views = [tensor.detach() for tensor in tensors]
    sizes = [tensor.untyped_storage().nbytes() for tensor in tensors]
    with pytest.raises(ProblemError, match=r"forward\(\) changes its own `(mean|cache|frozen|table)` "):
        made(tmp_path, module, torch.randn(8, 64))
    for tensor, before, view, size in zip(tensors, was, views, sizes, strict=True):
        assert torch.equal(tensor, before) and (tensor.dtype, tensor.stride()) == (before.dtype, before.stride())
        assert (tensor.data_ptr(), tensor.untyped_storage().nbytes()) == (view.data_ptr(), size)


def test_a_tensor_that_it_lays_elsewhere_has_its_memory_again(tmp_path: Path) -> None:
    module = Keeping(lambda m, x: x + m.mean if torch.compiler.is_exporting() else flattening(m, x))
    before = module.mean.data_ptr()
    made(tmp_path, module, torch.randn(8, 64))
    assert module.mean.data_ptr() == before


@pytest.mark.parametrize(
    "kept",
    [
        lambda: torch.eye(8).to_sparse(),
        lambda: torch.empty(8, device="meta"),
        lambda: torch.quantize_per_tensor(torch.ones(4), 0.1, 0, torch.quint8),
        lambda: torch.ones(4, dtype=torch.complex64).conj(),
        lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
    ],
    ids=["sparse", "meta", "quantized", "conjugate", "nested"],
)
@pytest.mark.filterwarnings("ignore")  # torch warns that some of these are prototypes, or go
def test_tensors_of_other_kinds_in_attributes_are_left_alone(tmp_path: Path, kept: Callable[[], torch.Tensor]) -> None:
    module = Keeping(lambda m, x: x + m.table)
    module.kept = kept()
    made(tmp_path, module, torch.randn(8, 64))


def test_what_it_counts_and_keeps_is_what_it_was(tmp_path: Path) -> None:
    module = Keeping(counting)
    made(tmp_path, module, torch.randn(8, 64))
    assert (module.calls, module.seen, hasattr(module, "last")) == (0, [], False)
