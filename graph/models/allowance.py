"""The room that a search's budget leaves for model calls: reserved before a call is sent, settled when it has ended.

A call is sent when the most that it may use fits beside what is spent and what the calls under way have reserved. Near a
budget's end a call that fits by its usual length only is sent alone. So a budget overshoots by one call at most,
however many branches ask, as long as no reply is more than twice as long as the longest before it.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from ridgeline.checkpoints.calls.batched_calls import BatchedCalls
from ridgeline.graph.models.prices import Tariff
from ridgeline.graph.models.requests import IdeationRequest, Usage
from ridgeline.problems.spec import Budget
from ridgeline.tools.errors import OutOfBudget
from ridgeline.tools.machine.threads import run_whole
from ridgeline.tools.wording import counted

if TYPE_CHECKING:
    from ridgeline.checkpoints.calls.journal import Journal
    from ridgeline.graph.models.requests import KernelRequest

CallKind = Literal["ideate", "write"]
"""The part of a call's id that says what the call is for."""

CHARACTERS_PER_TOKEN = 3
"""Fewest characters that a token of a prompt stands for: English has about 4.5, code 3 to 4."""
UNSEEN_OUTPUT_TOKENS = 32_000
"""Most output of a call before any of its kind has ended, where no limit is set: thought and text of a long kernel."""
LONGER = 2
"""A reply may be this many times as long as the longest so far of its model and purpose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The amounts that one call is expected to use, in one of the units of a budget."""

    usual: float
    most: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsent:
    """A call that is to go into a batch."""

    id: str
    purpose: CallKind
    prompt: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """The calls of a batch that are sent."""

    held: dict[str, Mapping[str, float]] = field(default_factory=dict)  # the most that each may use
    refused: dict[str, OutOfBudget] = field(default_factory=dict)


def purpose_of(request: IdeationRequest | KernelRequest) -> CallKind:
    """Return what a request's call is for."""
    return "ideate" if isinstance(request, IdeationRequest) else "write"


def prompt_tokens(prompt: str) -> int:
    """Return the tokens that a prompt has at most, by its length."""
    return math.ceil(len(prompt) / CHARACTERS_PER_TOKEN)


class Allowance:
    """The rest that the model calls of one search may still use."""

    def __init__(
        self, journal: Journal, budget: Budget, *, wall_used_s: Callable[[], float], awaits_batches: Callable[[], bool]
    ) -> None:
        """Take what says how long the search has looked for kernels over all its sessions, and whether it looks for a batch.

        A batch that this session looks for may end, and leave room.
        """
        self._journal = journal
        self._batched = BatchedCalls(journal)
        self._awaits_batches = awaits_batches
        self._budget = budget
        self._wall_used_s = wall_used_s
        self._changed = asyncio.Condition()
        self._held: list[Mapping[str, Estimate]] = []
        self.ended = ""  # why a call was not sent, or given up; the search then ends as a spent budget ends it

    def left_s(self) -> float | None:
        """Return the seconds left of the budget; None without a limit."""
        limit = self._budget.wall_s
        return None if limit is None else limit - self._wall_used_s()

    def end(self, reason: str) -> OutOfBudget:
        """Return the error of a call that the budget does not allow, and remember its reason."""
        self.ended = self.ended or reason
        return OutOfBudget(reason)

    @contextlib.asynccontextmanager
    async def deadline(self) -> AsyncIterator[None]:
        """Run the block until the budget's time is over.

        Raises:
            OutOfBudget: the time is over.
        """
        left_s = self.left_s()
        if left_s is not None and left_s <= 0:
            raise self._late()
        scope = asyncio.timeout(left_s)
        try:
            async with scope:
                yield
        except TimeoutError:
            if not scope.expired():
                raise
            raise self._late() from None

    def _late(self) -> OutOfBudget:
        limit = in_words("wall_s", self._budget.wall_s or 0.0)
        return self.end(f"the {limit} of the budget's wall_s are used: no idea or kernel is waited for any longer")

    @contextlib.asynccontextmanager
    async def reserved(self, model_name: str, tariff: Tariff, purpose: CallKind, prompt: str) -> AsyncIterator[None]:
        """Hold what a call may use while the block runs; the journal has what it did use when the block ends.

        Waits while calls under way may leave room.

        Raises:
            OutOfBudget: the call does not fit; it is not to be sent.
        """
        if self._budget.tokens is None and self._budget.usd is None:
            yield
            return
        wanted: Mapping[str, Estimate] = {}
        async with self._changed:
            while not await self._fits(
                wanted := await self._estimates(model_name, tariff, purpose, prompt_tokens(prompt))
            ):
                await self._changed.wait()
            self._held.append(wanted)
        try:
            yield
        finally:
            async with self._changed:
                self._held.remove(wanted)
                self._changed.notify_all()

    @contextlib.asynccontextmanager
    async def admitted(self, model_name: str, tariff: Tariff, calls: Sequence[Unsent]) -> AsyncIterator[Admission]:
        """Give those of a batch's calls that fit; the journal has what they hold when the block ends.

        A call that fits beside what is under way only once that has ended is neither admitted nor refused.
        """
        async with self._changed:
            begun, given = len(self._held), Admission()
            try:
                for call in calls:
                    wanted = await self._estimates(model_name, tariff, call.purpose, prompt_tokens(call.prompt))
                    try:
                        if await self._fits(wanted, waits=True):
                            given.held[call.id] = {name: estimate.most for name, estimate in wanted.items()}
                            self._held.append(wanted)
                    except OutOfBudget as error:
                        given.refused[call.id] = error
                yield given
            finally:
                del self._held[begun:]

    async def batches_changed(self) -> None:
        """Let the calls that wait for room look again."""
        async with self._changed:
            self._changed.notify_all()

    async def _estimates(
        self, model_name: str, tariff: Tariff, purpose: CallKind, input_tokens: int
    ) -> dict[str, Estimate]:
        seen = await run_whole(self._journal.output_tokens, model_name, purpose)
        cap = tariff.max_output_tokens or UNSEEN_OUTPUT_TOKENS
        most = min(cap, LONGER * int(seen["most"])) if seen["most"] else cap
        usages = [Usage(input_tokens=input_tokens, output_tokens=output) for output in (int(seen["usual"]), most)]
        usd = [tariff.usd(usage) or 0.0 for usage in usages]
        return {
            "tokens": Estimate(usual=usages[0].tokens, most=usages[1].tokens),
            "usd": Estimate(usual=usd[0], most=usd[1]),
        }

    async def _fits(self, wanted: Mapping[str, Estimate], *, waits: bool = False) -> bool:
        """Say whether a call may be sent now; one that `waits` may be sent by a later session.

        Raises:
            OutOfBudget: it does not fit, whatever the calls under way use, or beside batches that nobody is looking for.
        """
        batched = await run_whole(self._batched.held)
        totals = await run_whole(self._journal.totals)
        spent = {"usd": totals.usd, "tokens": totals.tokens}
        fits = True
        for name, estimate in wanted.items():
            limit = getattr(self._budget, name)
            if limit is None:
                continue
            if spent[name] >= limit or spent[name] + estimate.usual > limit:
                raise self.end(_refusal(name, estimate.usual, spent[name], limit))
            held = sum(each[name].most for each in self._held) + batched[name]
            fits = fits and spent[name] + held + estimate.most <= limit
            if not (fits or self._held or waits or self._awaits_batches()) and batched["calls"]:
                raise self.end(f"{_refusal(name, estimate.usual, spent[name], limit)}, and batches hold the rest")
        return fits or not (self._held or batched["calls"])


def _refusal(name: str, needed: float, spent: float, limit: float) -> str:
    used = used_words(name, spent, limit)
    return used if spent >= limit else f"the next model call needs about {in_words(name, needed)}, and {used}"


def used_words(name: str, amount: float, limit: float) -> str:
    """Return how much of a budget's limit is used, in words that name the limit as every caller's budget does."""
    used, most = in_words(name, amount), in_words(name, limit)
    return (
        f"all {most} of the budget's {name} are used ({used} so far)"
        if amount > limit
        else f"{used} of the {most} of the budget's {name} are used"
    )


def in_words(name: str, amount: float) -> str:
    """Return an amount of a budget's `usd`, `tokens`, `wall_s` or `gpu_s` in words."""
    return _AMOUNTS[name](amount)


def _seconds(amount: float) -> str:
    return f"{amount:,.0f} s" if amount >= 10 else f"{amount:.3g} s"


_AMOUNTS: Mapping[str, Callable[[float], str]] = {
    "usd": lambda amount: f"${amount:,.2f}" if amount >= 0.01 else f"${amount:.3g}",
    "tokens": lambda amount: counted(round(amount), "token"),
    "wall_s": _seconds,
    "gpu_s": _seconds,
}
