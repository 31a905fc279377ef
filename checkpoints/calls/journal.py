"""The journal of model calls: each call has a deterministic id, and a reply is stored before it is used.

So no reply that arrived is paid twice. A call is `in_flight` from just before it is sent until its reply is stored. A
call that a crash left `in_flight` may have been paid without an answer; `totals().repeated` counts the calls sent
again. A `waiting` call waits for an outside agent or a person, who finds all that an answer needs in `request`; `error`
says what was wrong with the last answer. Or it waits for its provider's batch: see `batched_calls`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.storage.database import to_text
from ridgeline.checkpoints.storage.migrations import NOW
from ridgeline.tools.records.codec import Record
from ridgeline.tools.records.keys import REPAIRS_GLOB

_BEGIN = """INSERT INTO model_calls (call_id, state, model, prompt_sha256, request)
VALUES (:call_id, :state, :model, :prompt_sha256, :request)
ON CONFLICT (call_id) DO UPDATE SET state = excluded.state, model = excluded.model, request = excluded.request,
  prompt_sha256 = excluded.prompt_sha256, error = '', sent = sent + 1
WHERE state <> 'finished' AND (state <> 'waiting' OR excluded.state <> 'waiting')"""
_FINISH = f"""UPDATE model_calls SET state = 'finished', reply = :reply, error = '', ended_at = {NOW}
WHERE call_id = :call_id AND state <> 'finished'"""
_ANSWER = f"""UPDATE model_calls SET state = 'finished', reply = :reply, error = '', ended_at = {NOW}
WHERE call_id = :call_id AND state = 'waiting'"""
_REFUSE = "UPDATE model_calls SET error = :error WHERE call_id = :call_id AND state = 'waiting'"
_MARK = """UPDATE model_calls SET request = json_set(request, '$.asked_in', :task)
WHERE call_id = :call_id AND state = 'waiting'"""
_FAIL = f"""UPDATE model_calls SET state = 'failed', reply = NULL, error = :error, ended_at = {NOW}
WHERE call_id = :call_id AND state <> 'finished'"""
_LOSE = """INSERT OR IGNORE INTO failed_sends (call_id, sent, error, input_tokens, output_tokens, usd, unpriced)
SELECT call_id, sent, :error, :input_tokens, :output_tokens, :usd, :unpriced FROM model_calls
WHERE call_id = :call_id AND state = 'failed'"""
_USED = "".join(
    f""", COALESCE({column}, 0) + COALESCE(
    (SELECT SUM({column}) FROM failed_sends WHERE failed_sends.call_id = model_calls.call_id), 0) AS {column}"""
    for column in ("input_tokens", "output_tokens", "usd")
)
_UNPRICED = """, (state = 'finished' AND model_calls.usd IS NULL
    AND COALESCE(model_calls.input_tokens, 0) + COALESCE(model_calls.output_tokens, 0) > 0)
    OR EXISTS (SELECT * FROM failed_sends WHERE failed_sends.call_id = model_calls.call_id AND unpriced) AS unpriced"""
_CALLS = f"""SELECT call_id, state, model, prompt_sha256, request, error, sent, began_at, ended_at, latency_s{_USED}{_UNPRICED}
FROM model_calls WHERE (:state IS NULL OR state = :state) AND (:call_id IS NULL OR call_id = :call_id)
  AND (:task IS NULL OR json_extract(request, '$.asked_in') = :task) ORDER BY rowid"""
_TOTALS = f"""SELECT COUNT(*) AS calls, COALESCE(SUM(input_tokens), 0) AS input_tokens,
  COALESCE(SUM(output_tokens), 0) AS output_tokens, COALESCE(SUM(usd), 0.0) AS usd,
  COALESCE(SUM(input_tokens) FILTER (WHERE call_id GLOB '{REPAIRS_GLOB}'), 0) AS repair_input_tokens,
  COUNT(*) FILTER (WHERE state = 'in_flight') AS in_flight, COUNT(*) FILTER (WHERE state = 'waiting') AS waiting,
  COUNT(*) FILTER (WHERE state = 'waiting' AND model LIKE '%?batch') AS batched,
  COUNT(*) FILTER (WHERE state = 'failed') AS failed, COALESCE(SUM(sent - 1), 0) AS repeated,
  COALESCE(SUM(unpriced), 0) AS unpriced
FROM (SELECT call_id, state, model, sent{_USED}{_UNPRICED} FROM model_calls)"""

_OUTPUT_TOKENS = """SELECT COALESCE(MAX(output_tokens), 0) AS most, COALESCE(AVG(output_tokens), 0) AS usual
FROM model_calls WHERE model = :model AND state = 'finished' AND instr(call_id, :part) > 0"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTotals(Record):
    """The sums over all model calls of a search; tokens and dollars include those of failed sends."""

    calls: int
    input_tokens: int
    output_tokens: int
    usd: float
    repair_input_tokens: int  # of the input, what repairs of kernels took
    in_flight: int  # calls, as are the next three
    waiting: int
    batched: int  # of those that wait, in a batch of their provider
    failed: int
    repeated: int  # sends beyond the first of each call
    unpriced: int  # calls of unknown price

    @property
    def tokens(self) -> int:
        """Return the tokens of input and output."""
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A model call as the journal holds it; a damaged archive's may hold anything, which its readers check.

    Tokens and dollars include those of failed sends.
    """

    call_id: str
    state: str  # "in_flight", "waiting", "finished" or "failed"
    model: str
    prompt_sha256: str
    request: dict[str, Any]
    error: str  # why it failed, or what was wrong with the last answer
    sent: int  # times
    began_at: str
    ended_at: str | None
    latency_s: float | None
    input_tokens: int
    output_tokens: int
    usd: float
    unpriced: int  # 1 where it used tokens at an unknown price


class Journal:
    """The model calls of one search, in its archive's file."""

    def __init__(self, archive: Archive) -> None:
        self.archive = archive
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

        A finished call stays finished, and a waiting one keeps its request. A call that was in flight or failed is
        counted as sent once more.
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

        `usage` is the cost of the failed call: `input_tokens`, `output_tokens` and `usd`, each 0 when left out; a `usd` of
        None is an unknown price. The cost stays counted when the call is sent again; failing a failed call once more adds
        nothing.

        Raises:
            KeyError: the call was never begun.
        """
        usage = usage or {}
        used = {name: usage.get(name) or 0 for name in ("input_tokens", "output_tokens", "usd")}
        is_unpriced = bool(used["input_tokens"] or used["output_tokens"]) and usage.get("usd", 0) is None
        self._end(call_id, (_FAIL, _LOSE), {"error": error, "unpriced": is_unpriced} | used)

    def answer(self, call_id: str, reply: dict[str, Any]) -> bool:
        """Store the reply of a waiting call durably, as `finish` does; False when the call does not wait (any more)."""
        return self._change(_ANSWER, {"call_id": call_id, "reply": to_text(reply)})

    def refuse(self, call_id: str, error: str) -> None:
        """Store what was wrong with an answer to a call, which waits on."""
        self._change(_REFUSE, {"call_id": call_id, "error": error})

    def mark(self, call_id: str, task: str) -> None:
        """Store the task of a host's graph in which a waiting call was put to the host."""
        self._change(_MARK, {"call_id": call_id, "task": task})

    def _change(self, statement: str, values: dict[str, Any]) -> bool:
        with self._database.write() as rows:
            return bool(rows.execute(statement, values).rowcount)

    def _end(self, call_id: str, statements: Sequence[str], values: dict[str, Any]) -> None:
        with self._database.write() as rows:
            if not rows.table("model_calls").count_where("call_id = ?", [call_id]):
                raise KeyError(f"{self._database.path}: no model call {call_id}")
            for statement in statements:
                rows.execute(statement, {"call_id": call_id} | values)

    @property
    def path(self) -> Path:
        """Return the archive's file."""
        return self._database.path

    def call(self, call_id: str) -> Call | None:
        """Return one call as `calls` does, or None."""
        return next(iter(self._calls(call_id=call_id)), None)

    def marked(self, task: str) -> Call | None:
        """Return the call that was put to a host in this task of its graph, or None."""
        return next(iter(self._calls(task=task)), None)

    def ids(self, state: str | None = None) -> list[str]:
        """Return the ids of the calls in one state or all, oldest first."""
        sql = "SELECT call_id FROM model_calls WHERE :state IS NULL OR state = :state ORDER BY rowid"
        return [str(row["call_id"]) for row in self._database.query(sql, {"state": state})]

    def refused(self) -> dict[str, str]:
        """Return what was wrong with the last answer, by the ids of the calls that wait for a better one."""
        sql = "SELECT call_id, error FROM model_calls WHERE state = 'waiting' AND error <> '' AND model NOT LIKE '%?batch'"
        return {str(row["call_id"]): str(row["error"]) for row in self._database.query(f"{sql} ORDER BY rowid")}

    def calls(self, state: str | None = None) -> list[Call]:
        """Return the calls in one state ("in_flight", "waiting", "finished", "failed") or all, oldest first."""
        return self._calls(state=state)

    def _calls(self, *, state: str | None = None, call_id: str | None = None, task: str | None = None) -> list[Call]:
        found = self._database.query(_CALLS, {"state": state, "call_id": call_id, "task": task})
        return [Call(**row | {"request": self._database.value_of(row["request"])}) for row in found]

    def totals(self) -> CallTotals:
        """Return the sums over all calls."""
        return CallTotals(**self._database.query(_TOTALS)[0])

    def output_tokens(self, model: str, purpose: str) -> dict[str, float]:
        """Return the output tokens of a model's finished calls for `purpose` ("ideate", "write"): `most` and `usual`.

        `usual` is the mean. Both are 0 before the first call has ended.
        """
        return self._database.query(_OUTPUT_TOKENS, {"model": model, "part": f":{purpose}"})[0]

    @property
    def mismatches(self) -> list[dict[str, str]]:
        """Return the calls whose replayed prompt had another hash: call_id, stored_sha256, replayed_sha256, seen_at."""
        return self._database.query("SELECT * FROM prompt_mismatches ORDER BY rowid")

    def _record_mismatch(self, call_id: str, stored: str, replayed: str) -> None:
        row = {"call_id": call_id, "stored_sha256": stored, "replayed_sha256": replayed}
        with self._database.write() as rows:
            rows.table("prompt_mismatches").insert(row, ignore=True)
