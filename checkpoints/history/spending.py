"""What each idea of a search took: the models that were asked, their tokens and price, their time and the judge's."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.calls.journal import Journal
from ridgeline.checkpoints.storage.errors import damaged
from ridgeline.tools.errors import StorageError
from ridgeline.tools.records.keys import CallId
from ridgeline.tools.records.search import Idea


@dataclass(slots=True, kw_only=True)
class Spent:
    """What one idea took; of the request that brought several ideas each has an equal share."""

    calls: int = 0  # for its kernels
    tokens: float = 0.0
    usd: float = 0.0
    unpriced: int = 0  # calls for its kernels whose price is unknown
    model_s: float = 0.0  # from requests to replies, summed: several are answered side by side
    judged_s: float = 0.0  # building, verifying and timing its kernels, summed likewise
    writers: list[str] = field(default_factory=list)  # the models that wrote its kernels, in the order of the calls


def spent_by_idea(archive: Archive) -> dict[str, Spent]:
    """Return by an idea's id what it took.

    What belongs to no single idea is in none: PyTorch's times, comparisons of leaders, the certificate, and requests for
    ideas that brought none.

    Raises:
        StorageError: a cost is no number.
    """
    ideas = archive.ideas()
    spent = {idea.id: Spent() for idea in ideas}
    for call in Journal(archive).calls():
        _check(archive, call, ("input_tokens", "output_tokens", "usd"))
        if call_id := CallId.read(call["call_id"]):
            _add(spent, ideas, call_id, call)
    owners = {candidate.id: candidate.idea_id for candidate in archive.candidates()}
    for entry in archive.ledger_entries():
        candidate_id = str(entry["entry_id"]).partition(":")[0]
        own = spent.get(owners.get(candidate_id) or "")
        if own is not None and entry["what"] != "compare":
            own.judged_s += entry["wall_s"]
    return spent


def _add(spent: dict[str, Spent], ideas: Iterable[Idea], call_id: CallId, call: dict[str, Any]) -> None:
    """Charge a call to its kernel's idea, or in equal parts to the ideas that it brought."""
    tokens = call["input_tokens"] + call["output_tokens"]
    waited_s = _seconds(call["latency_s"])
    if not call_id.asks_for_ideas:
        own = spent.get(call_id.idea_id)
        if own is not None:
            own.calls += 1
            own.tokens += tokens
            own.usd += call["usd"]
            own.unpriced += call["unpriced"]
            own.model_s += waited_s
            own.writers += [call["model"]] if call["model"] not in own.writers else []
        return
    brought = [idea.id for idea in ideas if idea.round == call_id.round and idea.model == call["model"]]
    for idea_id in brought:
        own = spent[idea_id]
        own.tokens += tokens / len(brought)
        own.usd += call["usd"] / len(brought)
        own.model_s += waited_s / len(brought)


def _seconds(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else 0.0


def _check(archive: Archive, call: dict[str, Any], names: Iterable[str]) -> None:
    if not all(isinstance(call[name], int | float) and math.isfinite(call[name]) for name in names):
        raise StorageError(f"{archive.path}: {damaged('what a call took is no number')}")


def calls_by_candidate(archive: Archive) -> dict[str, dict[str, Any]]:
    """Return by a kernel's id what the calls that wrote it took: tokens, usd, unpriced, model_s."""
    found: dict[str, dict[str, Any]] = defaultdict(lambda: {"tokens": 0, "usd": 0.0, "unpriced": 0, "model_s": 0.0})
    for call in Journal(archive).calls():
        _check(archive, call, ("input_tokens", "output_tokens", "usd"))
        call_id = CallId.read(call["call_id"])
        if call_id is None or call_id.asks_for_ideas:
            continue
        entry = found[call_id.candidate_id]
        entry["tokens"] += call["input_tokens"] + call["output_tokens"]
        entry["usd"] += call["usd"]
        entry["unpriced"] += call["unpriced"]
        entry["model_s"] += _seconds(call["latency_s"])
    return dict(found)
