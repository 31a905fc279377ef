"""The validity of a stored certificate: it stands, is to be given again, or is outdone by a kernel that it does not know."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ridgeline.checkpoints.stored_certificate import failures_of
from ridgeline.graph.search.ranking.elites import read_standings
from ridgeline.graph.search.ranking.leaders import within_noise
from ridgeline.tools.records.vocabulary import Purpose

if TYPE_CHECKING:
    from ridgeline.checkpoints.archive import Archive


def is_to_be_given_again(archive: Archive, *, is_certified: bool = False) -> bool:
    """Say whether the engine failed on a kernel that was tried before the winner, or in a step that only informs.

    A kernel behind the winner may have such a failure too, in an earlier archive. The winner stands whatever became of
    it. With `is_certified`, for a search that ended with a certificate, also say whether it is gone: a kill between that
    and further rounds leaves none.
    """
    stored = archive.certificate()
    if stored is None:
        return is_certified
    before = {failure.candidate_id for failure in stored.failed_before}
    return bool(stored.not_done) or any(
        failure.purpose is Purpose.CERTIFY and failure.candidate_id in before for failure in archive.engine_failures()
    )


def is_outdone(archive: Archive) -> bool:
    """Say whether a kernel that was judged after the certificate was measured may beat the one that it is of.

    One may that cannot be told apart from the fastest of those that did not fail there. The archive's order tells it, so a
    verdict is heeded also where the search was cut right after it.
    """
    stored = archive.certificate()
    if stored is None:
        return False
    compared = {leader.candidate_id for leader in stored.selection}
    failed = failures_of(stored)
    judged = archive.evaluations()
    last = max((n for n, each in enumerate(judged) if each.purpose is Purpose.CERTIFY), default=len(judged))
    later = {each.candidate_id for each in judged[last + 1 :]}
    may_win = within_noise([each for each in read_standings(archive) if each.candidate.id not in failed])
    return any(each.candidate.id in later - compared for each in may_win)


def forget_winner(run_dir: Path, archive: Archive) -> None:
    """Drop the certificate of a search that goes on: the kernel that it certifies next counts."""
    archive.forget_winner()
    for name in ("certificate.json", "certificate.md"):
        (run_dir / name).unlink(missing_ok=True)
