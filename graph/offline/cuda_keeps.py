"""What each sweep leaves on the chip for later sweeps over the same row, so that device memory is read once."""

from __future__ import annotations

from dataclasses import dataclass

from ridgeline.graph.offline.ir import Space, Value
from ridgeline.graph.offline.schedule import Plan, Sweep, evaluated


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeps:
    """For each sweep, by value id, the slots it reads instead of computing and those it writes."""

    reads: tuple[dict[int, int], ...]
    writes: tuple[dict[int, int], ...]
    slots: int


def nothing(plan: Plan) -> Keeps:
    """Return the plan of a kernel that reads its inputs again in every sweep."""
    empty: tuple[dict[int, int], ...] = tuple({} for _ in plan.sweeps)
    return Keeps(reads=empty, writes=empty, slots=0)


def keep_row(plan: Plan) -> Keeps:
    """Return what to keep so that no input of the full grid is read twice: the plan that takes fewer slots.

    Either the largest expressions that an earlier sweep computed, or the inputs themselves.
    """
    candidates = (_assigned(plan, loads_only=False), _assigned(plan, loads_only=True))
    return min(candidates, key=lambda keeps: keeps.slots)


def _assigned(plan: Plan, *, loads_only: bool) -> Keeps:
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
    """Return the values of the full grid that the sweep needs and an earlier one had, the largest first met."""
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
    """Return a slot for each value; one may take the slot of a value that is read last where it is written."""
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
