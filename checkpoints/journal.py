"""The journal of model calls: each call has a deterministic id, and a reply is stored before it is used.

So no reply that arrived is paid twice. A call is `in_flight` from just before it is sent until its reply is stored. A
call that a crash left `in_flight` may have been paid without an answer; `totals()["repeated"]` counts the calls sent
again. A `waiting` call waits for an outside agent or a person, who finds all that an answer needs in `request`. No
command begins such a call yet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.database import to_text
from ridgeline.checkpoints.migrations import NOW

_BEGIN = """INSERT INTO model_calls (call_id, state, model, prompt_sha256, request)
VALUES (:call_id, :state, :model, :prompt_sha256, :request)
ON CONFLICT (call_id) DO UPDATE SET state = excluded.state, model = excluded.model, request = excluded.request,
  prompt_sha256 = excluded.prompt_sha256, error = '', sent = sent + 1
WHERE state <> 'finished'"""
_FINISH = f"""UPDATE model_calls SET state = 'finished', reply = :reply, error = '', ended_at = {NOW}
WHERE call_id = :call_id AND state <> 'finished'"""
_FAIL = f"""UPDATE model_calls SET state = 'failed', reply = NULL, error = :error, ended_at = {NOW}
WHERE call_id = :call_id AND state <> 'finished'"""
_LOSE = """INSERT OR IGNORE INTO failed_sends (call_id, sent, error, input_tokens, output_tokens, usd)
SELECT call_id, sent, :error, :input_tokens, :output_tokens, :usd FROM model_calls
WHERE call_id = :call_id AND state = 'failed'"""
_USED = "".join(
    f""", COALESCE({column}, 0) + COALESCE(
    (SELECT SUM({column}) FROM failed_sends WHERE failed_sends.call_id = model_calls.call_id), 0) AS {column}"""
    for column in ("input_tokens", "output_tokens", "usd")
)
_CALLS = f"""SELECT call_id, state, model, prompt_sha256, request, error, sent, began_at, ended_at, latency_s{_USED}
FROM model_calls WHERE :state IS NULL OR state = :state ORDER BY rowid"""
_TOTALS = f"""SELECT COUNT(*) AS calls, COALESCE(SUM(input_tokens), 0) AS input_tokens,
  COALESCE(SUM(output_tokens), 0) AS output_tokens, COALESCE(SUM(usd), 0.0) AS usd,
  COUNT(*) FILTER (WHERE state = 'in_flight') AS in_flight, COUNT(*) FILTER (WHERE state = 'waiting') AS waiting,
  COUNT(*) FILTER (WHERE state = 'failed') AS failed, COALESCE(SUM(sent - 1), 0) AS repeated
FROM (SELECT state, sent{_USED} FROM model_calls)"""


class Journal:
    """The model calls of one search, in its archive's file."""

    def __init__(self, archive: Archive) -> None:
        self._database = archive.database

    def stored(self, call_id: str, prompt_sha256: str | None = None) -> dict[str, Any] | None:
        """Return the reply of a finished call as it was given to `finish`, or None.

        A `prompt_sha256` that differs from the stored hash is recorded in `mismatches`; the reply is returned all the
        same.
        """
        row = self._database.first(
            "SELECT reply, prompt_sha256 FROM model_calls WHERE call_id = ? AND state = 'finished'", [call_id]
        )
        if row is None:
            return None
        if prompt_sha256 is not None and prompt_sha256 != row["prompt_sha256"]:
            self._record_mismatch(call_id, row["prompt_sha256"], prompt_sha256)
        reply: dict[str, Any] = self._database.value_of(row["reply"])
        return reply

    def begin(
        self, call_id: str, *, model: str, prompt_sha256: str, request: dict[str, Any], waiting: bool = False
    ) -> None:
        """Record that a call is about to be sent (or, when `waiting`, that it waits for an outside answer).

        A finished call stays finished. A call that was in flight or failed is counted as sent once more.
        """
        call = {"call_id": call_id, "model": model, "prompt_sha256": prompt_sha256, "request": to_text(request)}
        with self._database.write() as rows:
            rows.execute(_BEGIN, call | {"state": "waiting" if waiting else "in_flight"})

    def finish(self, call_id: str, reply: dict[str, Any]) -> None:
        """Store a call's reply durably: `text`, `input_tokens`, `output_tokens`, `usd`, `latency_s` and `raw`.

        The first reply stays: finishing or failing a finished call changes nothing, so a replay gets the reply that was
        used.

        Raises:
            KeyError: the call was never begun.
        """
        self._end(call_id, (_FINISH,), {"reply": to_text(reply)})

    def fail(self, call_id: str, error: str, usage: Mapping[str, Any] | None = None) -> None:
        """Record that a call ended without a usable reply.

        `usage` is the cost of the failed call: `input_tokens`, `output_tokens` and `usd`, each 0 when left out. The cost
        stays counted when the call is sent again; failing a failed call once more adds nothing.

        Raises:
            KeyError: the call was never begun.
        """
        used = {name: (usage or {}).get(name) or 0 for name in ("input_tokens", "output_tokens", "usd")}
        self._end(call_id, (_FAIL, _LOSE), {"error": error} | used)

    def _end(self, call_id: str, statements: Sequence[str], values: dict[str, Any]) -> None:
        with self._database.write() as rows:
            if not rows.table("model_calls").count_where("call_id = ?", [call_id]):
                raise KeyError(f"{self._database.path}: no model call {call_id}")
            for statement in statements:
                rows.execute(statement, {"call_id": call_id} | values)

    def calls(self, state: str | None = None) -> list[dict[str, Any]]:
        """Return the calls in one state ("in_flight", "waiting", "finished", "failed") or all, oldest first.

        `input_tokens`, `output_tokens` and `usd` include the call's failed sends.
        """
        found = self._database.query(_CALLS, {"state": state})
        return [row | {"request": self._database.value_of(row["request"])} for row in found]

    def totals(self) -> dict[str, Any]:
        """Return the sums over all calls: numbers of calls by state, tokens and dollars.

        `calls`, and of these `in_flight`, `waiting` and `failed`; `input_tokens`, `output_tokens` and `usd`, failed
        sends included; `repeated`, the sends beyond the first of each call.
        """
        return self._database.query(_TOTALS)[0]

    @property
    def mismatches(self) -> list[dict[str, str]]:
        """Return the calls whose replayed prompt had another hash: call_id, stored_sha256, replayed_sha256, seen_at."""
        return self._database.query("SELECT * FROM prompt_mismatches ORDER BY rowid")

    def _record_mismatch(self, call_id: str, stored: str, replayed: str) -> None:
        row = {"call_id": call_id, "stored_sha256": stored, "replayed_sha256": replayed}
        with self._database.write() as rows:
            rows.table("prompt_mismatches").insert(row, ignore=True)
