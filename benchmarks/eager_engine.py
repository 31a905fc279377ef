"""The local engine without torch.compile's minutes, where only eager PyTorch's time says anything."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar, cast

from ridgeline.tools.engine import BaselineTask, Task
from ridgeline.tools.engines.local import LocalEngine

R = TypeVar("R")


class EagerOnlyEngine(LocalEngine):
    """Times eager PyTorch (on a GPU with TF32 off and on) and leaves torch.compile out."""

    async def submit(self, task: Task[R]) -> R:
        """Run `task` as the local engine does."""
        return await super().submit(
            cast("Task[R]", replace(task, compile_modes=())) if isinstance(task, BaselineTask) else task
        )
