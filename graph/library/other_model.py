"""A model of the caller's beside a run's reference: it has to compute the same, as its numbers and texts are in the kernel."""

from __future__ import annotations

import contextlib
import copy
import importlib.util
import sys
import tempfile
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree

from ridgeline.problems.live.program import in_eval_mode, named
from ridgeline.problems.live.results import is_close
from ridgeline.problems.live.unchanged import ChangesOwn, unchanged
from ridgeline.tools.errors import InputError, RunError


def refuse_other(problem: str, reference: str, model: torch.nn.Module, device: torch.device) -> None:
    """Compare a model, in eval mode, with the reference that is given its tensors, on one draw of inputs.

    Tensors of another shape, type or device are left to the kernel's calls, and so is a model that has no `forward`.

    Raises:
        InputError: the model gives something else, or fails on what the reference takes.
        RunError: the run's reference fails here.
    """
    if type(model).forward is torch.nn.Module.forward:
        return
    indices = [torch.cuda.current_device() if device.index is None else device.index] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=indices), torch.no_grad(), _module_of(reference) as written:
        try:
            certified, inputs = _made(written, device)
            tensors = _tensors(model)
            own = _tensors(certified)
            if any(name not in tensors or _form(tensors[name]) != _form(own[name]) for name in own):
                return
            given = {name: tensors[name] for name in own}
            wanted = _results(lambda *args: torch.func.functional_call(certified, given, args), inputs)
        except Exception as error:  # of the run's own reference, of any type
            raise RunError(f"{problem}: its reference fails here: {named(error)}") from error
        try:
            with in_eval_mode(model), unchanged(model):
                got = _results(model, inputs)
        except ChangesOwn as error:
            raise InputError(f"{problem}: model: {error}") from None
        except Exception as error:  # of the caller's own module, of any type
            raise InputError(f"{problem}: model fails on the reference's inputs: {named(error)}") from error
    if len(got) != len(wanted) or not all(map(is_close, got, wanted)):
        raise InputError(
            f"{problem}: model gives something else than the run's reference with the same parameters and buffers: "
            "numbers and texts in attributes are part of the kernel, so they must be the reference's"
        )


@contextlib.contextmanager
def _module_of(reference: str) -> Iterator[types.ModuleType]:
    """Give the reference's module, not run yet, from a file: what asks for its source, or for its module, finds it."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "reference.py"
        place.write_text(reference, encoding="utf-8")
        specification = importlib.util.spec_from_file_location(f"_ridgeline_{Path(folder).name}", place)
        assert specification is not None  # noqa: S101  # of a file's name that ends in .py
        written = importlib.util.module_from_spec(specification)
        sys.modules[written.__name__] = written
        try:
            yield written
        finally:
            del sys.modules[written.__name__]


def _made(written: Any, device: torch.device) -> tuple[torch.nn.Module, list[Any]]:
    """Return the reference's model and a draw of its inputs on a device."""
    written.__spec__.loader.exec_module(written)
    model = written.Model(*getattr(written, "get_init_inputs", list)())
    with device:
        drawn = written.get_inputs()
    inputs = [value.to(device) if isinstance(value, torch.Tensor) else value for value in drawn]
    return model.eval().requires_grad_(False).to(device), inputs


def _tensors(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return dict(model.named_parameters()) | dict(model.named_buffers())


def _form(tensor: torch.Tensor) -> tuple[Any, ...]:
    return tensor.shape, tensor.dtype, tensor.device


def _results(call: Callable[..., Any], inputs: list[Any]) -> list[torch.Tensor]:
    return [part for part in _pytree.tree_leaves(call(*copy.deepcopy(inputs))) if isinstance(part, torch.Tensor)]
