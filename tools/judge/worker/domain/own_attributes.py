"""Plain attributes of a reference's modules, such as a counter, as the cause of results that differ."""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch

_OF_TORCH = frozenset(vars(torch.nn.Module()))
_HOLDERS = (list, dict, set)


class OwnAttributes:
    """The plain attributes of a model and its parts as they were; what lies in other objects is not kept."""

    def __init__(self, model: torch.nn.Module) -> None:
        self._parts = [(path, part, _plain(part)) for path, part in model.named_modules()]

    def cause(self, agrees: Callable[[], bool]) -> str:
        """Return the attribute by whose change alone two calls differ, "" where they do without; all are put back.

        `agrees` calls the model once more, and says whether it gives again what it gave when they were so.
        """
        changed = [name for name in map(_first_changed, self._parts) if name]
        for _, part, held in self._parts:
            for name in _plain(part).keys() - held.keys():
                del vars(part)[name]
            vars(part).update(held)
        return changed[0] if changed and agrees() else ""


def _plain(part: torch.nn.Module) -> dict[str, object]:
    return {
        name: copy.copy(value) if isinstance(value, _HOLDERS) else value
        for name, value in vars(part).items()
        if name not in _OF_TORCH
    }


def _first_changed(held: tuple[str, torch.nn.Module, dict[str, object]]) -> str:
    path, part, before = held
    now = _plain(part)
    name = next((n for n in {**before, **now} if n not in before or n not in now or _differs(before[n], now[n])), "")
    return f"{path}.{name}" if path and name else name


def _differs(before: object, now: object) -> bool:
    """Compare by what is printed: tensors have no single truth."""
    return before is not now and repr(before) != repr(now)
