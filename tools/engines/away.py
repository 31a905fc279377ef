"""The engine of a machine that lacks the search's device: it builds where the compiler is, and measures nothing."""

from __future__ import annotations

from typing import TypeVar

from ridgeline.tools.engine import CompileTask, Engine, Task
from ridgeline.tools.errors import DeviceAway

R = TypeVar("R")


class AwayEngine:
    """Implements `Engine` for a device that is on another machine.

    A build needs the GPU's architecture alone: what does not build is found here, and repaired, before the device is
    there. The other machine builds anew.
    """

    def __init__(self, builder: Engine | None) -> None:
        """`builder` runs the compile tasks; None where this machine has no compiler for the device."""
        self._builder = builder

    async def submit(self, task: Task[R]) -> R:
        """Return a build.

        Raises:
            DeviceAway: the task needs the device, or no compiler here builds for it.
            InputError, EngineError: as the builder does.
        """
        is_build = isinstance(task, CompileTask)
        if is_build and self._builder is not None:
            return await self._builder.submit(task)
        raise DeviceAway(task.problem.device.name)

    async def aclose(self) -> None:
        """End every process that the builder started."""
        if self._builder is not None:
            await self._builder.aclose()
