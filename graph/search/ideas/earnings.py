"""The earnings of a search's models so far, for the bandits: the authors of ideas and the writers of kernels apart.

Both are functions of the archive's finished rounds alone, so that a resumed round decides as the interrupted one did.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ridgeline.checkpoints.calls.journal import Call, Journal
from ridgeline.graph.models.pool import Outcome, reward
from ridgeline.graph.search.branch import branch_of_candidate
from ridgeline.tools.records.keys import CallId
from ridgeline.tools.records.vocabulary import Origin, Purpose

if TYPE_CHECKING:
    from ridgeline.checkpoints.archive import Archive
    from ridgeline.tools.records.search import Candidate

Judged = list[tuple["Candidate", float | None]]
"""Candidates with their speedup, None where they failed; those that the engine failed on earned nothing and cost nothing."""


def author_outcomes(archive: Archive, before_round: int) -> list[Outcome]:
    """Return what each idea of earlier rounds earned the model that proposed it, by the idea's best implementation.

    An idea costs its share of its author's calls for ideas in that round. The user's own ideas have no author.
    """
    judged = _judged(archive, before_round)
    earned = _best_rewards(judged, lambda candidate: candidate.idea_id or "")
    ideas = [idea for idea in archive.ideas() if idea.id in earned]
    proposed = Counter((idea.round, idea.model) for idea in archive.ideas())
    names = archive.run().models or ()
    paid = _paid(archive, lambda call: _asked_for(call, names))
    return [
        Outcome(
            model=idea.model,
            reward=earned[idea.id],
            usd=_share(paid.get((idea.round, idea.model), 0.0), proposed[idea.round, idea.model]),
        )
        for idea in ideas
    ]


def writer_outcomes(archive: Archive, before_round: int) -> list[Outcome]:
    """Return what each branch of earlier rounds earned its writer, by the best of its attempts.

    A branch costs all calls for its attempts, the repairs too.
    """
    judged = _judged(archive, before_round)
    earned = _best_rewards(judged, branch_of_candidate)
    writers = {branch_of_candidate(candidate): candidate.model for candidate, _ in judged if candidate.idea_id}
    paid = _paid(archive, _branch_written)
    return [Outcome(model=writers[branch], reward=earned[branch], usd=paid.get(branch, 0.0)) for branch in earned]


def _judged(archive: Archive, before_round: int) -> Judged:
    evaluations = {e.candidate_id: e for e in archive.evaluations(purpose=Purpose.SEARCH)}
    return [
        (c, evaluations[c.id].speedup) for c in archive.candidates() if c.id in evaluations and c.round < before_round
    ]


def _best_rewards(judged: Judged, unit_of: Callable[[Candidate], str]) -> dict[str, float]:
    """Return the reward of each unit's best kernel against the best kernel before its round, in the order of the units."""
    rounds = {candidate.round for candidate, _ in judged}
    before = {
        round_: max((s for c, s in judged if s is not None and c.round < round_), default=1.0) for round_ in rounds
    }
    best: dict[str, float] = {}
    for candidate, speedup in judged:
        if candidate.origin is Origin.MODEL:
            unit = unit_of(candidate)
            best[unit] = max(best.get(unit, 0.0), reward(speedup, before[candidate.round]))
    return best


def _asked_for(call: Call, names: Sequence[str]) -> tuple[int, str] | None:
    """Return the round and the model of a call for ideas; of a replay's call that went elsewhere the one it stands for."""
    call_id = CallId.read(call.call_id)
    if call_id is None or call_id.place is None:
        return None
    asked = str(call.model)
    return (call_id.round, asked if asked in names or call_id.place >= len(names) else names[call_id.place])


def _branch_written(call: Call) -> str | None:
    """Return the branch of a call for a kernel."""
    call_id = CallId.read(call.call_id)
    return call_id.branch_id if call_id and not call_id.asks_for_ideas else None


def _paid(archive: Archive, unit_of: Callable[[Call], Any]) -> dict[Any, float | None]:
    """Return the dollars of the calls of each unit; None where a call's price is unknown."""
    paid: dict[Any, float | None] = defaultdict(float)
    for call in Journal(archive).calls():
        unit = unit_of(call)
        if unit is not None:
            known = paid[unit]
            paid[unit] = None if known is None or call.unpriced else known + float(call.usd)
    return paid


def _share(usd: float | None, parts: int) -> float | None:
    return None if usd is None else usd / max(1, parts)
