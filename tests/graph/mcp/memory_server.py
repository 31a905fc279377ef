"""`ridgeline mcp --runs-dir FOLDER/runs` over the engine of memory, which prints as any library might."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from tests.graph.mcp.scenario import config_in
from tests.graph.memory_engine import MemoryEngine

from ridgeline.graph.mcp.stdio import serve_stdio
from ridgeline.tools.engine import Task


class Printing(MemoryEngine):
    async def submit(self, task: Task[Any]) -> Any:
        print("a library prints")
        printing = await asyncio.create_subprocess_shell("echo a process prints; cat")  # reads all of standard input
        await printing.wait()
        return await super().submit(task)


if __name__ == "__main__":
    sys.exit(serve_stdio(config_in(Path(sys.argv[1]).parent, engine=Printing())))
