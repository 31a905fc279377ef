"""A described GPU for a module's builder, which has none: files ask for a GPU before they build for it.

`torch.cuda.is_available()` and the functions that describe a GPU answer as they will where the module runs. Whatever
needs the GPU itself (a stream, memory, a launch) still raises.
"""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from ridgeline.tools.records.builder_spec import GpuFacts

_LEAST_WITH_BF16 = (8, 0)


@contextmanager
def described_gpu(facts: GpuFacts) -> Iterator[None]:
    """Let torch describe a GPU."""
    answers = _answers(facts)
    before = {name: getattr(torch.cuda, name) for name in answers}
    for name, answer in answers.items():
        setattr(torch.cuda, name, answer)
    try:
        yield
    finally:
        for name, function in before.items():
            setattr(torch.cuda, name, function)


def _answers(facts: GpuFacts) -> dict[str, Callable[..., Any]]:
    major, minor = _capability(facts.arch)
    properties = types.SimpleNamespace(
        name=facts.name,
        major=major,
        minor=minor,
        multi_processor_count=facts.cores,
        total_memory=facts.memory_bytes,
        warp_size=32,
    )
    fixed: dict[str, Any] = {
        "is_available": True,
        "device_count": 1,
        "current_device": 0,
        "get_device_name": facts.name,
        "get_device_capability": (major, minor),
        "get_device_properties": properties,
        "is_bf16_supported": (major, minor) >= _LEAST_WITH_BF16,
    }
    return {name: _always(value) for name, value in fixed.items()}


def _always(value: Any) -> Callable[..., Any]:
    return lambda *_, **__: value


def _capability(arch: str) -> tuple[int, int]:
    """Return (9, 0) for "sm_90a"."""
    digits = re.sub(r"\D", "", arch)
    return int(digits[:-1]), int(digits[-1])
