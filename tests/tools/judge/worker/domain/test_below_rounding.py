"""A trial is left out whose vectors rounding decides on, unless any of them are right; all others stay."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tests.tools.judge.worker.made import SOURCE

from ridgeline.tools.judge.worker.device import Cpu
from ridgeline.tools.judge.worker.domain import domain as domains
from ridgeline.tools.judge.worker.domain.domain import Domain
from ridgeline.tools.judge.worker.grading.cases.case_book import CaseBook
from ridgeline.tools.judge.worker.grading.examiner import Examiner
from ridgeline.tools.judge.worker.inputs.source import SecretSource
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.records.vocabulary import PrecisionClass

CLOUDS = "torch.randn(16, 64, 3), torch.randn(16, 64, 3)"
ROTATION = (
    "x, y = x - x.mean(1, keepdim=True), y - y.mean(1, keepdim=True)",
    "u, s, vh = torch.linalg.svd(x.mT @ y)",
    "d = torch.det(u @ vh)",
    "return u @ torch.diag_embed(torch.stack((torch.ones_like(d), torch.ones_like(d), d), 1)) @ vh",
)
VECTORS = "return torch.linalg.eigh(x @ x.mT)"


def rotation(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return the rotations that bring clouds onto others, whose features it takes in another order."""
    x, y = x - x.mean(1, keepdim=True), y - y.mean(1, keepdim=True)
    u, _, vh = torch.linalg.svd((x.mT @ y).flip(1, 2))
    u = torch.cat((u[..., :2], u[..., 2:] * torch.det(u @ vh)[:, None, None]), -1)
    return (u @ vh).flip(1, 2)


class Tried:
    """The domain of a reference under a secret, with an examiner of its trials."""

    def __init__(self, names: str, inputs: str, *body: str, secret: bytes) -> None:
        lines = "\n".join(f"        {line}" for line in body)
        reference = Reference(SOURCE.format(names=names, inputs=inputs, body=lines))
        source = SecretSource(reference, secret)
        memory: Any = SimpleNamespace(parameters={}, inputs=[reference.draw_inputs(0)], n_sets=4, device=Cpu())
        self.book = CaseBook(reference, source, memory, budget_bytes=1 << 24)
        self.names = Domain(self.book, reference, source, memory).names
        self.examiner = Examiner(self.book, self.names, memory, reference, PrecisionClass.FP32)

    def refused_in(self, kernel: Any) -> list[str]:
        cases = map(self.book.case, self.names)
        return [c.name for c in cases if not all(self.examiner.passed_by((kernel(*c.inputs),), c))]


@pytest.mark.parametrize("secret", [b"s0", b"s4", b"s6"])
def test_a_rotation_of_clouds_of_one_direction_is_asked_of_no_kernel(secret: bytes) -> None:
    tried = Tried("x, y", CLOUDS, *ROTATION, secret=secret)
    assert tried.refused_in(rotation) == []
    assert {"integers", "blocked", "crowded", "alone_x", "shifted"} <= set(tried.names)
    assert set(tried.refused_in(lambda x, y: rotation(x, y).mT)) == set(tried.names)


def test_such_a_trial_was_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(domains, "objection_below_rounding", lambda *_: "")
    refused = Tried("x, y", CLOUDS, *ROTATION, secret=b"s0").refused_in(rotation)
    assert refused
    assert set(refused) <= {"silent_late", "silent_early", "held_late", "held_early"}


def test_trials_of_vectors_stay_where_any_basis_is_right() -> None:
    tried = Tried("x", "torch.randn(16, 6, 6)", VECTORS, secret=b"s0")
    assert {"integers", "silent_late", "silent_early"} <= set(tried.names)
