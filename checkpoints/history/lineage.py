"""A kernel's lineage and the search's history by round."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.calls.journal import Journal
from ridgeline.checkpoints.round_record import RoundRecord
from ridgeline.checkpoints.stored_certificate import StoredCertificate
from ridgeline.tools.records.keys import CallId
from ridgeline.tools.records.results import Evaluation
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import SEARCHED, Origin, Purpose

_FINDINGS = (Purpose.TUNE, Purpose.SEARCH, Purpose.EVALUATE)
"""The purposes whose evaluation tells how a candidate ended: the first that there is counts."""


def finding(archive: Archive, candidate_id: str) -> Evaluation | None:
    """Return a candidate's evaluation, the search's own first, else its engine failure as one, else None."""
    found = next((e for purpose in _FINDINGS if (e := archive.evaluation(candidate_id, purpose))), None)
    return found or next((failure.as_evaluation() for failure in archive.engine_failures(candidate_id)), None)


def findings(archive: Archive) -> dict[str, Evaluation]:
    """Return by id the `finding` of every candidate that has one."""
    found: dict[str, Evaluation] = {}
    for purpose in _FINDINGS:
        for evaluation in archive.evaluations(purpose=purpose):
            found.setdefault(evaluation.candidate_id, evaluation)
    for failure in archive.engine_failures():
        found.setdefault(failure.candidate_id, failure.as_evaluation())
    return found


def certificate_of(archive: Archive, candidate_id: str) -> StoredCertificate | None:
    """Return the certificate, passed or not, when its winner is this candidate; else None."""
    certificate = archive.certificate()
    return certificate if certificate and certificate.candidate.id == candidate_id else None


def lineage(archive: Archive, candidate_id: str) -> list[dict[str, Any]]:
    """Return a candidate and its ancestors, the candidate first and its seed last.

    Each entry: id, origin, round, idea_id, idea (its title or None), model (the idea's author or None), writer (the model
    that wrote the kernel, "" where none is recorded), second_parent_id, tunables, and `figures` of what the search found.
    """
    candidates = {c.id: c for c in archive.candidates()}
    ideas = {i.id: i for i in archive.ideas()}
    chain: list[dict[str, Any]] = []
    current: str | None = candidate_id
    while current in candidates and current not in {entry["id"] for entry in chain}:
        candidate = candidates[current]
        idea = ideas.get(candidate.idea_id or "")
        chain.append(
            _describe(archive, candidate)
            | {"idea": idea.title if idea else None, "model": idea.model if idea else None}
            | {"second_parent_id": idea.second_parent_id if idea else None}
        )
        current = candidate.parent_id
    return chain


def _describe(archive: Archive, candidate: Candidate) -> dict[str, Any]:
    return {
        "id": candidate.id,
        "origin": candidate.origin.value,
        "round": candidate.round,
        "idea_id": candidate.idea_id,
        "writer": candidate.model,
        "tunables": dict(candidate.tunables),
    } | figures(finding(archive, candidate.id))


def figures(evaluation: Evaluation | None) -> dict[str, Any]:
    """Return how a kernel ended: status, reason_code, reason, speedup, speedup_ci95 and median_ms, None where unknown."""
    timing = evaluation.timing if evaluation else None
    return {
        "status": evaluation.status.value if evaluation else None,
        "reason_code": evaluation.reason_code.value if evaluation else None,
        "reason": evaluation.reason if evaluation else None,
        "speedup": evaluation.speedup if evaluation else None,
        "speedup_ci95": evaluation.speedup_interval if evaluation else None,
        "median_ms": timing.median_ms if timing else None,
    }


_NOTHING_SPENT = {"tokens": 0, "usd": 0.0, "unpriced_calls": 0}


def history(archive: Archive) -> list[dict[str, Any]]:
    """Return one entry per round; round 0, the seeds, has none.

    Each entry: round, ideas, candidates (written by a model), judged and ok (of these), tuned, best_id, best_speedup,
    best_speedup_ci95 and best_median_ms (of the round), best_so_far, tokens, usd, unpriced_calls and wall_s (of
    the round; None when it was never stored). The stored record's `wall_s` is the search's total at the end of the round;
    its `elites` and `gpu_s` are added where they were stored.
    """
    stored = {each.round: each for each in archive.rounds()}
    candidates = archive.candidates()
    last = max([*stored, *(c.round for c in candidates)], default=0)
    ranked = archive.ranking(SEARCHED)
    judged = {e.candidate_id for e in archive.evaluations(purpose=Purpose.SEARCH)}
    tuned = {e.candidate_id for e in archive.evaluations(purpose=Purpose.TUNE)}
    ideas = Counter(idea.round for idea in archive.ideas())
    spent = _spent_by_round(archive)
    entries, before_s = [], 0.0
    for number in range(1, last + 1):
        record = stored.get(number)
        until_s = record.wall_s if record else None
        wall_s = None if until_s is None else max(until_s - before_s, 0.0)
        before_s = until_s or before_s
        found = {"round": number, "ideas": ideas[number]} | _kernels(
            number, candidates, ranked, judged=judged, tuned=tuned
        )
        derived = found | _NOTHING_SPENT | spent[number]
        entries.append(_stored_alone(record) | derived | {"wall_s": wall_s})
    return entries


def _stored_alone(record: RoundRecord | None) -> dict[str, Any]:
    """Return what only the stored record of a round says."""
    told = record.to_json() if record else {}
    return {name: told[name] for name in ("elites", "gpu_s") if told.get(name) is not None}


def _kernels(
    number: int, candidates: list[Candidate], ranked: list[Evaluation], *, judged: set[str], tuned: set[str]
) -> dict[str, Any]:
    own = {c.id: c for c in candidates if c.round == number}
    until = {c.id for c in candidates if c.round <= number}
    good = [e for e in ranked if e.candidate_id in own]
    so_far = next((e for e in ranked if e.candidate_id in until), None)
    written = {c.id for c in own.values() if c.origin is Origin.MODEL}
    return {
        "candidates": len(written),
        "judged": len(judged & written),
        "ok": len({e.candidate_id for e in good} & written),
        "tuned": len(tuned & own.keys()),
        "best_id": good[0].candidate_id if good else None,
        "best_speedup": good[0].speedup if good else None,
        "best_speedup_ci95": good[0].speedup_interval if good else None,
        "best_median_ms": good[0].timing.median_ms if good and good[0].timing else None,
        "best_so_far": so_far.speedup if so_far else None,
    }


def _spent_by_round(archive: Archive) -> dict[int, dict[str, Any]]:
    spent: dict[int, dict[str, Any]] = defaultdict(dict)
    for call in Journal(archive).calls():
        if call_id := CallId.read(call.call_id):
            entry = spent[call_id.round]
            entry["tokens"] = entry.get("tokens", 0) + call.input_tokens + call.output_tokens
            entry["usd"] = entry.get("usd", 0.0) + call.usd
            entry["unpriced_calls"] = entry.get("unpriced_calls", 0) + call.unpriced
    return spent
