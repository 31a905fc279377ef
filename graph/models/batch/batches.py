"""The batches of one search: its requests gathered, sent once, looked for with growing pauses, and taken up.

Before a batch is made its calls bear its tag, after it its provider's id. A process that is killed in between leaves a tag
without an id, and so does an attempt that timed out. The provider is asked for the batch of that tag, and another one is
made only where SEEN_AFTER_S after the attempt's end the provider still shows none.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING

from ridgeline.checkpoints.calls.batched_calls import BatchedCalls, PlacedBatch
from ridgeline.checkpoints.calls.kept_texts import KeptTexts
from ridgeline.graph.models.allowance import Unsent, purpose_of
from ridgeline.graph.models.batch.faults import batch_fault, is_certain
from ridgeline.graph.models.batch.model import MOST_CALLS
from ridgeline.graph.models.batch.service import BatchStage, Line, Result, Seen
from ridgeline.graph.models.failures import ModelUnavailable
from ridgeline.graph.models.retry import RATE_LIMITED, RETRYABLE_STATUS, first_line, retry_after_s, status_of
from ridgeline.graph.models.waiting_request import WaitingRequest, seconds_since, stored_request
from ridgeline.tools.errors import ModelError, RidgelineError, RunError
from ridgeline.tools.machine.logs import logger_of
from ridgeline.tools.machine.threads import run_whole
from ridgeline.tools.wording import counted

if TYPE_CHECKING:
    from ridgeline.checkpoints.calls.journal import Journal
    from ridgeline.graph.models.allowance import Allowance
    from ridgeline.graph.models.batch.model import BatchModel
    from ridgeline.graph.models.requests import IdeationRequest, KernelRequest

logger = logger_of(__name__)

GATHER_S = 5.0
"""A search at work may ask again at any time: a batch is made once no request has come for so long."""
SETTLED_S = 0.4
"""The requests of one round come within this time of one another."""
LIMIT_S = 60.0
"""Longest time of one exchange with a provider; files of answers are small."""
SEEN_AFTER_S = 20.0
"""A batch is in its provider's list this long after the attempt to make it ended, also where no answer to that came."""
SKEW = timedelta(days=1)
"""Most that the clocks of this machine and of a provider differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """A call that a branch of this process waits for."""

    call_id: str
    model: BatchModel
    request: IdeationRequest | KernelRequest
    prompt: str
    asked_s: float = field(default_factory=time.monotonic)


@dataclass(slots=True)
class _Pause:
    """The time at which something is tried again, and how often it was in vain."""

    until_s: float = 0.0
    times: int = 0


class Batches:
    """A search's batches at its providers; one look at a time."""

    def __init__(self, journal: Journal, allowance: Allowance, find_model: Callable[[str], BatchModel | None]) -> None:
        """Take `find_model`, which gives a batch's model by its name, or None where this session has none."""
        self._journal = journal
        self._texts = KeptTexts(journal.archive)
        self._calls = BatchedCalls(journal)
        self._allowance = allowance
        self._find_model = find_model
        self._asked: dict[str, _Asked] = {}
        self._ended: dict[str, RidgelineError] = {}
        self._pauses: dict[str, _Pause] = {}  # of a batch by its tag, of new batches by their model
        self._turn = asyncio.Lock()

    # ------------------------------------------------------------------------------------------------ the calls' side

    def post(
        self, call_id: str, model: BatchModel, request: IdeationRequest | KernelRequest, *, prompt: str, sha256: str
    ) -> WaitingRequest:
        """Let a call wait, and return it; a call that waits in a batch stays there. Blocks."""
        if call_id not in self._ended:
            self._texts.keep_prompt(sha256, prompt)
            stored = stored_request(request)
            self._journal.begin(call_id, model=model.name, prompt_sha256=sha256, request=stored, waiting=True)
            asked = _Asked(call_id=call_id, model=model, request=request, prompt=f"{prompt}{request.partial}")
            self._asked.setdefault(call_id, asked)
        self.raise_ended(call_id)
        call = self._journal.call(call_id)
        if call is None:
            raise RunError(f"{self._journal.path}: {call_id} is gone")
        return WaitingRequest.from_call(call, prompt)

    def raise_ended(self, call_id: str) -> None:
        """Raise what ended a call without an answer, once."""
        if error := self._ended.pop(call_id, None):
            raise error

    # --------------------------------------------------------------------------------------------- the providers' side

    async def look(self, *, is_quiet: bool, at_once: bool = False) -> None:
        """Take up what the providers have answered, then send what waits.

        With `is_quiet` the search does nothing else: what waits is sent when the round's requests are there. `at_once`
        neither waits for more of them nor keeps a pause between two looks.

        Raises:
            ModelError: a provider refuses this key or model.
        """
        async with self._turn:
            for batch in await run_whole(self._calls.batches):
                model = self._find_model(batch.model)
                if model is not None and (at_once or self._is_time(batch.tag)):
                    await self._look_for(batch, model)
            waiting = set(await run_whole(self._journal.ids, "waiting"))
            placed = {call_id for batch in await run_whole(self._calls.batches) for call_id in batch.lines}
            self._asked = {call_id: asked for call_id, asked in self._asked.items() if call_id in waiting}
            unsent = [asked for call_id, asked in self._asked.items() if call_id not in placed]
            if unsent and (at_once or _is_gathered(unsent, is_quiet=is_quiet)):
                await self._send(unsent)
            await self._allowance.batches_changed()

    def _is_time(self, name: str) -> bool:
        return time.monotonic() >= self._pauses.setdefault(name, _Pause()).until_s

    def _pause(self, name: str, model: BatchModel, wait_s: float | None = None) -> int:
        """Let the next try wait, each time longer, or as long as the provider says; return how often it did."""
        pause = self._pauses.setdefault(name, _Pause())
        pause.until_s = time.monotonic() + (model.policy.delay_s(pause.times) if wait_s is None else wait_s)
        pause.times += 1
        return pause.times

    # ------------------------------------------------------------------------------------------------- what has come

    async def _look_for(self, batch: PlacedBatch, model: BatchModel) -> None:
        try:
            async with asyncio.timeout(LIMIT_S):
                batch_id = batch.id or await self._found(batch, model)
                seen = await model.service.look(batch_id, batch.lines) if batch_id else None
        except Exception as error:  # noqa: BLE001  # SDKs share no base; what is certain is told, the rest tried again
            if is_certain(error):
                await self._give_up(batch, model, batch_fault(model.name, error))
                return
            logger.warning("%s: no news of its batch: %s", model.name, first_line(error))
            self._pause(batch.tag, model)
            return
        if seen is None or seen.stage is BatchStage.WORKING:
            self._pause(batch.tag, model)
            return
        await self._take_up(batch, model, seen)

    async def _found(self, batch: PlacedBatch, model: BatchModel) -> str | None:
        """Return the id of a batch whose creation was cut off or had no answer; None as long as the provider shows none."""
        is_shown = _is_shown(batch)  # before the list is asked for: while it is on its way a batch may appear
        batch_id = await model.service.find(batch.tag, datetime.fromisoformat(batch.placed_at) - SKEW)
        if batch_id:
            logger.info("%s: the batch of %s was made before", model.name, counted(len(batch.lines), "request"))
            await run_whole(self._calls.name, batch.tag, batch_id)
        elif is_shown:
            logger.warning("%s: a batch was not made: its requests are asked again", model.name)
            await run_whole(self._calls.release, list(batch.lines), were_sent=False)
        return batch_id

    async def _give_up(self, batch: PlacedBatch, model: BatchModel, error: RidgelineError) -> None:
        """End a batch's calls with an error that is certain; that of a key or a model ends the search."""
        if isinstance(error, ModelError):
            raise error
        for call_id in batch.lines:
            await self._end(call_id, error)

    async def _take_up(self, batch: PlacedBatch, model: BatchModel, seen: Seen) -> None:
        """Keep the answers of a batch that is over; the calls without one are asked again, or end."""
        again: list[str] = []
        for call_id in batch.lines:
            result = seen.results.get(call_id) or _unanswered(seen)
            if result.body is not None:
                await run_whole(self._keep, call_id, result.body)
            elif result.status in RETRYABLE_STATUS and batch.tries[call_id] + 1 < model.policy.attempts:
                again.append(call_id)
            else:
                await self._end(call_id, ModelUnavailable(f"{model.name} did not answer: {result.error[:300]}"))
        logger.info("%s: a batch of %s %s", model.name, counted(len(batch.lines), "request"), seen.stage)
        if again:
            logger.warning("%s: %s of it asked again", model.name, counted(len(again), "request"))
            await run_whole(self._calls.release, again, were_sent=True)
            if seen.is_crowded:
                self._pause(model.name, model)

    def _keep(self, call_id: str, body: bytes) -> None:
        self._texts.keep_answer(call_id, body)
        self._calls.arrive(call_id)

    async def _end(self, call_id: str, error: RidgelineError) -> None:
        """End a call without an answer; the branch that asks for it gets the error."""
        self._ended[call_id] = error
        await run_whole(self._journal.fail, call_id, str(error))

    # ------------------------------------------------------------------------------------------------- what is sent

    async def _send(self, unsent: Sequence[_Asked]) -> None:
        ordered = sorted(unsent, key=lambda asked: asked.model.name)
        for name, group in groupby(ordered, key=lambda asked: asked.model.name):
            calls = list(group)
            for begin in range(0, len(calls), MOST_CALLS):
                if self._is_time(name):
                    await self._send_batch(calls[0].model, calls[begin : begin + MOST_CALLS])

    async def _send_batch(self, model: BatchModel, calls: Sequence[_Asked]) -> None:
        """Make one batch of those calls for which the budget has room."""
        lines = {asked.call_id: await _line(asked) for asked in calls}
        tag, wanted = uuid.uuid4().hex, [_unsent(asked) for asked in calls]
        async with self._allowance.admitted(model.name, model.tariff, wanted) as given:
            if given.held:
                await run_whole(self._calls.place, tag, datetime.now(UTC).isoformat(), given.held)
        for call_id, refused in given.refused.items():
            self._ended[call_id] = refused
            await run_whole(self._calls.withdraw, call_id)
        if given.held:
            await self._create(model, tag, [lines[call_id] for call_id in given.held])

    async def _create(self, model: BatchModel, tag: str, lines: Sequence[Line]) -> None:
        try:
            async with asyncio.timeout(LIMIT_S):
                batch_id = await model.service.create(tag, lines)
        except Exception as error:  # noqa: BLE001  # as in `_look_for`
            await self._not_created(model, tag, [line.call_id for line in lines], error)
            return
        await run_whole(self._calls.name, tag, batch_id)
        self._pauses.pop(model.name, None)
        self._pause(tag, model)
        logger.info("%s: a batch of %s is with the provider: %s", model.name, counted(len(lines), "request"), batch_id)

    async def _not_created(self, model: BatchModel, tag: str, call_ids: Sequence[str], error: Exception) -> None:
        """Release a batch that its provider refused; one that may have been made is looked for by its tag."""
        if is_certain(error):
            await run_whole(self._calls.release, call_ids, were_sent=False)
            fault = batch_fault(model.name, error)
            if isinstance(fault, ModelError):
                raise fault from error
            for call_id in call_ids:
                await self._end(call_id, fault)
            return
        logger.warning("%s: no batch was made yet: %s", model.name, first_line(error))
        if status_of(error) != RATE_LIMITED:
            await run_whole(self._calls.tried, tag, datetime.now(UTC).isoformat())
            self._pause(tag, model)
            return
        await run_whole(self._calls.release, call_ids, were_sent=False)
        if self._pause(model.name, model, retry_after_s(error)) >= model.policy.attempts:
            for call_id in call_ids:
                await self._end(call_id, ModelUnavailable(f"{model.name} did not answer: {first_line(error)}"))


def _is_shown(batch: PlacedBatch) -> bool:
    """Say whether the provider's list has a batch for certain, if it was made.

    An attempt that a kill cut off had LIMIT_S at most.
    """
    if batch.tried_at is None:
        return seconds_since(batch.placed_at) >= LIMIT_S + SEEN_AFTER_S
    return seconds_since(batch.tried_at) >= SEEN_AFTER_S


def _is_gathered(unsent: Sequence[_Asked], *, is_quiet: bool) -> bool:
    """Say whether the requests are there that go into one batch."""
    rested_s = time.monotonic() - max(asked.asked_s for asked in unsent)
    return rested_s >= (SETTLED_S if is_quiet else GATHER_S)


async def _line(asked: _Asked) -> Line:
    path, body = await asked.model.chat.held_back(asked.request)
    return Line(call_id=asked.call_id, path=path, body=body)


def _unsent(asked: _Asked) -> Unsent:
    return Unsent(id=asked.call_id, purpose=purpose_of(asked.request), prompt=asked.prompt)


def _unanswered(seen: Seen) -> Result:
    """Return what came of a request that its batch says nothing of."""
    if seen.stage is BatchStage.CANCELLED:
        return Result(status=400, error="its batch was cancelled")
    if seen.stage is BatchStage.FAILED:
        return Result(status=RATE_LIMITED if seen.is_crowded else 400, error=seen.reason or "its batch failed")
    return Result(status=408, error=f"its batch {seen.stage} without an answer")
