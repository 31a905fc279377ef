"""The reason for which a kernel is a run's best although the search's own timing of another one ranks before it."""

from __future__ import annotations

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.history.gains import measured_side_by_side
from ridgeline.tools.records.vocabulary import SEARCHED
from ridgeline.tools.wording import ratio_words


def chosen_words(archive: Archive, best_id: str | None) -> str:
    """Return over which kernel the best one was chosen, and by what; "" where its own timing ranks first too."""
    first = next(iter(archive.ranking(SEARCHED, limit=1)), None)
    if first is None or best_id is None or first.candidate_id == best_id or first.speedup is None:
        return ""
    pair = measured_side_by_side(archive).get((first.candidate_id, best_id))
    if pair is None or pair.ratio <= 1:
        return ""
    own, in_turns = ratio_words(first.speedup, first.speedup_interval), ratio_words(pair.ratio, pair.ratio_ci95)
    return f"chosen over {first.candidate_id}, {own} by a timing of its own: in turns with it {in_turns} as fast"
