"""What a candidate may change of torch, and what torch changes by itself."""

from __future__ import annotations

import pytest
import torch

from ridgeline.tools.runner.worker.checks import GlobalState, check_apart, check_form
from ridgeline.tools.runner.worker.device import RunFailed


def test_a_replaced_function_of_torch_is_told_unless_torch_replaces_it_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    state = GlobalState()
    monkeypatch.setattr(torch, "manual_seed", lambda seed: seed)  # torch.compile does so when it is first called
    state.check("a call")
    monkeypatch.setattr(torch, "matmul", lambda a, b: a)
    with pytest.raises(RunFailed, match=r"a call replaced torch\.matmul"):
        state.check("a call")


def test_a_lazy_view_is_told_as_one() -> None:
    with pytest.raises(RunFailed, match=r"a lazily negated view, no plain tensor: return output\.resolve_neg\(\)"):
        check_form(torch._neg_view(torch.ones(2)), torch.ones(2))
    complex_ones = torch.ones(2, dtype=torch.complex64)
    with pytest.raises(RunFailed, match=r"a lazily conjugated view, no plain tensor: return output\.resolve_conj\(\)"):
        check_form(complex_ones.conj(), complex_ones)


def test_outputs_that_share_memory_are_told_unless_the_references_do() -> None:
    whole = torch.ones(4, 2)
    check_apart((whole[:2], whole[2:], torch.ones(2), torch.ones(0), whole[:0]), ())
    for outputs in ((whole, whole), (whole[:3], whole[2:]), (whole[1], whole)):
        with pytest.raises(RunFailed, match=r"outputs 0 and 1 share memory, which the reference's do not"):
            check_apart(outputs, ((0, 2),))
        check_apart((*outputs, torch.ones(2)), ((0, 1),))
