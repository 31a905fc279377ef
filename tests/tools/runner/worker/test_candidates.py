"""Candidates of a Python runner: what each call is given."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from ridgeline.tools.records.vocabulary import Role
from ridgeline.tools.runner.worker import candidates
from ridgeline.tools.runner.worker.candidates import ExtensionCandidate
from ridgeline.tools.runner.worker.setup import Pointer


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
