"""The sweep of a kernel's tunable values, as a short table."""

from __future__ import annotations

from collections.abc import Sequence

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.ranking import fastest_first
from ridgeline.tools.records.results import Evaluation
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import Origin, Purpose
from ridgeline.tools.wording import counted

ROWS = 5
"""Points that are listed: the best ones say where the optimum lies, a line more how the others ended."""


def sweep_rows(archive: Archive, root: str | None, candidates: Sequence[Candidate]) -> tuple[str, ...]:
    """Return the fastest of the points of the kernel `root` among `candidates`, then the values as written.

    A line each, fastest first; () without a sweep.
    """
    points = {c.id: c for c in candidates if c.origin is Origin.TUNE and c.parent_id == root}
    found = (archive.evaluation(candidate_id, Purpose.TUNE) for candidate_id in points)
    ended = [evaluation for evaluation in found if evaluation]
    if not ended:
        return ()
    right = fastest_first([evaluation for evaluation in ended if evaluation.speedup is not None])
    rows = [f"{_values(points[e.candidate_id])}: {_figures(e)}" for e in right[:ROWS]]
    written = archive.evaluation(root or "")
    if written is not None and written.speedup is not None:
        rows.append(f"as written ({root}): {_figures(written)}")
    if (rest := len(right) - ROWS) > 0:
        rows.append(counted(rest, "slower point"))
    rows += _failed([(points[e.candidate_id], e) for e in ended if e.speedup is None])
    return tuple(rows)


def _failed(points: Sequence[tuple[Candidate, Evaluation]]) -> list[str]:
    """Return a row for each reason for which points failed: how many, and the values of one."""
    by_reason: dict[str, list[Candidate]] = {}
    for point, evaluation in points:
        by_reason.setdefault(f"{evaluation.status} ({evaluation.reason_code})", []).append(point)
    return [f"{counted(len(failed), 'point')} failed, {why}: {_values(failed[0])}" for why, failed in by_reason.items()]


def _values(point: Candidate) -> str:
    return " ".join(f"{name}={value}" for name, value in point.tunables.items())


def _figures(evaluation: Evaluation) -> str:
    """Return the speedup with its interval and no time: two points are measured while the machine's speed differs."""
    interval = evaluation.timing.speedup_ci95 if evaluation.timing else None
    ends = f" ({interval[0]:.2f}-{interval[1]:.2f})" if interval else ""
    return f"{evaluation.speedup:.2f}x{ends}"
