"""What a search has cost in machine time; what models cost is in the journal."""

from __future__ import annotations

from ridgeline.checkpoints.database import Database


class Ledger:
    """Costs entered once each, in the archive's file."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def charge(self, entry_id: str, *, cpu_s: float, gpu_s: float, wall_s: float, what: str) -> None:
        """Enter a step's cost in seconds; an `entry_id` that is already there keeps its first figures.

        `cpu_s` and `gpu_s` are the time the step spent on either, by the clock: not times the number of its threads.
        """
        entry = {"entry_id": entry_id, "what": what, "cpu_s": cpu_s, "gpu_s": gpu_s, "wall_s": wall_s}
        with self._database.write() as rows:
            rows.table("ledger").insert(entry, ignore=True)

    def totals(self) -> dict[str, float]:
        """Return the sums `cpu_s`, `gpu_s` and `wall_s`."""
        sums = ", ".join(f"COALESCE(SUM({column}), 0.0) AS {column}" for column in ("cpu_s", "gpu_s", "wall_s"))
        return self._database.query(f"SELECT {sums} FROM ledger")[0]
