"""An object over one database, which it closes."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from ridgeline.checkpoints.storage.database import Database


class HoldsDatabase:
    """A kind of memory in one database; a `with` block closes its file."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def close(self) -> None:
        """Close the file."""
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
