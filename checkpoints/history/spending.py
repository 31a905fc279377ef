"""The spending of a search on each idea and each kernel: models, their tokens and price, their time and the judge's."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.calls.journal import Call, Journal
from ridgeline.checkpoints.storage.errors import damaged
from ridgeline.tools.errors import StorageError
from ridgeline.tools.records.keys import CallId
from ridgeline.tools.records.vocabulary import SEARCHED


@dataclass(slots=True, kw_only=True)
class Spent:
    """The share of one idea or one kernel; of the request that brought several ideas each has an equal one."""

    tokens: float = 0.0
    usd: float = 0.0
    unpriced: int = 0  # calls for its kernels whose price is unknown
    model_s: float = 0.0  # from requests to replies, summed: several are answered side by side
    judged_s: float = 0.0  # of an idea: building, verifying and timing its kernels, summed likewise
    writers: list[str] = field(default_factory=list)  # the models that wrote its kernels, in the order of the calls


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """The spending of a search, as far as it belongs to an idea or a kernel."""

    by_idea: Mapping[str, Spent]  # every idea's
    by_candidate: Mapping[str, Spent]  # by a kernel's id the calls that wrote it, of those that have any


def spending(archive: Archive) -> Spending:
    """Return what each idea and each kernel took.

    What belongs to no single idea is in none: PyTorch's times, comparisons of leaders, the certificate, and requests for
    ideas that brought none.

    Raises:
        StorageError: a cost is no number.
    """
    ideas = archive.ideas()
    by_idea = {idea.id: Spent() for idea in ideas}
    by_candidate: dict[str, Spent] = defaultdict(Spent)
    for call in Journal(archive).calls():
        _check(archive, call)
        call_id = CallId.read(call.call_id)
        if call_id is None:
            continue
        if call_id.asks_for_ideas:
            brought = [idea.id for idea in ideas if idea.round == call_id.round and idea.model == call.model]
            for idea_id in brought:
                _charge(by_idea[idea_id], call, parts=len(brought))
        else:
            _charge_writing(by_candidate[call_id.candidate_id], call)
            if call_id.idea_id in by_idea:
                _charge_writing(by_idea[call_id.idea_id], call)
    owners = {candidate.id: candidate.idea_id for candidate in archive.candidates()}
    for entry in archive.ledger_entries():
        candidate_id = str(entry["entry_id"]).partition(":")[0]
        own = by_idea.get(owners.get(candidate_id) or "")
        if own is not None and entry["what"] in SEARCHED:
            own.judged_s += entry["wall_s"]
    return Spending(by_idea=by_idea, by_candidate=dict(by_candidate))


def _charge_writing(own: Spent, call: Call) -> None:
    """Charge a call for a kernel to it, or to its idea."""
    _charge(own, call)
    own.unpriced += call.unpriced
    own.writers += [call.model] if call.model not in own.writers else []


def _charge(own: Spent, call: Call, *, parts: int = 1) -> None:
    """Charge one of so many equal parts of a call."""
    own.tokens += (call.input_tokens + call.output_tokens) / parts
    own.usd += call.usd / parts
    own.model_s += _seconds(call.latency_s) / parts


def _seconds(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else 0.0


def _check(archive: Archive, call: Call) -> None:
    used: tuple[object, ...] = (call.input_tokens, call.output_tokens, call.usd)
    if not all(isinstance(value, int | float) and math.isfinite(value) for value in used):
        raise StorageError(f"{archive.path}: {damaged('what a call took is no number')}")
