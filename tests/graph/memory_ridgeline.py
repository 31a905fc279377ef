"""`ridgeline` with the engine of memory: a search takes no compiler, no sandbox and no torch."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import AsyncIterator
from typing import Any

from ridgeline.graph.cli import main
from ridgeline.graph.session import machine
from tests.graph.memory_engine import MemoryEngine


@contextlib.asynccontextmanager
async def open_engine(*_: Any, **__: Any) -> AsyncIterator[MemoryEngine]:
    yield MemoryEngine()


if __name__ == "__main__":
    machine.open_engine = open_engine  # type: ignore[assignment]
    sys.exit(main(sys.argv[1:]))
