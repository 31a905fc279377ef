"""Values that a sweep keeps on the chip for later sweeps over the same row, so that device memory is read once."""

from __future__ import annotations

from dataclasses import dataclass

from ridgeline.graph.offline.program.ir import Space, Value
from ridgeline.graph.offline.program.schedule import Sweep, SweepPlan, evaluated


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeps:
    """For each sweep, by value id, the slots to read instead of computing and the slots to write."""

    reads: tuple[dict[int, int], ...]
    writes: tuple[dict[int, int], ...]
    slots: int


def nothing(plan: SweepPlan) -> Keeps:
    """Return the plan of a kernel that reads its inputs again in every sweep."""
    empty: tuple[dict[int, int], ...] = tuple({} for _ in plan.sweeps)
    return Keeps(reads=empty, writes=empty, slots=0)


def keep_row(plan: SweepPlan) -> Keeps:
    """Return the values to keep so that no input of the full grid is read twice: the plan of fewer slots.

    Either the largest expressions that an earlier sweep computed, or the inputs themselves.
    """
    candidates = (_assigned(plan, loads_only=False), _assigned(plan, loads_only=True))
    return min(candidates, key=lambda keeps: keeps.slots)


def _assigned(plan: SweepPlan, *, loads_only: bool) -> Keeps:
    needed: list[set[int]] = []
    owner: dict[int, int] = {}
    for index, sweep in enumerate(plan.sweeps):
        reused = _reused(sweep, owner, loads_only=loads_only)
        needed.append({v.id for v in reused})
        for value in evaluated(sweep.roots(), needed[-1]):
            owner.setdefault(value.id, index)
    last = {i: sweep for sweep, ids in enumerate(needed) for i in ids}
    slot = _coloured([(owner[i], last[i], i) for i in last])
    reads = tuple({i: slot[i] for i in sorted(ids)} for ids in needed)
    writes = tuple({i: slot[i] for i in sorted(last) if owner[i] == s} for s in range(len(plan.sweeps)))
    return Keeps(reads=reads, writes=writes, slots=max(slot.values(), default=-1) + 1)


def _reused(sweep: Sweep, owner: dict[int, int], *, loads_only: bool) -> list[Value]:
    """Return the largest values of the full grid that the sweep needs and an earlier sweep computed."""
    found: dict[int, Value] = {}
    stack = list(sweep.roots())
    while stack:
        value = stack.pop()
        if not value.space & Space.COL or value.id in found:
            continue
        fits = value.space is Space.FULL and value.ctype == "float" and (value.load is not None or not loads_only)
        if fits and value.id in owner:
            found[value.id] = value
        else:
            stack.extend(value.args)
    return list(found.values())


def _coloured(lifetimes: list[tuple[int, int, int]]) -> dict[int, int]:
    """Return a slot for each value; a value written where another is read last may take the other's slot."""
    slot: dict[int, int] = {}
    until: list[int] = []
    for first, last, value in sorted(lifetimes):
        free = [s for s, end in enumerate(until) if end <= first]
        if free:
            slot[value], until[free[0]] = free[0], last
        else:
            slot[value] = len(until)
            until.append(last)
    return slot
