"""The pace at which one provider takes requests, learnt from its refusals and shared by all branches of a search.

A refusal for the rate (HTTP 429) holds everybody back until the provider's Retry-After, and then parts the requests by an
interval, which each further refusal doubles and each admission shortens a little: additive increase of the rate,
multiplicative decrease, as TCP finds the capacity of a line. Requests that were under way at a refusal teach nothing new.
"""

from __future__ import annotations

import asyncio
import math
import time
from dataclasses import dataclass

from ridgeline.graph.models.call_in_hand import IN_HAND
from ridgeline.graph.models.failures import ModelUnavailable
from ridgeline.tools.errors import NotBegun, OutOfBudget
from ridgeline.tools.machine.logs import logger_of

logger = logger_of(__name__)

FIRST_INTERVAL_S = 0.5
LONGEST_INTERVAL_S = 60.0
"""Providers count requests and tokens by the minute."""
SHORTENED = 0.95
"""Factor of the interval at each admission: some thirty admissions undo two refusals."""
NO_INTERVAL_S = 0.05
PATIENCE_S = 60.0
"""A provider that refuses is given up after this time at the earliest: a minute's limit that is used up has room by then."""
LONGEST_WAIT_S = 86_400.0
LOOK_EVERY_S = 0.25
"""A stop that was asked for ends a wait after this long."""
TOLD_FROM_S = 30.0
"""A wait of this length is worth a line in the log."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One request's leave to be sent."""

    at_s: float  # time.monotonic()


class Pacer:
    """Parts the requests to one provider in time."""

    def __init__(self, provider: str) -> None:
        """Take the provider's name for messages."""
        self._provider = provider
        self._line = asyncio.Lock()  # fair: first come, first served
        self._not_before_s = -math.inf
        self._interval_s = 0.0
        self._last_sent_s = -math.inf
        self._last_refused_s = -math.inf
        self._refusals = 0  # in a row, those of requests sent together counted once
        self._refuses_since_s = math.inf

    async def turn(self, *, gives_up_after: int | None = None) -> Turn:
        """Return when the next request may be sent.

        With `gives_up_after` the request was refused before: it is given up after that many refusals in a row over PATIENCE_S.

        Raises:
            ModelUnavailable: the provider admits nothing.
            OutOfBudget, NotBegun: see `pause`.
        """
        async with self._line:
            while (wait_s := self._free_at_s() - time.monotonic()) > 0:
                self._check_hope(gives_up_after)
                await self.pause(wait_s, until_refused=True)
            self._check_hope(gives_up_after)
            self._last_sent_s = time.monotonic()
            return Turn(self._last_sent_s)

    def _check_hope(self, gives_up_after: int | None) -> None:
        if gives_up_after is None or self._refusals < gives_up_after:
            return
        if self._last_refused_s - self._refuses_since_s >= PATIENCE_S:
            raise ModelUnavailable(
                f"{self._provider} did not answer: it refused {self._refusals} requests in a row for their rate (HTTP 429)"
            )

    def _free_at_s(self) -> float:
        return max(self._not_before_s, self._last_sent_s + self._interval_s)

    def refused(self, turn: Turn, retry_after_s: float | None) -> None:
        """Learn that a request was refused for the rate, and perhaps for how long."""
        now = time.monotonic()
        if turn.at_s > self._last_refused_s:
            self._refuses_since_s = self._refuses_since_s if self._refusals else now
            self._refusals += 1
            self._interval_s = min(LONGEST_INTERVAL_S, max(FIRST_INTERVAL_S, 2 * self._interval_s))
        self._last_refused_s = now
        wait_s = self._interval_s if retry_after_s is None else retry_after_s
        self._not_before_s = max(self._not_before_s, now + wait_s)
        logger.info("%s refuses more requests for %.1f s", self._provider, wait_s)

    def admitted(self) -> None:
        """Learn that a request was answered."""
        self._refusals = 0
        self._interval_s *= SHORTENED
        if self._interval_s < NO_INTERVAL_S:
            self._interval_s = 0.0

    def _check_time(self, wait_s: float, left_s: float | None) -> None:
        asked = f"{self._provider} takes the next request in {wait_s:,.0f} s"
        if left_s is not None and wait_s > left_s:
            raise OutOfBudget(f"{asked}, and {max(0.0, left_s):,.0f} s of the budget's wall_s are left")
        if wait_s > LONGEST_WAIT_S:
            raise OutOfBudget(f"{asked}, which is more than a day")

    async def pause(self, wait_s: float, *, until_refused: bool = False) -> None:
        """Wait, at the provider's wish; with `until_refused` until the time to wait for has changed at the latest.

        Raises:
            OutOfBudget: the search's budget has less time than that, or it is more than a day.
            NotBegun: a stop was asked for.
        """
        call, aim_s, ends_s = IN_HAND.get(), self._not_before_s, time.monotonic() + wait_s
        left_s = call.left_s() if call else None
        self._check_time(wait_s, left_s)
        if wait_s >= TOLD_FROM_S:
            logger.warning("%s takes the next request in %.0f s: waiting", self._provider, wait_s)
        while (rest_s := ends_s - time.monotonic()) > 0 and not (until_refused and self._not_before_s != aim_s):
            if call is not None and call.is_stopping():
                raise NotBegun(f"a stop was asked for while {self._provider} was waited for")
            await asyncio.sleep(min(rest_s, LOOK_EVERY_S))
