"""A machine on which the library finds a test's own engine and model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from ridgeline.graph.library import evaluation
from ridgeline.graph.session import beginning, machine, options
from tests.graph.memory_engine import MemoryEngine
from tests.graph.scripted_model import ScriptedModel


def in_memory(
    monkeypatch: pytest.MonkeyPatch, engine: Callable[[], MemoryEngine], model: Callable[[], ScriptedModel]
) -> None:
    """Let each search and judgement have the engine and the model that these give, whatever this machine lacks."""

    @asynccontextmanager
    async def open_engine(*_: object, **__: object) -> AsyncIterator[MemoryEngine]:
        yield engine()

    for module in (machine, evaluation):
        monkeypatch.setattr(module, "open_engine", open_engine)
    for module in (machine, options, evaluation):
        monkeypatch.setattr(module, "check_machine", lambda *_, **__: None)
    monkeypatch.setattr(beginning, "make_models", lambda *_, **__: [model()])
