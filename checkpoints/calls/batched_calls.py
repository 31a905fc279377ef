"""Waiting calls that lie in a batch at their provider: in which one, at which line, and what of the budget they hold.

A call's row in the journal says all of it, in `request.batch`: a tag of ours from before the batch is made, its
provider's id from just after. A tag without an id is a batch that may exist: its provider knows it by the tag.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from ridgeline.checkpoints.calls.journal import Journal
from ridgeline.checkpoints.storage.database import to_text

_PLACE = """UPDATE model_calls SET request = json_set(request, '$.batch', json(:batch))
WHERE call_id = :call_id AND state = 'waiting'"""
_NAME = """UPDATE model_calls SET request = json_set(request, '$.batch.id', :batch_id)
WHERE state = 'waiting' AND json_extract(request, '$.batch.tag') = :tag"""
_TRIED = """UPDATE model_calls SET request = json_set(request, '$.batch.tried_at', :tried_at)
WHERE state = 'waiting' AND json_extract(request, '$.batch.tag') = :tag"""
_RELEASE = """UPDATE model_calls SET sent = sent + :again, request = json_set(json_remove(request, '$.batch'),
  '$.tries', COALESCE(json_extract(request, '$.tries'), 0) + 1) WHERE call_id = :call_id AND state = 'waiting'"""
_WITHDRAW = "DELETE FROM model_calls WHERE call_id = :call_id AND state = 'waiting'"
_ARRIVE = "UPDATE model_calls SET state = 'in_flight' WHERE call_id = :call_id AND state = 'waiting'"
_BATCHES = """SELECT call_id, model, json_extract(request, '$.batch') AS batch, json_extract(request, '$.tries') AS tries
FROM model_calls WHERE state = 'waiting' AND json_extract(request, '$.batch') IS NOT NULL
ORDER BY json_extract(request, '$.batch.placed_at'), json_extract(request, '$.batch.tag'),
  json_extract(request, '$.batch.line')"""
_HELD = """SELECT COUNT(*) AS calls, COALESCE(SUM(json_extract(request, '$.batch.tokens')), 0) AS tokens,
  COALESCE(SUM(json_extract(request, '$.batch.usd')), 0.0) AS usd
FROM model_calls WHERE state = 'waiting' AND json_extract(request, '$.batch') IS NOT NULL"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedBatch:
    """The calls of one batch that still wait for their answers.

    `tries` counts, for each of these calls, the batches before this one that were not made or ended without its answer.
    """

    tag: str  # ours
    id: str | None  # its provider's; None: it may never have been made
    model: str
    placed_at: str  # UTC, ISO 8601
    tried_at: str | None  # when the attempt to make it ended in an error; None: it is made, under way, or was cut off
    lines: Mapping[str, int]  # of each call
    tries: Mapping[str, int]


class BatchedCalls:
    """The batches of one search, in its journal."""

    def __init__(self, journal: Journal) -> None:
        self._database = journal.archive.database

    def place(self, tag: str, placed_at: str, held: Mapping[str, Mapping[str, float]]) -> None:
        """Put waiting calls into a batch that is about to be made, in this order; each holds `tokens` and `usd`."""
        batch = {"tag": tag, "id": None, "placed_at": placed_at}
        with self._database.write() as rows:
            for line, (call_id, amounts) in enumerate(held.items()):
                rows.execute(_PLACE, {"call_id": call_id, "batch": to_text(batch | {"line": line} | dict(amounts))})

    def name(self, tag: str, batch_id: str) -> None:
        """Store the provider's id of a batch."""
        self._each(_NAME, [{"tag": tag, "batch_id": batch_id}])

    def tried(self, tag: str, tried_at: str) -> None:
        """Store when the attempt to make a batch ended without the provider's word on it."""
        self._each(_TRIED, [{"tag": tag, "tried_at": tried_at}])

    def release(self, call_ids: Sequence[str], *, were_sent: bool) -> None:
        """Take calls out of their batch, to be asked in another one; `were_sent` counts them as sent once more."""
        self._each(_RELEASE, [{"call_id": call_id, "again": int(were_sent)} for call_id in call_ids])

    def withdraw(self, call_id: str) -> None:
        """Remove a waiting call that is in no batch: it was never sent."""
        self._each(_WITHDRAW, [{"call_id": call_id}])

    def arrive(self, call_id: str) -> None:
        """Let a call wait no more whose answer is kept; what the answer holds is for its reader to say."""
        self._each(_ARRIVE, [{"call_id": call_id}])

    def _each(self, statement: str, values: Sequence[Mapping[str, Any]]) -> None:
        with self._database.write() as rows:
            for each in values:
                rows.execute(statement, dict(each))

    def batches(self) -> list[PlacedBatch]:
        """Return the batches with calls that wait, oldest first."""
        found = [row | {"batch": self._database.value_of(row["batch"])} for row in self._database.query(_BATCHES)]
        return [_batch(list(rows)) for _, rows in groupby(found, key=lambda row: row["batch"]["tag"])]

    def held(self) -> dict[str, float]:
        """Return the number of `calls` in batches, and the most `tokens` and `usd` that they may use together."""
        return self._database.query(_HELD)[0]


def _batch(rows: Sequence[Mapping[str, Any]]) -> PlacedBatch:
    first = rows[0]
    return PlacedBatch(
        tag=first["batch"]["tag"],
        id=first["batch"]["id"],
        model=first["model"],
        placed_at=first["batch"]["placed_at"],
        tried_at=first["batch"].get("tried_at"),
        lines={row["call_id"]: row["batch"]["line"] for row in rows},
        tries={row["call_id"]: row["tries"] or 0 for row in rows},
    )
