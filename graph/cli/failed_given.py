"""The kernels that a search was given and that are not right: seeds of its user's, and the seed bank's."""

from __future__ import annotations

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.history.lineage import figures, finding
from ridgeline.checkpoints.report.wording import figure_words
from ridgeline.tools.records.vocabulary import Origin, Status

_WHOSE = {Origin.SEED: "a seed kernel", Origin.BANK: "a kernel of an earlier search (the seed bank)"}


def failed_given(archive: Archive) -> list[str]:
    """Return one line for each given kernel that was judged and is not right: whose it is, and why."""
    given = (candidate for origin in _WHOSE for candidate in archive.candidates(origin=origin))
    told = ((candidate, figures(finding(archive, candidate.id))) for candidate in given)
    return [
        f"not right: {candidate.id}, {_WHOSE[candidate.origin]}: {figure_words(found)}"
        for candidate, found in told
        if found["status"] not in (None, Status.OK)
    ]
