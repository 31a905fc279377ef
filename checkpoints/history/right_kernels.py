"""The kernels of a search that are right as far as it knows: what a run without a winner has to offer."""

from __future__ import annotations

import dataclasses

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.ranking import fastest_first
from ridgeline.tools.records.results import Evaluation
from ridgeline.tools.records.vocabulary import SEARCHED, Purpose, ReasonCode, Status

UNPROVEN = (ReasonCode.NO_GAIN, ReasonCode.TIMINGS_SPREAD)
"""Why a kernel that was found right once more may get no certificate: its times."""


def right_kernels(archive: Archive) -> list[Evaluation]:
    """Return the kernels that no verification found wrong, fastest first.

    Of one whose certificate failed for its times these count, since they are the newer and the more thorough ones. One
    whose certificate failed otherwise (wrong under fresh secrets, a finding of a sanitizer, a build that fails) is left out.
    """
    tried = {e.candidate_id: e for e in archive.evaluations(purpose=Purpose.CERTIFY)}
    right: dict[str, Evaluation] = {}
    for found in archive.ranking(SEARCHED):
        again = tried.get(found.candidate_id)
        if again is None or is_right(again):
            right.setdefault(found.candidate_id, figures_of(again) or found)
    return fastest_first(list(right.values()))


def is_right(certified: Evaluation) -> bool:
    """Say whether a certificate found its kernel right, whatever it found of its times."""
    return certified.status is Status.OK or certified.reason_code in UNPROVEN


def figures_of(certified: Evaluation | None) -> Evaluation | None:
    """Return a certificate's evaluation with its times as those of a right kernel; None where it has none."""
    if certified is None or not is_right(certified) or certified.timing is None or certified.timing.speedup is None:
        return None
    return dataclasses.replace(certified, status=Status.OK, reason_code=ReasonCode.NONE, reason="")


def why_none(archive: Archive) -> str:
    """Return in words why a search has no right kernel."""
    if not archive.evaluations():
        return "no kernel was judged yet"
    if archive.ranking(SEARCHED, limit=1):
        return "each kernel that was right in the search failed at its certificate"
    return "no kernel was right"
