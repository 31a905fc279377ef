"""Candidates of a Python runner: what each call is given."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from ridgeline.tools.records.vocabulary import Role
from ridgeline.tools.runner.wire import RunnerFailureCode
from ridgeline.tools.runner.worker import candidates
from ridgeline.tools.runner.worker.candidates import ExtensionCandidate
from ridgeline.tools.runner.worker.device import RunFailed
from ridgeline.tools.runner.worker.setup import Pointer


@pytest.mark.parametrize(
    ("result", "n_outputs", "says"),
    [
        (None, 1, "forward returned an undefined tensor, which holds nothing"),
        ((torch.ones(1), None), 2, "forward[1] returned an undefined tensor, which holds nothing"),
        ("text", 1, "forward returned str, not torch.Tensor"),
        ((), 1, "forward returned a tuple of 0, not a tuple or list of 1"),
        (torch.ones(1), 2, "forward returned Tensor, not a tuple or list of 2"),
    ],
)
def test_a_result_that_is_no_tensor_is_told_as_what_an_extension_returns(
    monkeypatch: pytest.MonkeyPatch, result: Any, n_outputs: int, says: str
) -> None:
    monkeypatch.setattr(candidates, "load_extension", lambda name, library: SimpleNamespace(forward=None))
    monkeypatch.setattr(ExtensionCandidate, "_bound", lambda self: [])
    outputs = [[torch.ones(1)]] * n_outputs
    setup: Any = SimpleNamespace(library="kernel.so", values=[], outputs=outputs, n_sets=1)
    state: Any = SimpleNamespace(check=lambda what: None)
    with pytest.raises(RunFailed) as failure:
        ExtensionCandidate(setup, state).outputs(result)
    assert (failure.value.code, str(failure.value)) == (RunnerFailureCode.NOT_A_TENSOR, says)


def test_an_extension_gets_other_scalars_each_as_the_type_that_it_had(monkeypatch: pytest.MonkeyPatch) -> None:
    forward = SimpleNamespace(forward=lambda *arguments: arguments)
    monkeypatch.setattr(candidates, "load_extension", lambda name, library: forward)
    sets = [torch.zeros(2), torch.ones(2)]
    setup: Any = SimpleNamespace(
        library="kernel.so", values=[Pointer(role=Role.INPUT, views=sets), 0.5, 3, True], outputs=[sets], n_sets=2
    )
    state: Any = SimpleNamespace(check=lambda what: None)
    candidate = ExtensionCandidate(setup, state)
    assert candidate.calls[1]()[1:] == (0.5, 3, True)
    candidate.take_scalars([0.75, 3.0, 1.0])
    given = candidate.calls[1]()
    assert given[0] is sets[1] and given[1:] == (0.75, 3, True)
    assert [type(value) for value in given[1:]] == [float, int, bool]
