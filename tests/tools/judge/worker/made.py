"""A small reference with its cases and its domain, without a judge's process."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from ridgeline.tools.judge.messages import Load
from ridgeline.tools.judge.worker.device import Cpu
from ridgeline.tools.judge.worker.domain.domain import Domain
from ridgeline.tools.judge.worker.grading.cases.case_book import CaseBook
from ridgeline.tools.judge.worker.inputs.source import SecretSource
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.records.vocabulary import DeviceKind, Interface, PrecisionClass

N_SETS = 4
SOURCE = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, {names}):
{body}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""


@dataclass
class Made:
    """A reference's cases and its domain."""

    book: CaseBook
    source: SecretSource
    domain: Domain


def made(names: str, inputs: str, *body: str, fatal_attempts: frozenset[str] = frozenset(), **limits: Any) -> Made:
    lines = "\n".join(f"        {line}" for line in body)
    return made_of(SOURCE.format(names=names, inputs=inputs, body=lines), fatal_attempts=fatal_attempts, **limits)


def made_of(
    source_text: str, *, fatal_attempts: frozenset[str] = frozenset(), secret: bytes = b"secret", **limits: Any
) -> Made:
    reference = Reference(source_text)
    source = SecretSource(reference, secret)
    memory: Any = SimpleNamespace(
        parameters=reference.named_tensors(), inputs=[reference.draw_inputs(0)], n_sets=N_SETS, device=Cpu()
    )  # no process to share memory with
    book = CaseBook(reference, source, memory, **({"budget_bytes": 1 << 20} | limits))
    return Made(book, source, Domain(book, reference, source, memory, fatal_attempts=fatal_attempts))


def loading(source: str, secret: str) -> Load:
    """Return the request that loads a reference for a small CPU; `secret` is hexadecimal."""
    return Load(
        reference_source=source,
        interface=Interface.C,
        tolerance=PrecisionClass.FP32,
        secret=secret,
        call_limit_s=60.0,
        device=DeviceKind.CPU,
        cache_bytes=1 << 16,
        memory_bytes=1 << 30,
    )
