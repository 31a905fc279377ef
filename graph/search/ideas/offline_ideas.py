"""A user's idea as the offline model carries it out: the structures that its words name, and nothing else of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ridgeline.checkpoints.storage.errors import record_errors
from ridgeline.graph.search.context import subject_of
from ridgeline.graph.search.events import warn
from ridgeline.graph.search.ideas.user_ideas import title_of, user_draft
from ridgeline.tools.errors import UncoveredError
from ridgeline.tools.records.problem import Target
from ridgeline.tools.records.vocabulary import Interface, PrecisionClass

if TYPE_CHECKING:
    from ridgeline.checkpoints.archive import Archive
    from ridgeline.graph.models.requests import Subject
    from ridgeline.graph.search.context import SearchContext


@dataclass(frozen=True, slots=True, kw_only=True)
class OfflineReading:
    """The structures that the offline model can use for a problem, and those of them that an idea's words name."""

    named: tuple[str, ...]
    known: tuple[str, ...]  # none where it does not cover the problem

    @property
    def why_not_tried(self) -> str:
        """Return why such an idea is not tried, with what could be; "" of one that names a structure."""
        if self.named:
            return ""
        if not self.known:
            return "the offline model, which searches alone, composes nothing for this problem"
        return (
            "the offline model, which searches alone, knows no structure in these words; "
            f"here it knows {', '.join(self.known)}"
        )


def read_by_offline(text: str, subject: Subject) -> OfflineReading:
    """Return what the offline model reads of an idea for this problem."""
    from ridgeline.graph.offline.model import composer_for
    from ridgeline.graph.offline.wording import named_structures

    try:
        composer = composer_for(subject)
    except UncoveredError:
        return OfflineReading(named=(), known=())
    known, named = composer.applicable(), named_structures(composer, text)
    return OfflineReading(named=tuple(s for s in known if s in named), known=known)


def reading_of_run(archive: Archive, text: str) -> OfflineReading | None:
    """Return what the offline model of a run reads of an idea.

    None where a language model reads it too, and where the run does not hold yet what it searches for.
    """
    record, description = archive.run(), archive.description()
    if not record.is_offline or description is None or record.device is None or record.problem is None:
        return None
    with record_errors(archive.path):
        target = Target(
            name=record.problem_name,
            reference_source=record.reference_source or "",
            interface=Interface(record.problem["interface"]),
            tolerance=PrecisionClass(record.problem["tolerance"]),
            device=record.device,
        )
    return read_by_offline(text, subject_of(target.described(description), record.facts or ()))


def carried_out(context: SearchContext, texts: Sequence[str], round_: int) -> list[str]:
    """Return the user's ideas that the search's models can carry out; of each other one is warned, once a session.

    A replay tries what the recorded search tried.
    """
    if not context.models.composes_alone:
        return list(texts)
    kept = []
    for text in texts:
        is_recorded = context.decisions.has_kernel_of(user_draft(text), round_)
        why_not = "" if is_recorded else read_by_offline(text, context.subject).why_not_tried
        if not why_not:
            kept.append(text)
        elif text not in context.notes.ideas_not_tried:
            context.notes.ideas_not_tried.add(text)
            warn(f"the idea {title_of(text)!r} is not tried: {why_not}")
    return kept
