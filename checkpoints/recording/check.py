"""The checks of a recording's records, which may come from anybody: what passes here ends no replay as a fault of ours.

A record's types are the codec's to check. Here are the values: texts that can be stored, numbers that are times, counts
and costs, results that are of their kind, ids that are ids. Each check raises ValueError with what is wrong.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from ridgeline.checkpoints.recording.recording import RecordedCall, RecordedRun
from ridgeline.checkpoints.steering import Steer, SteerKind
from ridgeline.tools.records.baselines import Baselines
from ridgeline.tools.records.codec import Record
from ridgeline.tools.records.keys import SEED_PREFIX, CallId
from ridgeline.tools.records.problem import Description
from ridgeline.tools.records.recorded import FAILURE, RecordedMeasurement
from ridgeline.tools.records.reference_mode import EAGER_MODES
from ridgeline.tools.records.results import Build, Comparison, FailedComparison, Profile, Timing, Verdict
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import Origin, Status

MOST_WHOLE = 2**63 - 1
"""The largest whole number that SQLite stores."""
MOST_TOKENS = 10**12
"""The largest count of tokens: a provider's is read as no more, so that a replay can read what is stored."""
_MOST_ROUND = 10**6
_MOST_ID = 200
"""Characters of an id."""
_SHA256 = re.compile(r"[0-9a-f]{64}|")
_RESULTS: Mapping[str, type[Record]] = {kind.__name__: kind for kind in (Build, Verdict, Timing, Profile, Comparison)}
_QUESTIONS: Mapping[str, type] = {
    **dict.fromkeys(("idea", "parent", "second_parent", "failed", "failure_code"), str),
    **dict.fromkeys(("variation", "round", "count"), int),
    **dict.fromkeys(("elites", "tried", "refused", "user_ideas"), list),
}
"""The type of each part of a question; a list is of texts."""


def check_values(data: Any) -> None:
    """Refuse JSON that cannot be stored: a number without bounds, half of a pair of surrogates."""
    left = [data]
    while left:
        value = left.pop()
        if isinstance(value, dict):
            left += [*value, *value.values()]
        elif isinstance(value, list):
            left += value
        elif isinstance(value, str) and not _is_encodable(value):
            raise ValueError("half of a pair of unicode surrogates stands alone")
        elif isinstance(value, float) and not math.isfinite(value):
            raise ValueError("a number is not finite")
        elif type(value) is int and abs(value) > MOST_WHOLE:
            raise ValueError("a number is too large")


def check_record(record: Record) -> None:
    """Refuse a record of a recording whose values no search stores."""
    if isinstance(record, RecordedRun):
        _check_run(record)
    elif isinstance(record, RecordedCall):
        _check_call(record)
    elif isinstance(record, RecordedMeasurement):
        _check_measurement(record)
    elif isinstance(record, Candidate):
        _check_given(record)
    elif isinstance(record, Steer):
        _check_told(record)


# ---------------------------------------------------------------------------------------------------------- the request


def _check_run(run: RecordedRun) -> None:
    _expect(bool(run.models) and all(run.models), "models: there is none")
    _expect(run.device.cores > 0, "device: has no cores")
    _check_baselines(run.baselines)
    _check_graph(run.description)
    _expect(abs(run.rng_seed) <= MOST_WHOLE, "rng_seed: too large")


def _check_baselines(baselines: Baselines) -> None:
    eager = baselines.entries[0] if baselines.entries else None
    is_timed = eager is not None and eager.name in EAGER_MODES and eager.median_ms is not None
    _expect(is_timed, "baselines: eager PyTorch was not timed")
    for entry in baselines.entries:
        _check_times(f"baselines: {entry.name}", entry.median_ms, entry.p10_ms, entry.p90_ms)
    floor = baselines.floor
    figures = (floor.floor_ms, floor.compute_floor_ms, floor.bandwidth_gbps, floor.gflops, *floor.class_gflops.values())
    _expect(all(_is_amount(figure) for figure in figures), "baselines: floor: a figure is no amount")


def _check_graph(description: Description) -> None:
    if description.reference_graph is None:
        return
    nodes = description.reference_graph.get("nodes", [])
    is_one = isinstance(nodes, list) and all(
        isinstance(each, dict) and isinstance(each.get("op"), str) for each in nodes
    )
    _expect(is_one, "description: reference_graph: is no graph")


# ------------------------------------------------------------------------------------------------------------- the calls


def _check_call(call: RecordedCall) -> None:
    _check_id("call_id", call.call_id)
    _expect(CallId.read(call.call_id) is not None, f"call_id: {call.call_id[:40]!r} is no id of a call")
    _check_usage(call.usage)
    if call.reply is not None:
        _expect(isinstance(call.reply.get("text"), str), "reply: has no text")
        _expect(isinstance(call.reply.get("is_truncated", False), bool | None), "reply: is_truncated is no bool")
    for name, value in (call.question or {}).items():
        kind = _QUESTIONS.get(name, object)
        has_others = isinstance(value, list) and not all(isinstance(each, str) for each in value)
        is_bool = kind is int and isinstance(value, bool)
        is_one = isinstance(value, kind) and not is_bool and not has_others
        is_left_out = value is None and name in ("round", "count")
        _expect(is_left_out or is_one, f"question: {name}: {str(value)[:40]} is no {kind.__name__}")


def _check_usage(usage: Mapping[str, Any]) -> None:
    for name in ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens"):
        tokens = usage.get(name, 0)
        is_count = type(tokens) is int and 0 <= tokens <= MOST_TOKENS
        _expect(is_count, f"usage: {name}: {str(tokens)[:40]} is no number of tokens")
    for name in ("usd", "latency_s"):
        _expect(_is_amount(usage.get(name) or 0), f"usage: {name}: {str(usage.get(name))[:40]} is no amount")


# ------------------------------------------------------------------------------------------------- what was measured


def _check_measurement(measured: RecordedMeasurement) -> None:
    for name, value in (("source_sha256", measured.source_sha256), ("second_sha256", measured.second_sha256)):
        _expect(bool(_SHA256.fullmatch(value)), f"{name}: {value[:40]!r} is no hash")
    if measured.what == FAILURE:
        _expect(isinstance(measured.result.get("reason"), str), "result: has no reason")
        return
    _expect(measured.what in _RESULTS, f"what: {measured.what[:40]!r} is no measurement")
    is_failed = measured.what == Comparison.__name__ and "finding" in measured.result
    _check_result((FailedComparison if is_failed else _RESULTS[measured.what]).from_json(measured.result))


def _check_result(result: Record) -> None:
    if isinstance(result, Build):
        _expect(_is_amount(result.build_s), "build_s: is no time")
    elif isinstance(result, Verdict):
        _expect(_is_amount(result.verify_s) and _is_amount(result.load_s), "verify_s, load_s: one is no time")
    elif isinstance(result, Timing):
        _check_timing(result)
    elif isinstance(result, Comparison):
        _check_times("comparison", result.ratio, *result.ratio_ci95, result.first_ms, result.second_ms)
    elif isinstance(result, FailedComparison):
        _expect(result.at_fault in (None, 0, 1), "at_fault: is none of the two")


def _check_timing(timing: Timing) -> None:
    needed = (timing.median_ms, timing.reference_ms, timing.speedup)
    _expect(timing.status is not Status.OK or None not in needed, "timing: status ok needs a median and a speedup")
    times = (*needed, *(timing.speedup_ci95 or ()), timing.p10_ms, timing.p90_ms, timing.witness_ms, timing.graph_ms)
    _check_times("timing", *times)
    _expect(_is_amount(timing.benchmark_s) and _is_amount(timing.load_s), "benchmark_s, load_s: one is no time")


# ------------------------------------------------------------------------------------------- what the search was given


def _check_given(candidate: Candidate) -> None:
    _check_id("id", candidate.id)
    _expect(candidate.origin in (Origin.SEED, Origin.BANK), f"origin: {candidate.origin} was not given")
    _expect(candidate.round == 0, "round: is not 0")


def _check_told(steer: Steer) -> None:
    _check_id("id", steer.id)
    _expect(0 <= steer.from_round <= _MOST_ROUND, "from_round: is no round")
    if steer.kind is SteerKind.SEED:
        _check_id("name", steer.name)
        _expect(steer.name.startswith(SEED_PREFIX), f"name: {steer.name[:40]!r} is no seed's")
    if steer.kind is not SteerKind.STOP:
        _expect(bool(steer.text.strip()), "text: is empty")


# ----------------------------------------------------------------------------------------------------------- the values


def _expect(is_so: bool, otherwise: str) -> None:  # noqa: FBT001  # reads as an assertion
    if not is_so:
        raise ValueError(otherwise)


def _check_id(name: str, value: str) -> None:
    is_id = 0 < len(value) <= _MOST_ID and value.isprintable() and not set(value) & set("/\\")
    _expect(is_id, f"{name}: {value[:40]!r} is no id")


def _check_times(what: str, *times: float | None) -> None:
    for value in times:
        _expect(value is None or 0 < value < math.inf, f"{what}: {value} is no time, and no ratio of times")


def _is_amount(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
