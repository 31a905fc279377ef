"""Kernels that a user gives, as candidates: seeds of a problem, seeds told to a search, files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ridgeline.tools.records.search import Candidate

if TYPE_CHECKING:
    from ridgeline.tools.records.problem import Target
    from ridgeline.tools.records.vocabulary import Origin


def given_kernel(candidate_id: str, source: str, target: Target, *, origin: Origin, round_: int = 0) -> Candidate:
    """Return a candidate that came of no idea and of no other kernel."""
    return Candidate(
        id=candidate_id,
        origin=origin,
        round=round_,
        idea_id=None,
        parent_id=None,
        source=source,
        language=target.language,
        interface=target.interface,
    )
