"""What a search decided, to hold two of them against each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.calls.journal import Journal


def decisions(run: Path) -> dict[str, Any]:
    """Return all that a search decided: ideas, kernels, what was measured, calls, elites by round, the selection."""
    with Archive.open_read_only(run) as archive:
        return {
            "ideas": [idea.to_json() for idea in archive.ideas()],
            "kernels": sorted((c.id, c.model, c.source, str(c.parent_id)) for c in archive.candidates()),
            "measured": sorted((e.candidate_id, e.purpose, e.status, e.speedup or 0) for e in archive.evaluations()),
            "calls": sorted((call.call_id, call.model, call.state) for call in Journal(archive).calls()),
            "rounds": [(r.round, r.ideas, r.elites, r.best_id) for r in archive.rounds()],
            "best": archive.run().best_id,
        }
