"""The result of each idea of a search: what it gained over its parent, how each implementation ended, what that teaches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.history.diagnoses import read_diagnosis
from ridgeline.checkpoints.history.gains import (
    Gain,
    SideBySide,
    gain_over,
    gain_over_eager,
    measured_side_by_side,
)
from ridgeline.checkpoints.history.implementations import ends_of
from ridgeline.checkpoints.history.named_stages import names_stage, parents_largest_stage
from ridgeline.checkpoints.history.repeated_sources import repeated_sources
from ridgeline.checkpoints.history.sweeps import sweep_rows
from ridgeline.checkpoints.steering import USER
from ridgeline.tools.records.results import Evaluation
from ridgeline.tools.records.search import Candidate, Idea
from ridgeline.tools.records.vocabulary import SEARCHED, IdeaOutcome, Origin

GAIN = 1.01
"""A kernel counts as faster than another from this ratio: the width of a good interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IdeaResult:
    """One idea with its best kernel, or the reason why it has none."""

    idea: Idea
    best: Evaluation | None
    failure: str  # "" with a best kernel, and while no candidate has ended
    candidates: int  # written for the idea or tuned from it
    is_unjudged: bool  # the engine failed on every candidate that ended: no verdict on the idea
    outcome: IdeaOutcome | None = None  # None: no implementation was judged
    gain: float | None = None  # parent's time / best kernel's; None where no parent was measured
    ends: tuple[str, ...] = ()  # of its implementations, a line each
    before: str = ""  # the parent's diagnosis
    after: str = ""  # that of the best kernel, else of the fastest of the idea that was profiled
    sweep: tuple[str, ...] = ()  # tunable values and their times, fastest first
    largest_stage: str = ""  # the parent's, by its diagnosis
    same_source_as: str = ""  # the earlier kernel that its best one repeats, else its first one
    proven: Gain | None = None  # over the parent, over eager PyTorch where there is none, with what its interval proves

    def to_json(self) -> dict[str, Any]:
        """Return the entry of `show --json`: the idea's fields and how it ended."""
        return self.idea.to_json() | {
            "best_candidate_id": self.best.candidate_id if self.best else None,
            "best_speedup": self.best.speedup if self.best else None,
            "best_speedup_ci95": self.best.speedup_interval if self.best else None,
            "best_median_ms": self.best.timing.median_ms if self.best and self.best.timing else None,
            "failure": self.failure,
            "candidates": self.candidates,
            "outcome": self.outcome.value if self.outcome else None,
            "gain": self.gain,
            "gain_ci95": list(self.proven.interval) if self.proven and self.proven.interval and self.gain else None,
            "ends": list(self.ends),
            "before": self.before,
            "after": self.after,
            "sweep": list(self.sweep),
            "largest_stage": self.largest_stage or None,
            "names_largest_stage": names_stage(self.idea, self.largest_stage) if self.largest_stage else None,
            "same_source_as": self.same_source_as or None,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measured:
    """All that was measured: each correct kernel's evaluation, fastest first, and the pairs measured side by side.

    Beside it the kernels that repeat an earlier one, which are measured once.
    """

    fastest: dict[str, Evaluation]
    pairs: SideBySide
    repeated: Mapping[str, str]  # by a kernel's id, the earlier one with its source


def idea_results(archive: Archive) -> list[IdeaResult]:
    """Return the results of all ideas, in the order of the ideas."""
    fastest: dict[str, Evaluation] = {}
    for evaluation in archive.ranking(SEARCHED):
        fastest.setdefault(evaluation.candidate_id, evaluation)
    measured = _Measured(
        fastest=fastest,
        pairs=measured_side_by_side(archive),
        repeated=repeated_sources(archive.candidates()),
    )
    return [_result(archive, idea, measured) for idea in archive.ideas()]


def _result(archive: Archive, idea: Idea, measured: _Measured) -> IdeaResult:
    own = archive.candidates(idea_id=idea.id)
    ids = [candidate.id for candidate in own]
    known = set(ids)
    right = [evaluation for candidate_id, evaluation in measured.fastest.items() if candidate_id in known]
    best = right[0] if right else None
    judged = [] if best else [e for candidate_id in ids if (e := archive.evaluation(candidate_id))]
    unjudged = [] if best or judged else [f.as_evaluation() for name in ids for f in archive.engine_failures(name)]
    last = next(reversed(judged or unjudged), None)
    parent = measured.fastest.get(idea.parent_id or "")
    gained = gain_over(parent, best, measured.pairs) if parent else gain_over_eager(best)
    is_decided = parent is not None and gained is not None and gained.is_side_by_side
    outcome = _outcome(gained, is_decided=is_decided, is_judged=bool(judged))
    repeats = measured.repeated.get(_root(own, best) or (ids[0] if ids else ""), "")
    return IdeaResult(
        idea=idea,
        best=best,
        failure=f"{last.status} ({last.reason_code}): {last.reason}".rstrip(": ") if last else "",
        candidates=len(own),
        is_unjudged=bool(unjudged),
        outcome=_spared(outcome) if repeats and idea.model == USER else outcome,
        gain=gained.ratio if parent and gained else None,
        ends=ends_of(archive, own),
        before=read_diagnosis(archive, parent),
        after=next((told for evaluation in right if (told := read_diagnosis(archive, evaluation))), ""),
        sweep=sweep_rows(archive, _root(own, best), own),
        largest_stage=parents_largest_stage(archive, idea),
        same_source_as=repeats,
        proven=gained if parent or not idea.parent_id else None,
    )


def _outcome(gained: Gain | None, *, is_decided: bool, is_judged: bool) -> IdeaOutcome | None:
    """Return what an idea came to by its gain over its parent, over eager PyTorch where it has none.

    Timings whose intervals leave room for a gain decide nothing; an alternating run of kernel and parent, `is_decided`, does.
    """
    if gained is not None:
        if gained.ratio >= GAIN:
            return IdeaOutcome.IMPROVED
        leaves_room = not is_decided and gained.interval is not None and gained.interval[1] >= GAIN
        return IdeaOutcome.UNDECIDED if leaves_room else IdeaOutcome.REFUTED
    return IdeaOutcome.IMPLEMENTATION_FAILED if is_judged else None


def _spared(outcome: IdeaOutcome | None) -> IdeaOutcome | None:
    """Return the outcome of a user's idea whose kernel the search had before: that kernel refutes nothing of the idea."""
    return IdeaOutcome.UNDECIDED if outcome is IdeaOutcome.REFUTED else outcome


def _root(own: Sequence[Candidate], best: Evaluation | None) -> str | None:
    """Return the id of the written kernel that the best one is, or was tuned from."""
    found = next((c for c in own if best and c.id == best.candidate_id), None)
    if found is None:
        return None
    return found.parent_id if found.origin is Origin.TUNE else found.id
