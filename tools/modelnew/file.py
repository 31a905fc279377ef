"""A KernelBench file with `ModelNew`: run, and its module made; only in a confined process."""

from __future__ import annotations

import ast
import linecache
import sys
import types
from collections.abc import Sequence
from typing import Any

import torch

FILE = "candidate.py"
PUBLIC_SEED = 42
"""Seeds torch before a `ModelNew` is made: initial weights are no secret, and no result depends on them."""

_MODULE = "ridgeline_candidate"


class NoModel(Exception):
    """The file defines no usable `ModelNew`; the message says what it has to define."""


def load_file(source: str) -> types.ModuleType:
    """Run the source and return its module."""
    module = types.ModuleType(_MODULE)
    module.__file__ = FILE
    sys.modules[_MODULE] = module  # Triton, dataclasses and torch.jit look it up
    linecache.cache[FILE] = (len(source), None, source.splitlines(keepends=True), FILE)
    torch.manual_seed(PUBLIC_SEED)
    exec(compile(source, FILE, "exec"), module.__dict__)  # noqa: S102  confined
    return module


def make_model(module: types.ModuleType, init: str) -> torch.nn.Module:
    """Return a new `ModelNew` from the public seed; `init` is the list of its arguments as Python source.

    Raises:
        NoModel: the file has none, or its `ModelNew` gives no torch.nn.Module.
    """
    made_by = getattr(module, "ModelNew", None)
    if not callable(made_by):
        raise NoModel("the file defines no `ModelNew`: a torch.nn.Module with the reference's arguments and forward")
    torch.manual_seed(PUBLIC_SEED)
    model = made_by(*values(init))
    if not isinstance(model, torch.nn.Module):
        raise NoModel(f"ModelNew() gives a {type(model).__name__}, not a torch.nn.Module")
    return model.eval().requires_grad_(False)


def values(text: str) -> Any:
    """Return the value of a Python literal."""
    return ast.literal_eval(text)


def told(error: BaseException) -> str:
    """Return an exception in one line, with the last line of the file on its way."""
    frames: Sequence[int] = [line for name, line in _frames(error) if name == FILE]
    if isinstance(error, SyntaxError) and error.filename == FILE:
        frames = [error.lineno or 0]
    where = f"{FILE}:{frames[-1]}: " if frames else ""
    if isinstance(error, NoModel):
        return str(error)
    return f"{where}{type(error).__name__}: {' '.join(str(error).split())}"


def _frames(error: BaseException) -> list[tuple[str, int]]:
    found = []
    trace = error.__traceback__
    while trace is not None:
        found.append((trace.tb_frame.f_code.co_filename, trace.tb_lineno))
        trace = trace.tb_next
    return found
