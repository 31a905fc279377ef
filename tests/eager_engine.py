"""The local engine without torch.compile, which would take most of a minute and says nothing of candidates."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from ridgeline.tools.engine import BaselineTask, Task
from ridgeline.tools.engines.local import LocalEngine

R = TypeVar("R")


class EagerOnlyEngine(LocalEngine):
    """Times PyTorch's eager mode alone; everything else is the local engine's."""

    async def submit(self, task: Task[R]) -> R:
        return await super().submit(replace(task, compile_modes=()) if isinstance(task, BaselineTask) else task)
