"""The saver under a real LangGraph graph in a process of its own, killed with kill -9 inside a fan-out."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from tests.graph.programs import ended, started

from ridgeline.checkpoints.storage.database import BUSY_TIMEOUT_S
from ridgeline.checkpoints.storage.saver import open_saver, prune
from ridgeline.tools.errors import StorageError

BRANCHES, ROUNDS = 6, 3
PROGRAM = r"""
import asyncio, operator, os, sys, time
from pathlib import Path
from typing import Annotated, TypedDict
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send
from ridgeline.checkpoints.storage.saver import open_saver, prune

folder, slow = Path(sys.argv[1]), float(sys.argv[2])
BRANCHES, ROUNDS = 6, 3

class Search(TypedDict):
    round: int
    done: Annotated[list[str], operator.add]

class Branch(TypedDict):
    id: str
    done: Annotated[list[str], operator.add]

class Output(TypedDict):
    done: Annotated[list[str], operator.add]

def log(line):
    with open(folder / "executions", "a") as file:
        file.write(line + "\n")

def step(name):
    async def node(state):
        number = int(state["id"].split("i")[1])
        await asyncio.sleep(slow * (1 + number))
        log(f"{name} {state['id']}")
        return {"done": [state["id"]]} if name == "benchmark" else {}
    return node

def branch():
    graph = StateGraph(Branch, output_schema=Output)
    names = ["write", "verify", "benchmark"]
    for name in names:
        graph.add_node(name, step(name))
    for before, after in zip([START, *names], [*names, END]):
        graph.add_edge(before, after)
    return graph.compile()

async def main():
    async with open_saver(folder / "search.sqlite") as saver:
        async def ideate(state):
            log(f"ideate {state['round'] + 1}")
            return {"round": state["round"] + 1}
        async def select(state):
            await prune(saver, "search", keep_last=1)
            return {}
        graph = StateGraph(Search)
        graph.add_node("ideate", ideate)
        graph.add_node("implement", branch())
        graph.add_node("select", select)
        graph.add_edge(START, "ideate")
        def fan_out(state):
            return [Send("implement", {"id": f"r{state['round']}i{n}"}) for n in range(BRANCHES)]
        graph.add_conditional_edges("ideate", fan_out, ["implement"])
        graph.add_edge("implement", "select")
        graph.add_conditional_edges("select", lambda s: "ideate" if s["round"] < ROUNDS else END, ["ideate", END])
        app = graph.compile(checkpointer=saver)
        config = {"configurable": {"thread_id": "search"}}
        known = await app.aget_state(config)
        given = None if known.values else {"round": 0, "done": []}
        async for _ in app.astream(given, config, durability="sync"):
            await prune(saver, "search", keep_last=1)
        state = await app.aget_state(config)
        print(",".join(sorted(state.values["done"])))

asyncio.run(main())
"""


def _executions(folder: Path) -> list[str]:
    log = folder / "executions"
    return log.read_text().splitlines() if log.exists() else []


def _kill_after(folder: Path, executions: int) -> None:
    with started(PROGRAM, folder, "0.05", stdout=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 60
        while len(_executions(folder)) < executions and time.monotonic() < deadline:
            time.sleep(0.005)
        assert process.poll() is None
        process.kill()


def test_a_search_killed_inside_a_fan_out_repeats_only_what_was_in_flight(tmp_path: Path) -> None:
    for executions in (11, 27):  # round 1 and round 2, in the middle of branches
        _kill_after(tmp_path, executions)
    code, said, errors = ended(PROGRAM, tmp_path, "0.01")
    assert code == 0, errors
    planned = sorted(f"r{r}i{n}" for r in range(1, ROUNDS + 1) for n in range(BRANCHES))
    assert said.strip().split(",") == planned
    counts = Counter(_executions(tmp_path))
    assert len(counts) == ROUNDS * (1 + 3 * BRANCHES)
    repeated = sum(n - 1 for n in counts.values())
    assert repeated <= 2 * BRANCHES, counts  # for each kill, a node of each branch whose checkpoint was not yet stored


def test_pruning_keeps_the_newest_checkpoint_only_and_drops_what_hung_below_the_others(tmp_path: Path) -> None:
    code, _, errors = ended(PROGRAM, tmp_path, "0")
    assert code == 0, errors

    async def count() -> tuple[int, int, int]:
        async with open_saver(tmp_path / "search.sqlite") as saver:
            await prune(saver, "search", keep_last=1)
            again = await prune(saver, "search", keep_last=1)
            found = []
            for table in ("checkpoints", "writes"):
                async with saver.conn.execute(f"SELECT COUNT(*) FROM {table}") as cursor:
                    found.append((await cursor.fetchone() or [0])[0])
            return (*found, again)

    checkpoints, writes, again = asyncio.run(count())
    assert (checkpoints, writes, again) == (1, 0, 0)


async def test_a_write_that_never_committed_does_not_lock_the_file_after_the_close(tmp_path: Path) -> None:
    columns = "thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel"
    insert = f"INSERT INTO writes ({columns}) VALUES ('t', '', ?, '', 0, '')"
    async with open_saver(tmp_path / "search.sqlite") as saver:
        await saver.conn.execute(insert, ["cancelled"])
        held = await saver.conn.execute(
            "SELECT name FROM sqlite_master"
        )  # alive, as in the traceback of a failed search
    began = time.monotonic()
    async with open_saver(tmp_path / "search.sqlite") as again:
        await again.conn.execute(insert, ["later"])
        await again.conn.commit()
        rows = await again.conn.execute_fetchall("SELECT checkpoint_id FROM writes")
    assert [tuple(row) for row in rows] == [("later",)]
    assert time.monotonic() - began < BUSY_TIMEOUT_S
    assert held is not None


async def test_a_cancelled_task_leaves_its_error_alone_and_a_task_that_ended_what_it_wrote(tmp_path: Path) -> None:
    config = {"configurable": {"thread_id": "search", "checkpoint_ns": "", "checkpoint_id": "1"}}
    async with open_saver(tmp_path / "search.sqlite") as saver:
        await saver.aput_writes(config, [("round", 1), ("branch:to:implement", None)], "ended")
        await saver.aput_writes(config, [("round", 1), ("__error__", asyncio.CancelledError())], "cancelled")
        rows = await saver.conn.execute_fetchall("SELECT task_id, channel FROM writes ORDER BY task_id, idx")
    assert [tuple(row) for row in rows] == [
        ("cancelled", "__error__"), ("ended", "round"), ("ended", "branch:to:implement"),
    ]  # fmt: skip


async def test_a_damaged_database_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "search.sqlite"
    path.write_bytes(b"garbage " * 4000)
    with pytest.raises(StorageError, match=r"search.sqlite: the database is damaged"):
        async with open_saver(path):
            pass


async def test_a_folder_that_cannot_be_written_is_one_line() -> None:
    with pytest.raises(StorageError, match=r"/proc/search.sqlite: cannot be written"):
        async with open_saver(Path("/proc/search.sqlite")):
            pass


def test_a_process_ends_when_an_exception_leaves_the_saver(tmp_path: Path) -> None:
    code = """
import asyncio, sys
from pathlib import Path
from ridgeline.checkpoints.storage.saver import open_saver
async def main():
    async with open_saver(Path(sys.argv[1])):
        raise RuntimeError("boom")
asyncio.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "s.sqlite")], capture_output=True, text=True, timeout=20
    )
    assert done.returncode == 1
    assert done.stderr.rstrip().endswith("RuntimeError: boom")


def test_importing_the_saver_does_not_import_langgraph() -> None:
    code = "import sys, ridgeline.checkpoints.storage.saver; assert 'langgraph' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)
