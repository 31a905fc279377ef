"""Every kernel of a search for report.html: its verdict, what it changed of its parent, its source or its error.

A page holds some hundreds of kernels. So sources and differences are shown up to a common size, those of the best kernel
and its ancestors first, then the fastest; what is left out is said where it is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from html import escape

from markupsafe import Markup

from ridgeline.checkpoints.history.gains import Gain, gain_over
from ridgeline.checkpoints.report.diffs import Diff, unified
from ridgeline.checkpoints.report.search_records import SearchRecords
from ridgeline.checkpoints.report.source_colours import line_count
from ridgeline.tools.records.keys import attempt_id
from ridgeline.tools.records.printable import printable
from ridgeline.tools.records.results import Evaluation
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import Origin, Status

ROOM = 1_400_000
"""Characters that all sources and differences may take on a page."""
SOURCE = 60_000
"""Characters that are shown of one source."""
COMPARED = 4 * SOURCE
"""Characters of each source that are compared."""
LOG = 4_000
"""Characters that are shown of a compiler's messages."""
LINE = 2_000
"""Characters that are shown of one line of a source."""
SHOWN = 600
"""Kernels with an entry of their own."""
_FULL = "what does not stand here is left out, as the page is full; the archive has it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """One kernel as the page shows it; texts are plain but for the two of type Markup."""

    anchor: str
    candidate: Candidate
    evaluation: Evaluation | None
    title: str  # of its idea
    gain: Gain | None  # over its parent
    diff: Diff | None = None
    diff_html: Markup = field(default_factory=Markup)
    against: str = ""  # whose difference that is: the parent's id, or the failed attempt's
    source_html: Markup = field(default_factory=Markup)
    notes: tuple[str, ...] = ()
    log: str = ""

    @property
    def lines(self) -> int:
        """Return the lines of the whole source."""
        return line_count(self.candidate.source)


@dataclass(slots=True)
class _Room:
    """The rest of the page's room."""

    left: int

    @property
    def is_full(self) -> bool:
        """Say whether not even a short text has room."""
        return self.left < LINE

    def takes(self, html: str) -> bool:
        """Take the room of a text; False, and nothing taken, where it is too long."""
        if len(html) > self.left:
            return False
        self.left -= len(html)
        return True


def kernel_entries(records: SearchRecords, *, first: Iterable[str]) -> tuple[list[Kernel], int]:
    """Return the kernels' entries in the order in which they were made, and how many are left out.

    `first` are the ids whose texts are shown before all others'.
    """
    known, found, titles = {c.id: c for c in records.candidates}, records.found, records.titles
    order = list(dict.fromkeys([*(name for name in first if name in known), *known]))
    kept, room = set(order[:SHOWN]), _Room(ROOM)
    texts = {name: _texts(known[name], known, room) for name in order[:SHOWN]}
    entries = []
    for place, candidate in enumerate(records.candidates):
        if candidate.id not in kept:
            continue
        evaluation, parent = found.get(candidate.id), found.get(candidate.parent_id or "")
        diff, against, diff_html, source_html, notes = texts[candidate.id]
        entries.append(
            Kernel(
                anchor=anchor(place),
                candidate=candidate,
                evaluation=evaluation,
                title=titles.get(candidate.idea_id or "", ""),
                gain=gain_over(parent, evaluation, records.pairs),
                diff=diff,
                diff_html=diff_html,
                against=against,
                source_html=source_html,
                notes=notes,
                log=_log(evaluation),
            )
        )
    return entries, len(known) - len(entries)


def anchor(place: int) -> str:
    """Return a kernel's name on the page by its place in the archive: an id may be a stranger's."""
    return f"k{place}"


def _texts(
    candidate: Candidate, known: Mapping[str, Candidate], room: _Room
) -> tuple[Diff | None, str, Markup, Markup, tuple[str, ...]]:
    """Return the difference, whose it is, its HTML, the source's HTML, and what is left out of both."""
    base = _base(candidate, known)
    if room.is_full:
        return None, base.id if base else "", Markup(), Markup(), (_FULL,)
    diff = unified(_fit(base.source), _fit(candidate.source)) if base else None
    notes = list(diff.notes) if diff else []
    if base and max(len(base.source), len(candidate.source)) > COMPARED:
        notes.append(f"only the first {COMPARED:,} characters of each source are compared")
    diff_html = source_html = Markup()
    if diff and diff.html:
        if room.takes(diff.html):
            diff_html = Markup(diff.html)  # escaped by `unified`
        else:
            notes.append(_FULL)
    if candidate.origin is Origin.TUNE and diff:
        return diff, base.id if base else "", diff_html, source_html, tuple(dict.fromkeys(notes))
    shown, left_out = cut_source(candidate.source)
    html = escape(shown)  # not coloured, which would take three times the room
    if room.takes(html):
        source_html = Markup(html)
        notes += left_out
    else:
        notes.append(_FULL)
    return diff, base.id if base else "", diff_html, source_html, tuple(dict.fromkeys(notes))


def _base(candidate: Candidate, known: Mapping[str, Candidate]) -> Candidate | None:
    """Return the kernel that a difference is from: its parent, of one without a parent what it was repaired from."""
    if candidate.parent_id and candidate.parent_id in known:
        return known[candidate.parent_id]
    if candidate.mending is not None:
        return known.get(candidate.mending.failed_id)
    if candidate.idea_id and candidate.attempt:
        return known.get(attempt_id(candidate.idea_id, candidate.variation, candidate.attempt - 1))
    return None


def cut_source(source: str) -> tuple[str, list[str]]:
    """Return a source as it is shown, without what prints nothing, and what was cut."""
    notes = []
    shown = source
    if len(shown) > SOURCE:
        notes.append(f"only the first {SOURCE:,} of {len(source):,} characters are shown")
        shown = shown[:SOURCE]
    lines = shown.split("\n")
    if any(len(line) > LINE for line in lines):
        notes.append(f"lines are cut at {LINE:,} characters")
        shown = "\n".join(line if len(line) <= LINE else f"{line[: LINE - 1]}…" for line in lines)
    return printable(shown, keeps="\n\t"), notes


def _fit(source: str) -> str:
    """Return what of a source is compared."""
    return printable(source[:COMPARED], keeps="\n\t")


def _log(evaluation: Evaluation | None) -> str:
    """Return the compiler's messages of a kernel that did not build."""
    build = evaluation.build if evaluation else None
    if build is None or not build.log or build.status is Status.OK:
        return ""
    return build.log if len(build.log) <= LOG else f"{build.log[:LOG]}\n… {len(build.log) - LOG:,} characters more"
