"""The ledger of machine time; the journal has the cost of models."""

from __future__ import annotations

from ridgeline.checkpoints.storage.database import Database


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
        """Return the sums `cpu_s`, `gpu_s` and `wall_s`."""
        sums = ", ".join(f"COALESCE(SUM({column}), 0.0) AS {column}" for column in ("cpu_s", "gpu_s", "wall_s"))
        return self._database.query(f"SELECT {sums} FROM ledger")[0]
