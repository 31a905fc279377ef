"""A result's tensors: of Python's own containers and of those that derive from them, none of which is asked for anything."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
import torch

from ridgeline.tools.records.module_contract import DictResult, SequenceResult, TensorResult
from ridgeline.tools.runner.worker.checks import flat_like
from ridgeline.tools.runner.worker.device import RunFailed

ONE, TWO = torch.zeros(3), torch.ones(3)
PAIR = SequenceResult(parts=(TensorResult(), TensorResult()))
NAMED = DictResult(entries=(("a", TensorResult()), ("b", TensorResult())))


class Out(NamedTuple):
    """A named tuple."""

    first: torch.Tensor
    second: torch.Tensor


class Late(tuple):  # type: ignore[type-arg]
    """A tuple that would work when it is opened."""

    __slots__ = ()

    def __iter__(self) -> Iterator[Any]:
        raise AssertionError("it was opened")

    def __len__(self) -> int:
        raise AssertionError("it was opened")

    def __getitem__(self, index: Any) -> Any:
        raise AssertionError("it was opened")


class LateDict(dict):  # type: ignore[type-arg]
    """A dict that would."""

    def items(self) -> Any:
        raise AssertionError("it was opened")


@pytest.mark.parametrize(
    "result",
    [(ONE, TWO), [ONE, TWO], Out(ONE, TWO), Late((ONE, TWO))],
    ids=["tuple", "list", "named tuple", "late"],
)
def test_a_sequence_gives_what_it_stores(result: Any) -> None:
    assert [a is b for a, b in zip(flat_like(result, PAIR), (ONE, TWO), strict=True)] == [True, True]


@pytest.mark.parametrize("result", [torch.rand(3, 4).max(dim=-1), torch.rand(5).sort(), torch.rand(5).topk(2)])
def test_what_torch_returns_as_a_named_structure_is_a_sequence(result: Any) -> None:
    assert [a is b for a, b in zip(flat_like(result, PAIR), tuple(result), strict=True)] == [True, True]


@pytest.mark.parametrize("make", [dict, OrderedDict, LateDict])
def test_a_dict_gives_what_it_stores_in_the_references_order(make: Any) -> None:
    found = flat_like(make({"b": TWO, "a": ONE}), NAMED)
    assert found[0] is ONE and found[1] is TWO


@pytest.mark.parametrize(
    "result", [Late((ONE,)), (ONE, TWO, ONE), {"a": ONE, "b": TWO}, iter((ONE, TWO)), Late((ONE, "text"))]
)
def test_another_structure_is_refused(result: Any) -> None:
    with pytest.raises(RunFailed):
        flat_like(result, PAIR)
