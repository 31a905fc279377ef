"""Run the host: `python main.py [RUN_DIR]`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from graph.app import build_host
from langgraph.checkpoint.memory import InMemorySaver

from ridgeline import SearchOptions, open_context


async def main() -> None:
    """Search for a kernel for the slowest module of a made-up profile."""
    run_dir = Path(sys.argv[1]) if len(sys.argv) > 1 else None  # None: a new folder in runs/
    async with open_context(SearchOptions(problem="quickstart", run_dir=run_dir)) as context:
        host = build_host(context, InMemorySaver())
        config = {"configurable": {"thread_id": "host"}}
        state = await host.ainvoke({"profile_ms": {"quickstart": 1.2, "embedding": 0.3}}, config)
    print(state["report"])


if __name__ == "__main__":
    asyncio.run(main())
