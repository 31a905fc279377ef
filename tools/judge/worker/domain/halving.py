"""Parts of what a reference refuses together, by halves: those that it takes beside each other, and the others."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

from ridgeline.tools.judge.worker.domain.objections import Objection

UNTRIED = "refused together with others, and not looked at alone for want of time"

K = TypeVar("K", bound=Hashable)


def settle_by_halves(
    asked: Sequence[K],
    *,
    note: Callable[[frozenset[K]], None],
    objection_to: Callable[[Sequence[K], frozenset[K]], str],
    is_over: Callable[[], bool] = lambda: False,
) -> dict[K, str]:
    """Note as many of `asked` as the reference takes beside each other; return the others, each with the reason.

    Args:
        asked: what is tried, all at once first.
        note: makes trials with these from now on, and with no others.
        objection_to: why the reference refuses these beside those taken, which are all noted; "" where it does not.
        is_over: no half is tried any more.
    """

    def noted(part: Sequence[K], taken: frozenset[K]) -> str:
        note(taken.union(part))
        return objection_to(part, taken) if part else ""

    objection = noted(asked, frozenset())
    if not objection:
        return {}
    taken, refused = take_by_halves(asked, objection, frozenset(), objection_to=noted, is_over=is_over)
    note(taken)
    return refused


def settle_inputs(
    trial: str,
    asked: Sequence[int],
    names: Sequence[str],
    *,
    note: Callable[[frozenset[int]], None],
    objection: Objection,
) -> dict[str, str]:
    """Note as many inputs of `asked` as a trial may change beside each other; return the others, by the trial and NAME."""

    def objection_to(part: Sequence[int], taken: frozenset[int]) -> str:
        named = ", ".join(names[i] for i in part)
        return objection(trial, f"{trial} {named}, beside {len(taken)}")

    refused = settle_by_halves(asked, note=note, objection_to=objection_to)
    return {f"{trial} {names[i]}": why for i, why in refused.items()}


def take_by_halves(
    asked: Sequence[K],
    objection: str,
    taken: frozenset[K],
    *,
    objection_to: Callable[[Sequence[K], frozenset[K]], str],
    is_over: Callable[[], bool],
) -> tuple[frozenset[K], dict[K, str]]:
    """Return `taken` and those of `asked` that the reference takes beside them; then the others, each with the reason.

    Args:
        asked: at least one, which it refuses together.
        objection: why it does.
        taken: what it takes already.
        objection_to: why it refuses these beside those taken, "" where it does not.
        is_over: no half is tried any more.
    """
    if len(asked) == 1 or is_over():
        return taken, dict.fromkeys(asked, objection if len(asked) == 1 else UNTRIED)
    refused: dict[K, str] = {}
    middle = len(asked) // 2
    for half in (asked[:middle], asked[middle:]):
        refusal = objection_to(half, taken)
        if refusal:
            taken, rest = take_by_halves(half, refusal, taken, objection_to=objection_to, is_over=is_over)
            refused |= rest
        else:
            taken = taken.union(half)
    return taken, refused
