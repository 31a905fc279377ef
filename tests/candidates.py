"""Candidates for the tests of every room: what a test does not say is as of a file given for judgement."""

from __future__ import annotations

from typing import Any

from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import Interface, Origin


def candidate_of(
    source: str, *, name: str = "kernel", language: str = "cpp", interface: str = "c", **fields: Any
) -> Candidate:
    """Return a candidate with this source; `fields` are further ones of the record."""
    usual = {"origin": Origin.FILE, "round": 0, "idea_id": None, "parent_id": None}
    return Candidate(id=name, source=source, language=language, interface=Interface(interface), **(usual | fields))
