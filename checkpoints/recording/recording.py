"""All of a search that its replay needs: its request, the answers of its models, what was measured, what it was given.

A call is known by its id and by its question: the parts of its request that decide what an answer is about. Its prompt's
wording is no part of that, so it may change from one version to the next.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.calls.journal import Call, Journal
from ridgeline.checkpoints.steering import USER, Steer, Steering, SteerKind, mechanism_of
from ridgeline.checkpoints.storage.errors import record_errors
from ridgeline.tools.errors import RunError
from ridgeline.tools.records.baselines import Baselines
from ridgeline.tools.records.codec import Record
from ridgeline.tools.records.keys import (
    AGAIN,
    CallId,
    ComparisonKey,
    again_id,
    attempt_of,
    part_id,
    write_id,
)
from ridgeline.tools.records.problem import Description, Device, DeviceFact
from ridgeline.tools.records.recorded import FAILURE, RecordedMeasurement, source_hash
from ridgeline.tools.records.results import Evaluation
from ridgeline.tools.records.search import BuildingBlock, Candidate, Idea, Mending
from ridgeline.tools.records.vocabulary import SEARCHED, Mender, Origin, ReasonCode

_GIVEN = (Origin.SEED, Origin.BANK)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRun(Record):
    """The request of a search and what it learned of its reference."""

    name: str  # of the run's folder
    ridgeline: str  # the version that exported it
    started_at: str
    problem: dict[str, Any]
    reference_source: str
    device_name: str
    device: Device
    settings: dict[str, Any]
    budget: dict[str, Any]
    rng_seed: int
    models: tuple[str, ...]
    versions: dict[str, str]
    description: Description
    baselines: Baselines
    facts: tuple[DeviceFact, ...] = ()  # the device's table that its models were shown; empty in older recordings
    blocks: tuple[BuildingBlock, ...] = ()  # kernels of other operations that they were shown


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedMending(Record):
    """A kernel that did not build, as another branch's edit made it anew."""

    source: str
    mending: Mending


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall(Record):
    """One call of a model and how it ended."""

    call_id: str
    model: str
    prompt_sha256: str
    question: dict[str, Any] | None  # None: of a version that stored too little of it
    reply: dict[str, Any] | None  # None: it failed
    error: str = ""
    usage: dict[str, Any]
    kernel: str = ""  # the source that the reply's edits made; empty where the reply holds it whole
    mended: RecordedMending | None = None  # what another branch's edit made of the kernel, which did not build


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """One recorded search."""

    run: RecordedRun
    calls: tuple[RecordedCall, ...]
    measurements: tuple[RecordedMeasurement, ...]
    given: tuple[Candidate, ...]  # seeds and kernels of the bank, of round 0
    told: tuple[Steer, ...]  # ideas and seeds that came while it ran


def record(archive: Archive) -> Recording:
    """Return what an archive holds of its search.

    Raises:
        RunError: the search did not come so far that there is anything to replay.
    """
    with record_errors(archive.path):
        candidates = {candidate.id: candidate for candidate in archive.candidates()}
        ideas = archive.ideas()
        return Recording(
            run=_run(archive),
            calls=tuple(_calls(archive, candidates, {idea.id: idea for idea in ideas})),
            measurements=tuple(_measurements(archive, candidates)),
            given=tuple(c for c in candidates.values() if c.origin in _GIVEN and c.round == 0),
            told=tuple(_told(archive, candidates, ideas)),
        )


def _run(archive: Archive) -> RecordedRun:
    from ridgeline import __version__

    run, description, baselines = archive.run(), archive.description(), archive.baselines()
    if run.problem is None or run.device is None or description is None or baselines is None:
        raise RunError(f"{archive.path.parent}: its search did not time PyTorch yet: there is nothing to replay")
    return RecordedRun(
        name=run.exported_from or archive.path.resolve().parent.name,
        ridgeline=__version__,
        started_at=run.started_at or "",
        problem=dict(run.problem),
        reference_source=run.reference_source or "",
        device_name=run.device_name or run.device.kind.value,
        device=run.device,
        settings=dict(run.settings or {}),
        budget=dict(run.budget or {}),
        rng_seed=run.rng_seed or 0,
        models=run.models or (),
        versions=dict(run.versions or {}),
        description=description,
        baselines=replace(baselines, pending=()),
        facts=run.facts or (),
        blocks=run.blocks or (),
    )


# ------------------------------------------------------------------------------------------------------------ the calls


def _calls(archive: Archive, candidates: Mapping[str, Candidate], ideas: Mapping[str, Idea]) -> Iterable[RecordedCall]:
    journal = Journal(archive)
    calls = journal.calls()
    ids = {call.call_id for call in calls}
    mended = {
        write_id(attempt): RecordedMending(source=each.source, mending=each.mending)
        for each in candidates.values()
        if each.mending and each.mending.by is Mender.SIBLING and (attempt := attempt_of(each.id))
    }
    for call in calls:
        if call.state not in ("finished", "failed"):
            continue
        reply = journal.stored(call.call_id)
        request = call.request
        asked = CallId.read(call.call_id)
        if asked and not asked.asks_for_ideas and "idea" not in request and asked.idea_id in ideas:
            request = {**request, **_asked_of(ideas[asked.idea_id]), "variation": asked.variation}
            if not asked.attempt:
                request["failure_code"] = ReasonCode.NONE
        yield RecordedCall(
            call_id=call.call_id,
            model=call.model,
            prompt_sha256=call.prompt_sha256,
            question=question_of(request),
            reply={name: reply.get(name) for name in ("text", "is_truncated")} if reply else None,
            error=call.error,
            usage={
                "input_tokens": call.input_tokens,
                "output_tokens": call.output_tokens,
                "usd": _usd(call, reply),
                "latency_s": call.latency_s or 0.0,
            },
            kernel=_edited(call.call_id, reply, candidates, ids) if reply else "",
            mended=mended.get(call.call_id),
        )


def _usd(call: Call, reply: Mapping[str, Any] | None) -> float | None:
    """Return what a call cost with its failed sends; None where its answer's price is unknown, or of all that failed.

    What a send of unknown price cost beside an answer of a known one counts as nothing, as in the journal's totals.
    """
    if reply is None:
        return None if call.unpriced else call.usd
    used = reply.get("input_tokens") or reply.get("output_tokens")
    return None if used and reply.get("usd") is None else call.usd


def _asked_of(idea: Idea) -> dict[str, Any]:
    """Return what a request for a kernel of an idea says, for a call of an earlier version that did not keep it."""
    parents = {"parent": idea.parent_id, "second_parent": idea.second_parent_id}
    return {"idea": idea.to_json(), **{name: {"candidate_id": parent} for name, parent in parents.items() if parent}}


def _edited(call_id: str, reply: Mapping[str, Any], candidates: Mapping[str, Candidate], ids: Collection[str]) -> str:
    """Return the kernel that a reply's edits made; "" where the reply holds the kernel, or another call's was used."""
    asked = CallId.read(call_id)
    if asked is None or asked.asks_for_ideas or asked.further not in ("", AGAIN):
        return ""
    if again_id(call_id) in ids or part_id(call_id, 2) in ids or asked.candidate_id not in candidates:
        return ""
    source, text = candidates[asked.candidate_id].source, str(reply.get("text"))
    forms = (source, *(json.dumps(source, ensure_ascii=is_ascii)[1:-1] for is_ascii in (True, False)))
    return "" if any(form in text for form in forms) else source


def question_of(request: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what decides what an answer to a request (its JSON) is about; None where the request does not hold it."""
    if "idea" in request:
        idea, failed = request["idea"], request.get("failed_source") or ""
        return {
            "idea": idea_key(idea["title"], idea["mechanism"]),
            "variation": request.get("variation", 0),
            "parent": _id_of(request.get("parent")),
            "second_parent": _id_of(request.get("second_parent")),
            "failed": source_hash(failed) if failed else "",
            "failure_code": request.get("failure_code") or "",
        }
    if "elites" in request:
        return {
            "round": request.get("round"),
            "count": request.get("count"),
            "elites": [_id_of(elite) for elite in request["elites"]],
            "tried": [idea["title"] for idea in request.get("tried", ())],
            "refused": list(request.get("refused", ())),
            "user_ideas": list(request.get("user_ideas", ())),
        }
    return None


def idea_key(title: str, mechanism: str) -> str:
    """Return what tells an idea from others, whatever its number."""
    return source_hash(f"{title}\n{mechanism}")


def _id_of(elite: Mapping[str, Any] | None) -> str:
    return str(elite["candidate_id"]) if elite else ""


def place_of(call_id: str, question: Mapping[str, Any] | None) -> tuple[str, int, str] | None:
    """Return by what the call for a kernel is found where its idea has another number: idea, variation and attempt."""
    asked = CallId.read(call_id)
    if asked is None or asked.asks_for_ideas or not question or "idea" not in question:
        return None
    return (str(question["idea"]), asked.variation, f"{asked.attempt}{asked.further}")


# ----------------------------------------------------------------------------------------------------- what was measured


def _measurements(archive: Archive, candidates: Mapping[str, Candidate]) -> Iterable[RecordedMeasurement]:
    for purpose in SEARCHED:
        for evaluation in archive.evaluations(purpose=purpose):
            yield from _steps(archive, evaluation, source_hash(candidates[evaluation.candidate_id].source))
    for key, result in archive.records("comparisons"):
        compared = ComparisonKey.read(key)
        first, second = (source_hash(candidates[each].source) for each in compared.ids)
        yield RecordedMeasurement(
            what="Comparison", source_sha256=first, second_sha256=second, purpose=compared.purpose, result=result
        )
    for failure in archive.engine_failures():
        if failure.purpose in SEARCHED:
            source = source_hash(candidates[failure.candidate_id].source)
            reason = {"reason": failure.reason}
            yield RecordedMeasurement(what=FAILURE, source_sha256=source, purpose=failure.purpose, result=reason)


def _steps(archive: Archive, evaluation: Evaluation, source: str) -> Iterable[RecordedMeasurement]:
    """Yield the parts of an evaluation; a kernel that no model wrote has none."""
    if evaluation.build is None:
        return
    build = replace(evaluation.build, library_path=None, cached=True)
    yield RecordedMeasurement(what="Build", source_sha256=source, result=build.to_json())
    profile = archive.find("profiles", evaluation.key)
    parts = {
        "Verdict": evaluation.verdict.to_json() if evaluation.verdict else None,
        "Timing": evaluation.timing.to_json() if evaluation.timing else None,
        "Profile": dict(profile) if profile else None,
    }
    for what, result in parts.items():
        if result is not None:
            yield RecordedMeasurement(what=what, source_sha256=source, purpose=evaluation.purpose, result=result)


# ---------------------------------------------------------------------------------------------------- what it was told


def _told(archive: Archive, candidates: Mapping[str, Candidate], ideas: Iterable[Idea]) -> Iterable[Steer]:
    """Yield what the search took up, each with the round in which it did."""
    rounds = {idea.mechanism: idea.round for idea in ideas if idea.model == USER}
    steering = Steering(archive)
    for steer in steering.told(SteerKind.IDEA):
        taken = rounds.get(mechanism_of(steer.text))
        if taken is not None:
            yield replace(steer, from_round=taken)
    for steer in steering.told(SteerKind.SEED):
        if steer.name in candidates:
            yield replace(steer, from_round=candidates[steer.name].round)
