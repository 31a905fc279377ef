"""Relaxations: iterations that take the smaller, or the larger, of what is known and what a step would give.

Shortest paths come to rest, and are the same by any order of the steps, while no cycle is negative. Beside one that is, each
further step lowers the distances: what a reference gives tells of its order of steps alone, and a kernel that takes them
in another order, in blocks or by sweeps, gives other numbers.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import torch

from ridgeline.tools.judge.worker.contract import tensors_in
from ridgeline.tools.judge.worker.dispatch_modes import Marked, TorchDispatchMode, noticed, operation_name
from ridgeline.tools.judge.worker.grading.cases.case import Case
from ridgeline.tools.judge.worker.grading.cases.case_book import CaseBook
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.records.trial_names import NOMINAL

NO_REST = "its smallest or largest numbers would not come to rest"
_EXPLODED = 2.0**10
"""Beyond this x a nominal trial's rms the output of a reference that chooses the smallest or largest grew at each step."""
_LEAST_STEPS = 4
"""Choices in a row, each of what the one before it gave, that are an iteration; the last two of them are at rest or not."""
_MOST_OPEN = 16
"""Results that a next step may go on from: of one sweep's choices among neighbours the first is asked for last."""
_STEPS = ("minimum", "maximum", "fmin", "fmax", "where")
_EXTREMES = ("minimum", "maximum", "fmin", "fmax", "amin", "amax", "min", "max", "aminmax")


def objection_to_relaxation(reference: Reference, book: CaseBook, case: Case) -> str:
    """Return why a case is refused whose choices no longer come to rest, or let its output explode; "" when it is not."""
    found = _watched(reference, book, case)
    if not found.chooses:
        return ""
    usual = book.case(NOMINAL[0])
    pairs = zip(case.expected, usual.expected, strict=True)
    if found.takes_extremes and any(now.rms > _EXPLODED * was.rms > 0 for now, was in pairs):
        return NO_REST
    rests = found.rests()
    if not rests or all(rests):
        return ""
    settled = _watched(reference, book, usual).rests()
    is_same = len(settled) == len(rests)
    return NO_REST if is_same and any(was and not now for was, now in zip(settled, rests, strict=True)) else ""


def _watched(reference: Reference, book: CaseBook, case: Case) -> _Steps:
    with book.scalars_of(case.name):
        return noticed(lambda: reference.run_double(case.inputs, case.parameters), _Steps())


class _Steps(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no types there
    """Notes which of a reference's choices of the smaller or larger number leave what the one before them gave."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch has no types there
        self.takes_extremes = False
        self._made_of_chosen = Marked()
        self._last: deque[tuple[str, torch.Tensor, list[torch.Tensor]]] = deque(maxlen=_MOST_OPEN)
        self._runs: list[list[torch.Tensor]] = []  # of steps: whether each left all numbers; read at the end alone

    @property
    def chooses(self) -> bool:
        """Return whether any choice was seen that may not come to rest."""
        return self.takes_extremes or any(len(run) >= _LEAST_STEPS for run in self._runs)

    def rests(self) -> tuple[bool, ...]:
        """Return of each iteration whether its last steps left all numbers."""
        return tuple(all(map(bool, run[-2:])) for run in self._runs if len(run) >= _LEAST_STEPS)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = operation_name(func)
        operands = tensors_in((args, kwargs or {}))
        self.takes_extremes = self.takes_extremes or (name in _EXTREMES and _is_floating(result))
        is_step = name in _STEPS and not func._schema.is_mutable and _is_floating(result)
        if is_step:
            self._note_step(name, operands, result)
        of_chosen = is_step or any(t in self._made_of_chosen for t in operands)
        for made in tensors_in(result):
            self._made_of_chosen.note(made, operands, is_marked=of_chosen)
        return result

    def _note_step(self, name: str, operands: list[torch.Tensor], result: torch.Tensor) -> None:
        """Note a step that goes on from one before it, by what was made of chosen numbers, or begin anew."""
        for open_run in self._last:
            before = next((t for t in operands if open_run[0] == name and _is_same(t, open_run[1])), None)
            others = [t for t in operands if before is not None and not _is_same(t, before) and t.is_floating_point()]
            if before is not None and any(t in self._made_of_chosen for t in others):
                self._last = deque((r for r in self._last if r is not open_run), maxlen=_MOST_OPEN)
                open_run[2].append((result == before).all())
                self._last.append((name, result, open_run[2]))
                return
        self._runs.append([])
        self._last.append((name, result, self._runs[-1]))


def _is_same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.data_ptr() == other.data_ptr() and one.shape == other.shape


def _is_floating(result: Any) -> bool:
    return any(t.is_floating_point() for t in tensors_in(result))
