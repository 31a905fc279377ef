"""The line of a live module's own code at which torch's export ended, in words."""

from __future__ import annotations

import os
import re
import sysconfig
import traceback
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

import torch

_LIBRARIES = (torch.__file__, __file__, *(spec.origin for spec in [find_spec("numpy")] if spec and spec.origin))
_OTHERS = tuple(f"{Path(file).parent}{os.sep}" for file in _LIBRARIES)
_PYTHONS = f"{sysconfig.get_path('stdlib')}{os.sep}"
_PACKAGES = re.compile("/(site|dist)-packages/")
"""Where packages are installed, which may lie below the standard library."""
_LONGEST_CODE = 100
_FRAME = re.compile(r'File "([^"\n]+)", line (\d+), in ([^\n]+)(?:\n(?! *File ") +([^\n]+))?')


def place_of(error: BaseException) -> str:
    """Return " (FILE line 7 in forward: `if x.sum() > 0:`)", the last line of its user's own; "" where there is none.

    A package is taken for the user's own, as one of models may be; torch, numpy and what has no source are not.
    """
    frames = traceback.extract_tb(error.__traceback__)
    return _last_place((f.filename, str(f.lineno), f.name, f.line or "") for f in frames)


def place_in(stack_trace: object) -> str:
    """Return the same of the text that torch keeps with an operation of an exported program."""
    return _last_place(_FRAME.findall(stack_trace)) if isinstance(stack_trace, str) else ""


def _last_place(frames: Iterable[tuple[str, str, str, str]]) -> str:
    own = [frame for frame in frames if not (_is_others(frame[0]) or _is_made(frame))]
    if not own:
        return ""
    file, line, function, code = own[-1]
    shown = code if len(code) <= _LONGEST_CODE else code[: _LONGEST_CODE - 1] + "…"
    return f" ({file} line {line} in {function}{f': `{shown}`' if shown else ''})"


def _is_others(file: str) -> bool:
    """Say whether a file is torch's, numpy's, Ridgeline's or of the standard library."""
    is_pythons = file.startswith(_PYTHONS) and not _PACKAGES.search(file.removeprefix(_PYTHONS[:-1]))
    return is_pythons or file.startswith((*_OTHERS, "<frozen "))


def _is_made(frame: tuple[str, str, str, str]) -> bool:
    """Say whether a line is of a text that nobody has: a lambda that torch makes, a dataclass's `__init__`."""
    file, _, _, code = frame
    return file.startswith("<") and not code
