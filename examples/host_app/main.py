"""Run the host: `python main.py [RUNS_DIR]`; run again with the same folder, it goes on, or gives what it found."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from graph.app import build_host
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from ridgeline import EventLines, search_node

THREAD: Any = {"configurable": {"thread_id": "host"}}


async def main(runs_dir: Path) -> None:
    """Search for a kernel for the slowest module of a made-up profile."""
    search = search_node({"rounds": 1, "runs_dir": str(runs_dir)})
    async with AsyncSqliteSaver.from_conn_string(str(runs_dir / "host.sqlite")) as saver:
        host = build_host(search, saver)
        is_cut = bool((await host.aget_state(THREAD)).tasks)  # killed or cancelled: go on where it was
        given = None if is_cut else {"profile_ms": {"quickstart": 1.2, "embedding": 0.3}}
        line_of = EventLines()
        async for event in host.astream(given, THREAD, stream_mode="custom"):
            if line := line_of(event):
                print(line, flush=True)
        print((await host.aget_state(THREAD)).values["report"])


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "runs")
    folder.mkdir(parents=True, exist_ok=True)
    asyncio.run(main(folder))
