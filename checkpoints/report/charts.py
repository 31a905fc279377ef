"""The charts of report.html, made from a search's records: the trajectory, the roofline, how judged kernels ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from ridgeline.checkpoints.history.gains import Proof, gain_over
from ridgeline.checkpoints.report.figures import ms_text, ratio_text
from ridgeline.checkpoints.report.floors import binding_floor
from ridgeline.checkpoints.report.plots import Dot, Line, bars, trajectory
from ridgeline.checkpoints.report.roofline import Ceilings, Mark, ceilings_of, roofline
from ridgeline.checkpoints.report.search_records import SearchRecords
from ridgeline.tools.records.baselines import Baselines
from ridgeline.tools.records.reference_mode import mode_words
from ridgeline.tools.records.results import Evaluation
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import Origin, Status
from ridgeline.tools.wording import ratio_words

MARKS = 300
"""Kernels that the roofline shows, the fastest ones: more cannot be told apart."""
_DOTS: Mapping[Origin, str] = {Origin.SEED: "dot seed", Origin.BANK: "dot seed", Origin.TUNE: "dot tuned"}

_SOURCES: Mapping[Origin, str] = {
    Origin.MODEL: "written",
    Origin.SEED: "given as seeds",
    Origin.BANK: "from the seed bank",
    Origin.TUNE: "tuned",
    Origin.FILE: "given as files",
}


def trajectory_chart(records: SearchRecords, certified: float | None) -> str:
    """Return each kernel's speedup by round with its interval; `certified` is the certificate's, where it passed."""
    titles, dots = records.titles, []
    for candidate in sorted(records.candidates, key=lambda c: c.round):
        if (evaluation := records.found[candidate.id]) is None:
            continue
        speedup, ends = evaluation.speedup, evaluation.speedup_interval
        outcome = ratio_words(speedup, ends) if speedup else evaluation.status.value.replace("_", " ")
        dots.append(
            Dot(
                round=candidate.round,
                speedup=speedup,
                label=f"{candidate.id}: {outcome} {titles.get(candidate.idea_id or '', '')}".rstrip(),
                css=_dot_class(candidate, records),
                interval=(ends[0], ends[1]) if ends else None,
            )
        )
    lines = _lines(records.baselines)
    if certified:
        lines.append(Line(speedup=certified, label=f"certified {ratio_text(certified)}", css="certified"))
    return trajectory(dots, lines, _best_so_far(records))


def _dot_class(candidate: Candidate, records: SearchRecords) -> str:
    kind, found = _DOTS.get(candidate.origin, "dot"), records.found
    gain = gain_over(found.get(candidate.parent_id or ""), found.get(candidate.id), records.pairs)
    return f"{kind} proven" if gain and gain.proof is Proof.FASTER else kind


def _best_so_far(records: SearchRecords) -> list[tuple[int, float]]:
    """Return by round the speedup of the kernel that the search ranks first by then; see checkpoints/ranking.py."""
    rounds = {candidate.id: candidate.round for candidate in records.candidates}
    ranked = [(rounds[e.candidate_id], e.speedup) for e in records.ranked if e.candidate_id in rounds]
    first = {
        number: next((s for round_, s in ranked if round_ <= number), None) for number in sorted({*rounds.values()})
    }
    return [(number, speedup) for number, speedup in first.items() if speedup]


def _lines(baselines: Baselines | None) -> list[Line]:
    eager_ms = baselines.eager_ms() if baselines else None
    if not baselines or not eager_ms:
        return []
    lines = [
        Line(speedup=eager_ms / b.median_ms, label=f"{mode_words(b.name)} {ms_text(b.median_ms)}")
        for b in baselines.entries
        if b.median_ms
    ]
    floor = baselines.floor
    name, floor_ms = binding_floor(floor.floor_ms, floor.compute_floor_ms)
    if floor_ms > 0:
        lines.append(Line(speedup=eager_ms / floor_ms, label=f"{name} {ms_text(floor_ms)}", css="floor"))
    return lines


def roofline_chart(records: SearchRecords, best_id: str | None) -> tuple[str, Ceilings | None]:
    """Return the roofline with every right kernel, and its ceilings; "" and None where they are not recorded."""
    baselines, description, found = records.baselines, records.description, records.found
    ceilings = ceilings_of(baselines.floor, description) if baselines and description else None
    if baselines is None or ceilings is None:
        return "", None
    first = [e.candidate_id for e in records.ranked if e.candidate_id in found]
    shown = {*first[:MARKS], *((best_id,) if best_id else ())}
    marks = [mark for c in records.candidates if c.id in shown and (mark := _mark(c, found[c.id], baselines, best_id))]
    marks.sort(key=lambda mark: "best-dot" in mark.css)  # drawn last, over the others
    if eager_ms := baselines.eager_ms():
        marks.insert(0, Mark(ms=eager_ms, label=f"eager PyTorch: {ms_text(eager_ms)}", css="dot eager"))
    return roofline(ceilings, marks), ceilings


def _mark(
    candidate: Candidate, evaluation: Evaluation | None, baselines: Baselines, best_id: str | None
) -> Mark | None:
    """Return a kernel's mark by the time that it takes where eager takes what it took for the baselines."""
    if evaluation is None or evaluation.timing is None or not evaluation.speedup:
        return None
    ms = baselines.steady_ms(evaluation.timing, evaluation.precision_class)
    ends = evaluation.speedup_interval
    if not ms:
        return None
    spread = (ms * evaluation.speedup / ends[1], ms * evaluation.speedup / ends[0]) if ends and min(ends) > 0 else None
    kind = _DOTS.get(candidate.origin, "dot")
    own, drawn = ms_text(evaluation.timing.median_ms), ms_text(ms)
    place = "" if own == drawn else f"; drawn at {drawn}, where eager PyTorch takes what it took by itself"
    label = f"{candidate.id}: {own}, {ratio_words(evaluation.speedup, ends)}{place}"
    return Mark(ms=ms, label=label, css=f"{kind} best-dot" if candidate.id == best_id else kind, interval_ms=spread)


def status_bars(records: SearchRecords) -> str:
    """Return how many judged kernels ended how, as bars."""
    counts = Counter(e.status for e in records.found.values() if e)
    return bars(
        [(s.value.replace("_", " "), counts[s], "ok" if s is Status.OK else "bad") for s in Status if counts[s]]
    )


def judged_words(records: SearchRecords) -> str:
    """Return where the judged kernels came from: "4 written, 1 given as seeds, 5 tuned"."""
    counts = Counter(_SOURCES[c.origin] for c in records.candidates if records.found[c.id])
    return ", ".join(f"{counts[each]:,} {each}" for each in dict.fromkeys(_SOURCES.values()) if counts[each])
