"""All of a search that its replay needs: its request, the answers of its models, what was measured, what it was given.

A call is known by its id and by its question: the parts of its request that decide what an answer is about. Its prompt's
wording is no part of that, so it may change from one version to the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.journal import Journal
from ridgeline.checkpoints.steering import USER, Steer, Steering, SteerKind, mechanism_of
from ridgeline.checkpoints.storage_errors import record_errors
from ridgeline.tools.errors import RunError
from ridgeline.tools.records.codec import Record
from ridgeline.tools.records.keys import CallId, compared_ids, compared_purpose
from ridgeline.tools.records.problem import Description, Device, DeviceFact
from ridgeline.tools.records.recorded import FAILURE, RecordedMeasurement, source_hash
from ridgeline.tools.records.results import Baselines, Evaluation
from ridgeline.tools.records.search import BuildingBlock, Candidate, Idea
from ridgeline.tools.records.vocabulary import SEARCHED, Origin

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
class RecordedCall(Record):
    """One call of a model and how it ended."""

    call_id: str
    model: str
    prompt_sha256: str
    question: dict[str, Any] | None  # None: of a version that stored too little of it
    reply: dict[str, Any] | None  # None: it failed
    error: str = ""
    usage: dict[str, Any]


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
            calls=tuple(_calls(archive, {idea.id: idea for idea in ideas})),
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


def _calls(archive: Archive, ideas: Mapping[str, Idea]) -> Iterable[RecordedCall]:
    journal = Journal(archive)
    for call in journal.calls():
        if call["state"] not in ("finished", "failed"):
            continue
        reply = journal.stored(call["call_id"])
        request = call["request"]
        asked = CallId.read(call["call_id"])
        if asked and not asked.asks_for_ideas and "idea" not in request and asked.idea_id in ideas:
            request = {**request, "idea": ideas[asked.idea_id].to_json(), "variation": asked.variation}
        yield RecordedCall(
            call_id=call["call_id"],
            model=call["model"],
            prompt_sha256=call["prompt_sha256"],
            question=question_of(request),
            reply={name: reply.get(name) for name in ("text", "is_truncated")} if reply else None,
            error=call["error"],
            usage={
                "input_tokens": call["input_tokens"],
                "output_tokens": call["output_tokens"],
                "usd": None if call["unpriced"] else call["usd"],
                "latency_s": call["latency_s"] or 0.0,
            },
        )


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
        first, second = (source_hash(candidates[each].source) for each in compared_ids(key))
        yield RecordedMeasurement(
            what="Comparison", source_sha256=first, second_sha256=second, purpose=compared_purpose(key), result=result
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
