"""The sweeps over a row: a reduction ends a sweep, structures merge sweeps or keep results between them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ridgeline.graph.offline.program.ir import REDUCTIONS, Output, RowProgram, Space, Value, collect

RECOMPUTE_LIMIT = 2
"""Up to this cost, computing a value again is cheaper than a trip through a buffer."""
COSTLY = {
    **dict.fromkeys(("exp", "exp2", "log", "log2", "sigmoid", "silu", "sin", "cos"), 8),
    **dict.fromkeys(("erf", "gelu", "tanh", "expm1", "log1p", "pow"), 16),
    "div": 4,
    "sqrt": 4,
    "rsqrt": 4,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduction:
    """One accumulation of a sweep."""

    kind: str  # "sum", "max", "min", "prod"; "moments": m2 and the sum; "online": a maximum and a sum of exponentials
    target: Value
    expression: Value  # the accumulated value; of "moments" and "online" the common operand
    companion: Value | None = None  # a second result: of "moments" the sum, if needed; of "online" the maximum
    shift: Value | None = None  # of "online" the value subtracted inside the exponential


@dataclass(slots=True)
class Sweep:
    """One pass over the columns of a row."""

    reductions: list[Reduction] = field(default_factory=list)
    stores: list[Output] = field(default_factory=list)
    keeps: dict[int, int] = field(default_factory=dict)  # value id -> buffer written here
    reuses: dict[int, int] = field(default_factory=dict)  # value id -> buffer read here

    def roots(self) -> list[Value]:
        """Return the values to accumulate or store at each column."""
        return [r.expression for r in self.reductions] + [s.value for s in self.stores]


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPlan:
    """A row program as sweeps; a per-row value `v` is known from the start of sweep `level[v]` on."""

    program: RowProgram
    sweeps: tuple[Sweep, ...]
    level: dict[int, int]
    row_values: tuple[Value, ...]  # in order: reductions, and the values made of them once a row
    buffers: int

    def row_chain(self, value: Value) -> list[Value]:
        """Return the per-row values made from reductions of the value's own level, in order, up to `value`."""
        level = self.level[value.id]
        found: dict[int, Value] = {}
        stack = [value]
        while stack:
            current = stack.pop()
            is_inner = not current.is_leaf and current.op not in REDUCTIONS
            if is_inner and self.level[current.id] == level and current.id not in found:
                found[current.id] = current
                stack.extend(current.args)
        return [found[i] for i in sorted(found)]


def plan_sweeps(program: RowProgram, *, moments: bool = False, online: bool = False, keep: bool = False) -> SweepPlan:
    """Return the sweeps of a program.

    Args:
        program: the computation.
        moments: accumulate sum and sum of squares together instead of the mean first.
        online: accumulate a maximum and the sum of exponentials relative to it together.
        keep: store costly intermediate results in row buffers instead of recomputing them.
    """
    values = program.values()
    merged = _merged(values, moments=moments, online=online)
    level = _levels(values, merged)
    sweeps = [Sweep() for _ in range(_sweep_count(program, values, level))]
    absorbed = {r.companion.id for r in merged.values() if r.companion is not None}
    for value in values:
        if value.op in REDUCTIONS and value.id not in absorbed:
            sweeps[level[value.id] - 1].reductions.append(merged.get(value.id) or _plain(program, value))
    for output in program.outputs:
        if output.value.space & Space.COL:
            sweeps[level[output.value.id]].stores.append(output)
    buffers = _assign_buffers(sweeps, level) if keep else 0
    rows = tuple(v for v in values if not v.space & Space.COL)
    return SweepPlan(program=program, sweeps=tuple(sweeps), level=level, row_values=rows, buffers=buffers)


def has_moments(program: RowProgram) -> bool:
    """Tell whether a variance is computed."""
    return any(v.op == "m2" for v in program.values())


def has_online_pair(program: RowProgram) -> bool:
    """Tell whether a sum of exponentials relative to a maximum is computed."""
    return bool(_online_pairs(program.values()))


def _plain(program: RowProgram, value: Value) -> Reduction:
    if value.op != "m2":
        return Reduction(kind=value.op, target=value, expression=value.args[0])
    builder = program.builder
    centred = builder.apply("square", builder.apply("sub", *value.args))
    return Reduction(kind="sum", target=value, expression=centred)


def _merged(values: list[Value], *, moments: bool, online: bool) -> dict[int, Reduction]:
    """Return merged reductions by the id of their target."""
    found: dict[int, Reduction] = {}
    if moments:
        sums = {v.args[0].id: v for v in values if v.op == "sum"}
        for value in values:
            if value.op == "m2":
                operand = value.args[0]
                found[value.id] = Reduction(
                    kind="moments", target=value, expression=operand, companion=sums.get(operand.id)
                )
    if online:
        found |= {r.target.id: r for r in _online_pairs(values)}
    return found


def _online_pairs(values: list[Value]) -> list[Reduction]:
    """Return each sum of exp(x - h) whose h depends on no more than the maximum of x, once for each maximum."""
    maxima = {v.args[0].id: v for v in values if v.op == "max"}
    pairs: dict[int, Reduction] = {}
    for value in values:
        if value.op != "sum" or value.args[0].op != "exp" or value.args[0].args[0].op != "sub":
            continue
        operand, shift = value.args[0].args[0].args
        largest = maxima.get(operand.id)
        if largest is None or shift.space & Space.COL or not _depends_only_on(shift, largest):
            continue
        pairs.setdefault(
            largest.id,
            Reduction(kind="online", target=value, expression=operand, companion=largest, shift=shift),
        )
    return list(pairs.values())


def _depends_only_on(value: Value, reduction: Value) -> bool:
    needed: dict[int, Value] = {}
    collect(value, needed)
    below: dict[int, Value] = {}
    collect(reduction, below)
    return all(v.op not in REDUCTIONS or v.id in below for v in needed.values())


def _levels(values: list[Value], merged: dict[int, Reduction]) -> dict[int, int]:
    level: dict[int, int] = {}
    for value in values:
        below = [level[a.id] for a in value.args]
        if value.id in merged:
            level[value.id] = max(level[merged[value.id].expression.id] + 1, 1)
        else:
            level[value.id] = max(below, default=0) + (1 if value.op in REDUCTIONS else 0)
    return level


def _sweep_count(program: RowProgram, values: list[Value], level: dict[int, int]) -> int:
    last_reduction = max((level[v.id] for v in values if v.op in REDUCTIONS), default=0)
    last_store = max((level[o.value.id] + 1 for o in program.outputs if o.value.space & Space.COL), default=0)
    return max(last_reduction, last_store)


# ------------------------------------------------------------------------------------------------------- buffers


def evaluated(roots: Iterable[Value], known: Iterable[int] = ()) -> list[Value]:
    """Return the values to evaluate at each column, in order: those below `roots` that vary with the column."""
    stop = set(known)
    found: dict[int, Value] = {}
    stack = list(roots)
    while stack:
        value = stack.pop()
        if value.id in found or not value.space & Space.COL:
            continue
        found[value.id] = value
        if value.id not in stop:
            stack.extend(value.args)
    return [found[i] for i in sorted(found)]


def _assign_buffers(sweeps: list[Sweep], level: dict[int, int]) -> int:
    count = 0
    for index, sweep in enumerate(sweeps[1:], start=1):
        for value in _reusable(sweep.roots(), sweeps[:index]):
            owner = next(s for s in sweeps[:index] if value.id in _ids(s))
            if value.id not in owner.keeps:
                owner.keeps[value.id] = count
                count += 1
            sweep.reuses[value.id] = owner.keeps[value.id]
    return count


def _ids(sweep: Sweep) -> set[int]:
    return {v.id for v in evaluated(sweep.roots(), sweep.reuses)}


def _reusable(roots: list[Value], earlier: list[Sweep]) -> list[Value]:
    """Return the largest expressions that an earlier sweep computed and that cost more than a buffered read."""
    computed: set[int] = set()
    for sweep in earlier:
        computed |= _ids(sweep)
    kept = {i for s in earlier for i in s.keeps}
    chosen: dict[int, Value] = {}
    stack = list(roots)
    while stack:
        value = stack.pop()
        if value.is_leaf or not value.space & Space.COL:
            continue
        is_worth_it = value.space is Space.FULL and value.ctype == "float" and _cost(value, kept) > RECOMPUTE_LIMIT
        if value.id in computed and (is_worth_it or value.id in kept):
            chosen[value.id] = value
        else:
            stack.extend(value.args)
    return [chosen[i] for i in sorted(chosen)]


def _cost(value: Value, kept: set[int]) -> int:
    """Count operations below a value, and loads beyond the first."""
    total = -1
    for part in evaluated([value], kept):
        total += 1 if part.id in kept or part.is_leaf else COSTLY.get(part.op, 1)
    return total
