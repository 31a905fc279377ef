"""One side of an alternating measurement: how many calls its blocks have and how long they took.

A block is one loop: one request to the side, timed by the parent until the side is at rest again. Every call of a block
meets contents that are new since just before the block, and every call counts. Whatever a candidate computes ahead or
keeps is therefore computed while the clock runs, and is of no use to another block; block_plan.py keeps it from knowing
what to compute ahead. A candidate that misleads the warm-up makes blocks short, until a few of them have told how long its
calls are.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import ClassVar, Protocol

from ridgeline.tools.judge.messages import Idle, Renew
from ridgeline.tools.judge.process import JudgeProcess
from ridgeline.tools.machine.gpu_state import GpuState
from ridgeline.tools.machine.process_use import page_faults, process_clock_s, thread_waited_s, waited_s
from ridgeline.tools.measure.block_plan import BlockKind, BlockPlan
from ridgeline.tools.measure.coverage import Coverage
from ridgeline.tools.measure.request_cost import LoopCost
from ridgeline.tools.measure.sides import CandidateSide, Side
from ridgeline.tools.measure.statistics import percentile
from ridgeline.tools.measure.trial_scalars import scalars_of
from ridgeline.tools.records.trial_names import trial_of_kind
from ridgeline.tools.runner.loop_time import LoopTime

BUSY_SHARE = 0.05
"""Part of the reference's blocks for which its threads wait for a core, above which the machine is called busy."""
WAKING_S = 5e-4
"""What the threads of a process that goes on after a stop wait for their cores in a block; it does not count."""
_FEW_CALLS = 3
_LATEST = 4
"""Blocks whose median says how long a call takes now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmUp:
    """Warm-up of a side before it is timed: at least 10 calls and 200 ms."""

    calls: int = 10
    seconds: float = 0.2
    limit_s: float = 3.0  # a very slow side stops here after three calls, and at thrice this after one


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Timing of one block."""

    calls: int
    took: LoopTime
    page_faults: int
    gpu: GpuState = field(default_factory=GpuState)  # right after the block; unknown on a CPU
    waited_s: float = 0.0  # by the side's threads, for a core
    parent_waited_s: float = 0.0  # by the parent's thread, which sends the request and takes the answer
    ran_s: float = 0.0  # the side's processor time

    @property
    def own_s(self) -> float:
        """Return the seconds per call by the side's own clock."""
        return self.took.own_s / self.calls

    @property
    def parent_s(self) -> float:
        """Return the seconds per call by the parent's clock, the request's own cost included."""
        return self.took.parent_s / self.calls


def are_held_up(blocks: Sequence[Block]) -> bool:
    """Say whether the side's threads waited for a core in more than BUSY_SHARE of these blocks' time, beside waking up."""
    held_up_s = sum(max(0.0, block.waited_s - WAKING_S) for block in blocks)
    return held_up_s > BUSY_SHARE * sum(block.took.parent_s for block in blocks)


class Collect(Protocol):
    """Brings a Python candidate's outputs into the judge's memory; a native host writes there itself. See late_outputs.py."""

    def __call__(self, chosen: Sequence[int], sets: Sequence[int]) -> None:
        """Copy the outputs of the chosen sets; the block's calls were on `sets`, in that order."""

    def complaint(self, call_s: float) -> str:
        """Return why the outputs were not made when their calls had returned, "" when they were."""


@dataclass(slots=True, kw_only=True)
class TimedSide:
    """One side and its blocks so far; unless it is a TimedCandidate it is the reference, which is trusted."""

    is_candidate: ClassVar[bool] = False
    side: Side
    judge: JudgeProcess  # renews the sets
    contender: int | None = None  # which one, where two candidates take turns
    cost: LoopCost = field(default_factory=LoopCost)  # of a block beside its calls
    is_apart: bool = (
        False  # the reference in a runner of its own, where requests cost time; else it is called in the judge
    )
    threads: int = 0  # after the warm-up
    usual_call_s: float = 0.0  # after the warm-up
    blocks: list[Block] = field(default_factory=list)
    singles: list[Block] = field(default_factory=list)  # blocks of one call, which do not count: see singles.py
    beside: list[Block] = field(default_factory=list)  # long blocks in turns with these, which do not count either
    slowdowns: list[float] = field(default_factory=list)  # before each block: see `renew`; 0 on a CPU
    waits_s: list[float] = field(default_factory=list)  # of the judge for a GPU, beside blocks that count; 0 on a CPU
    trial_sets: dict[int, str] = field(default_factory=dict)  # sets whose contents are a trial's since the last renewal
    parameter_kind: str = ""  # that of the parameters since then
    trial: str = ""  # whose contents a set and the parameters have since then, "" for none
    observe: Callable[[], GpuState] = GpuState  # a GPU's state now; unknown on a CPU

    def warm_up(self, warm_up: WarmUp) -> None:
        """Run the side until it is warm and has touched every set, and note how long a call takes."""
        n_sets = self.judge.problem.n_sets
        first = self.side.loop((0,))
        # a Python runner makes room for results before its own clock starts
        spent = last = min(first.parent_s, first.own_s)
        done, chunk = 1, 1
        while not self._is_warm(warm_up, done, spent, n_sets):
            chunk = max(1, min(n_sets, math.ceil(0.05 / max(last / chunk, 1e-7))))
            last = self.side.loop([each % n_sets for each in range(done, done + chunk)]).parent_s
            done += chunk
            spent += last
        self.usual_call_s = max(last / chunk, 1e-7)

    @property
    def call_now_s(self) -> float:
        """Return the seconds of a call by the latest blocks that count, where these were shorter than the warm-up's."""
        latest = [block.parent_s for block in self.blocks[-_LATEST:]]
        return min(self.usual_call_s, median(latest)) if latest else self.usual_call_s

    @staticmethod
    def _is_warm(warm_up: WarmUp, done: int, spent: float, n_sets: int) -> bool:
        if spent >= (warm_up.limit_s if done >= _FEW_CALLS else 3 * warm_up.limit_s):
            return True
        return done >= max(warm_up.calls, n_sets) and spent >= warm_up.seconds

    def renew(self, order: tuple[int, ...] = (), *, wanted: tuple[str, ...] = (), calls: int = 0) -> float:
        """Give every set new contents, poison every output, and return a GPU's slowdown meanwhile: see Judge.renew.

        All sets are renewed before every block: sets that kept their contents for a later block could be worked off in
        one slow block, which a median over blocks forgives. The reference needs no new contents, yet its blocks are
        preceded by a renewal too: writing a gigabyte leaves the caches full of lines that have yet to reach memory, and
        both sides shall meet the caches alike.
        """
        renewed = self.judge.ask(Renew(order=order, wanted=wanted, calls=calls))
        self.trial_sets = dict(zip(renewed.trial_sets, renewed.kinds, strict=True))
        self.parameter_kind = renewed.parameter_kind
        self.trial = next((trial for kind in renewed.kinds if (trial := trial_of_kind(kind))), "")
        return renewed.slowdown

    def prepare_block(self, plan: BlockPlan, *, wanted: tuple[str, ...] = ()) -> None:
        """Renew all contents; before a block of the reference, wait for the device too: nobody else may be at work.

        `wanted` are kinds of contents that the block's calls are to have; how long it takes to write them says nothing.
        """
        slowdown = self.renew(plan.order, wanted=wanted, calls=plan.calls)
        if not wanted:
            self.slowdowns.append(slowdown)
        if not self.is_candidate:
            self._wait_for_device(plan.kind)

    def _wait_for_device(self, kind: BlockKind) -> None:
        """Note how long the judge waits for the device, for a block that counts.

        Blocks of one call, in which work left behind gains nothing, would leave room in the median for others in which it
        does.
        """
        seconds = self.judge.ask(Idle()).seconds
        if kind is BlockKind.COUNTED:
            self.waits_s.append(seconds)

    def run_block(self, plan: BlockPlan) -> None:
        """Time one block; it begins with the coldest set, the one that the renewal wrote first.

        After a candidate's block the judge waits for the device at once: observing a GPU takes 1 ms, in which work that was
        left behind would end unseen.
        """
        before = self._used()
        took = self.side.loop(plan.sets)
        faults, waited, parent_waited, ran = (b - a for a, b in zip(before, self._used(), strict=True))
        if self.is_candidate:
            self._wait_for_device(plan.kind)
        block = Block(
            calls=plan.calls,
            took=took,
            page_faults=int(faults),
            gpu=self.observe(),
            waited_s=waited,
            parent_waited_s=parent_waited,
            ran_s=ran,
        )
        match plan.kind:
            case BlockKind.COUNTED:
                self.blocks.append(block)
            case BlockKind.SINGLE:
                self.singles.append(block)
            case BlockKind.BESIDE:
                self.beside.append(block)
            case BlockKind.EXTRA:  # its outputs were asked for, not its time: see coverage.py
                pass

    def _used(self) -> tuple[float, ...]:
        """Return what the stopped side and the parent have used so far: page faults, waits for a core, processor time."""
        pid = self.side.pid
        return page_faults(pid), waited_s(pid), thread_waited_s(), process_clock_s(pid)

    def latency_s(self) -> float:
        """Return the 90th percentile of a request's time beyond the side's own clock: waking up, waiting for a core."""
        return percentile([b.took.parent_s - b.took.own_s for b in self.blocks], 90)

    def has_waited(self) -> bool:
        """Say whether other programs took cores in the very blocks that count: this side's threads had to wait for one.

        The reference has no more threads than there are cores, so nobody else makes them wait.
        """
        return are_held_up(self.blocks)

    def per_call_s(self) -> list[float]:
        """Return every block's seconds per call.

        A runner's: max(parent's clock - request's cost, own clock) - a ticket's. The judge's: own clock - a ticket's. Errors
        favour the reference: a candidate has no say in the costs that are taken off, and its own clock can only make it
        slower.
        """
        request_s = self.usual_request_s()
        return [self.call_s(block, request_s) for block in self.blocks]

    def call_s(self, block: Block, request_s: float | None = None) -> float:
        """Return one block's seconds per call; `request_s` is `usual_request_s()`, where the caller has it."""
        if not self.is_candidate and not self.is_apart:
            return self._without_ticket(block.own_s)
        return self.waited_for_s(block, request_s)

    def waited_for_s(self, block: Block, request_s: float | None = None) -> float:
        """Return one block's seconds per call by the parent's clock, the judge's blocks too: a busy machine's waits count."""
        request_s = self.usual_request_s() if request_s is None else request_s
        return self._without_ticket(max(block.parent_s - request_s / block.calls, block.own_s))

    def _without_ticket(self, call_s: float) -> float:
        """Return a call's seconds without its ticket's, which are at most half of them: the cost is a measurement too."""
        return max(call_s - self.usual_ticket_s, call_s / 2)

    def usual_request_s(self) -> float:
        """Return the cost of a request: of this measurement's own blocks, where a trusted side's requests cost as much.

        Those blocks leave the caches as the candidate's do. A request for nothing finds its own code still there.
        """
        costs_s = self._request_costs_s()
        return median(costs_s) if costs_s else self.cost.request_s

    def least_request_s(self) -> float:
        """Return what a request costs at the least; of the same blocks as what it usually costs."""
        costs_s = self._request_costs_s()
        return min(costs_s) if costs_s else self.cost.least_s

    def _request_costs_s(self) -> list[float]:
        trusted = self._alike()
        return [b.took.parent_s - b.took.own_s for b in trusted.blocks] if trusted else []

    def _alike(self) -> TimedSide | None:
        """Return the trusted side whose requests and tickets cost as much as this side's, None where there is none."""
        return self if self.is_apart else None

    @property
    def usual_ticket_s(self) -> float:
        """Return the cost of a ticket: that of a trusted side which runs the same loop, where there is one."""
        return (self._alike() or self).cost.ticket_s


@dataclass(slots=True, kw_only=True)
class TimedCandidate(TimedSide):
    """A candidate and its blocks so far."""

    is_candidate: ClassVar[bool] = True
    side: CandidateSide
    collect: Collect | None = None
    costs_from: TimedSide | None = None  # the trusted side whose requests and tickets cost as much as the candidate's
    coverage: Coverage = field(default_factory=Coverage)  # of its outputs that were graded

    @contextlib.contextmanager
    def with_scalars_of_trial(self) -> Iterator[None]:
        """Let a stopped candidate have the scalars of the trial whose contents the block has meanwhile.

        Raises:
            RunnerFailure: it died, hung or broke the protocol.
        """
        with scalars_of(self.trial, self.judge.problem, self._give):
            yield

    def _give(self, scalars: Sequence[float]) -> None:
        self.side.cont()
        self.side.set_scalars(scalars)
        self.side.stop()

    def _alike(self) -> TimedSide | None:
        return self.costs_from
