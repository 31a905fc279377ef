"""The distance of a certificate's fresh measurements from the search's own of the same kernel."""

from __future__ import annotations

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.history.right_kernels import figures_of
from ridgeline.tools.records.results import Timing
from ridgeline.tools.records.vocabulary import Label, Purpose
from ridgeline.tools.wording import ratio_words


def measured_again_words(archive: Archive, best_id: str | None) -> str:
    """Return both figures of the best kernel where its certificate's gain is outside of the search's interval, else ""."""
    if best_id is None:
        return ""
    found, again = archive.own_evaluation(best_id), figures_of(archive.evaluation(best_id, Purpose.CERTIFY))
    before, after = found.timing if found else None, again.timing if again else None
    if before is None or after is None or before.speedup is None or after.speedup is None:
        return ""
    if before.speedup_ci95 is None or before.speedup_ci95[0] <= after.speedup <= before.speedup_ci95[1]:
        return ""
    found_words, again_words = _figure(before, before.speedup), _figure(after, after.speedup)
    return f"the search measured {found_words}; the certificate's fresh measurements say {again_words}"


def _figure(timing: Timing, speedup: float) -> str:
    """Return a speedup with its interval, and that other programs disturbed it where they did."""
    busy = " on a busy machine" if Label.BUSY_MACHINE in timing.labels else ""
    return f"{ratio_words(speedup, timing.speedup_ci95)}{busy}"
