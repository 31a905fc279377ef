"""The validity of a stored certificate: it stands, or is to be given again."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
