"""A copy of a model, whose parameters and attributes are its own; what nothing can copy is shared with the model."""

from __future__ import annotations

import copy
from typing import Any

import torch

from ridgeline.tools.errors import BadReferenceError
from ridgeline.tools.judge.worker.user_code import named_line

_STATE = ("_parameters", "_buffers", "_modules")


def copied(model: torch.nn.Module) -> torch.nn.Module:
    """Return a copy of a model. A module of functions, a lock, an open file are the model's own in it.

    Raises:
        BadReferenceError: it cannot be copied even so.
    """
    try:
        return copy.deepcopy(model)
    except Exception:  # noqa: BLE001  whatever an attribute of the user's raises when it is copied
        shared = _uncopied(model)
    try:
        return copy.deepcopy(model, {id(value): value for value in shared.values()})
    except Exception as error:
        named = f": {', '.join(shared)}" if shared else ""
        raise BadReferenceError.of_text(
            f"the model cannot be copied, so it cannot run in float64 ({named_line(error)}){named}"
        ) from error


def _uncopied(model: torch.nn.Module) -> dict[str, Any]:
    """Return the attributes of modules that cannot be copied, by their names in the model."""
    found: dict[str, Any] = {}
    for path, module in model.named_modules():
        for name, value in vars(module).items():
            if name not in _STATE and not isinstance(value, torch.nn.Module) and not _can_be_copied(value):
                found[f"{path}.{name}" if path else name] = value
    return found


def _can_be_copied(value: Any) -> bool:
    try:
        copy.deepcopy(value)
    except Exception:  # noqa: BLE001
        return False
    return True
