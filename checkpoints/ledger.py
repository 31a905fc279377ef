"""The ledger of machine time; the journal has the cost of models."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from ridgeline.checkpoints.storage.database import Database
from ridgeline.checkpoints.storage.errors import damaged
from ridgeline.tools.errors import StorageError


class Ledger:
    """The entries of one search, in its archive's file; each is entered once."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def charge(self, entry_id: str, *, cpu_s: float, gpu_s: float, wall_s: float, what: str) -> None:
        """Enter a step's cost in seconds; a second entry under the same `entry_id` is ignored.

        `cpu_s` and `gpu_s` are seconds by the clock on either device, not multiplied by the number of threads.
        """
        entry = {"entry_id": entry_id, "what": what, "cpu_s": cpu_s, "gpu_s": gpu_s, "wall_s": wall_s}
        with self._database.write() as rows:
            rows.table("ledger").insert(entry, ignore=True)

    def totals(self) -> dict[str, float]:
        """Return the sums `cpu_s`, `gpu_s` and `wall_s`.

        Raises:
            StorageError: an entry is no number of seconds.
        """
        sums = ", ".join(f"COALESCE(SUM({column}), 0.0) AS {column}" for column in ("cpu_s", "gpu_s", "wall_s"))
        totals = self._database.query(f"SELECT {sums} FROM ledger")[0]
        self._expect_seconds(totals.values())
        return totals

    def entries(self) -> list[dict[str, Any]]:
        """Return every entry, oldest first: entry_id, what, cpu_s, gpu_s and wall_s.

        Raises:
            StorageError: a cost of one is no number of seconds.
        """
        found = self._database.query("SELECT entry_id, what, cpu_s, gpu_s, wall_s FROM ledger ORDER BY rowid")
        self._expect_seconds(entry[name] for entry in found for name in ("cpu_s", "gpu_s", "wall_s"))
        return found

    def _expect_seconds(self, costs: Iterable[object]) -> None:
        if not all(isinstance(cost, int | float) and math.isfinite(cost) for cost in costs):
            raise StorageError(f"{self._database.path}: {damaged('a cost is no number of seconds')}")
