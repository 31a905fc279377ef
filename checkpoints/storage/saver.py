"""LangGraph's checkpoints in search.sqlite: opening so that a kill loses nothing, pruning so that they stay small."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiosqlite

from ridgeline.checkpoints.storage.errors import BUSY_TIMEOUT_S, storage_errors

if TYPE_CHECKING:  # importing LangGraph takes most of a second: only a run pays for it
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

# A superstep is over when a later checkpoint of its namespace exists. Branches' namespaces name the root checkpoint
# they hang below in `metadata`; once that is gone they can never be resumed and go with it. Ids grow with time: what is
# newer than the newest stored root may belong to a checkpoint that is still being written, and stays.
_DROP_OLD = """DELETE FROM checkpoints WHERE thread_id = :thread AND rowid NOT IN (
  SELECT rowid FROM (SELECT rowid, ROW_NUMBER() OVER (PARTITION BY checkpoint_ns ORDER BY checkpoint_id DESC) AS age
    FROM checkpoints WHERE thread_id = :thread) WHERE age <= :keep_last)"""
_DROP_BELOW = """DELETE FROM checkpoints WHERE thread_id = :thread AND checkpoint_ns <> ''
  AND json_extract(CAST(metadata AS TEXT), '$.parents.""') NOT IN (
    SELECT checkpoint_id FROM checkpoints WHERE thread_id = :thread AND checkpoint_ns = '')
  AND json_extract(CAST(metadata AS TEXT), '$.parents.""') < (
    SELECT MAX(checkpoint_id) FROM checkpoints WHERE thread_id = :thread AND checkpoint_ns = '')"""
_DROP_WRITES = """DELETE FROM writes WHERE thread_id = :thread AND NOT EXISTS (
    SELECT 1 FROM checkpoints AS kept WHERE kept.thread_id = writes.thread_id
      AND kept.checkpoint_ns = writes.checkpoint_ns AND kept.checkpoint_id = writes.checkpoint_id)
  AND checkpoint_id < (SELECT MAX(checkpoint_id) FROM checkpoints WHERE thread_id = :thread AND checkpoint_ns = '')"""


@asynccontextmanager
async def open_saver(path: Path) -> AsyncIterator[AsyncSqliteSaver]:
    """Give a checkpointer over `path` on a connection of its own, which is closed with the block.

    synchronous=NORMAL: a checkpoint costs no fsync and still survives `kill -9`. An unclosed connection would keep the
    process from ending.

    Raises:
        StorageError: the file is damaged or cannot be written, now or while the block runs.
    """
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        # aiosqlite's thread outlives a failed connect and then speaks to a closed event loop: fail here, without it.
        with closing(sqlite3.connect(path, timeout=BUSY_TIMEOUT_S)) as probe:
            probe.execute("PRAGMA schema_version").fetchone()
    try:
        async with aiosqlite.connect(path, timeout=BUSY_TIMEOUT_S) as connection:
            await connection.execute("PRAGMA journal_mode=WAL")
            await connection.execute("PRAGMA synchronous=NORMAL")
            saver = _make_saver(connection)
            await saver.setup()
            try:
                yield saver
            finally:
                # A write that was cancelled before its commit leaves a transaction, and SQLite keeps a closed
                # connection's lock for as long as a cursor lives, such as in the traceback of what ended the search.
                # Writes that nobody waits for any more may still come: under the lock none begins before the close.
                async with saver.lock:
                    await connection.rollback()
                    await connection.close()
    except sqlite3.Error:
        with storage_errors(path):
            raise


def _make_saver(connection: aiosqlite.Connection) -> AsyncSqliteSaver:
    """Return a saver that stores nothing but the error of a task that was cancelled.

    LangGraph stores beside it what the task had written until then. A resumed graph takes these writes for the task's
    whole output: cut between its values and its edges, the task is not run again, and the graph ends there.
    """
    from langgraph.checkpoint.serde.types import ERROR
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    class WholeTasksSaver(AsyncSqliteSaver):
        async def aput_writes(
            self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
        ) -> None:
            errors = [(channel, value) for channel, value in writes if channel == ERROR]
            is_cancelled = any(isinstance(error, asyncio.CancelledError) for _, error in errors)
            await super().aput_writes(config, errors if is_cancelled else writes, task_id, task_path)

    return WholeTasksSaver(connection)


async def prune(saver: AsyncSqliteSaver, thread_id: str, keep_last: int = 2) -> int:
    """Drop the checkpoints of supersteps that are over, but for the last `keep_last` of each namespace.

    The newest checkpoint, its pending writes and everything inside branches that still run stay, so a resume goes on
    exactly where it would have. Safe to call while the graph runs. Returns the number of checkpoints dropped.
    """
    if keep_last < 1:
        raise ValueError(f"keep_last must be at least 1, got {keep_last}")
    wanted = {"thread": thread_id, "keep_last": keep_last}
    async with saver.lock, saver.conn.cursor() as cursor:
        dropped = 0
        for statement in (_DROP_OLD, _DROP_BELOW, _DROP_WRITES):
            await cursor.execute(statement, wanted)
            dropped += cursor.rowcount if statement is not _DROP_WRITES else 0
        await saver.conn.commit()
    return dropped
