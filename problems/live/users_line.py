"""The line of a live module's own code at which torch's export ended, in words."""

from __future__ import annotations

import os
import re
import sysconfig
import traceback
from collections.abc import Iterable
from pathlib import Path

import torch

_OTHERS = tuple(f"{folder}{os.sep}" for folder in (Path(torch.__file__).parent, Path(__file__).parent))
_PYTHONS = f"{sysconfig.get_path('stdlib')}{os.sep}"
_PACKAGES = re.compile("/(site|dist)-packages/")
"""Where packages are installed, which may lie below the standard library."""
_LONGEST_CODE = 100
_FRAME = re.compile(r'File "([^"\n]+)", line (\d+), in ([^\n]+)\n +([^\n]+)')


def place_of(error: BaseException) -> str:
    """Return " (FILE line 7 in forward: `if x.sum() > 0:`)", the last line of its user's own; "" where there is none."""
    frames = traceback.extract_tb(error.__traceback__)
    return _last_place((f.filename, str(f.lineno), f.name, f.line or "") for f in frames)


def place_in(stack_trace: object) -> str:
    """Return the same of the text that torch keeps with an operation of an exported program."""
    return _last_place(_FRAME.findall(stack_trace)) if isinstance(stack_trace, str) else ""


def _last_place(frames: Iterable[tuple[str, str, str, str]]) -> str:
    own = [frame for frame in frames if not _is_others(frame[0])]
    if not own:
        return ""
    file, line, function, code = own[-1]
    shown = code if len(code) <= _LONGEST_CODE else code[: _LONGEST_CODE - 1] + "…"
    return f" ({file} line {line} in {function}{f': `{shown}`' if shown else ''})"


def _is_others(file: str) -> bool:
    """Say whether a file is torch's, Ridgeline's or of the standard library."""
    is_pythons = file.startswith(_PYTHONS) and not _PACKAGES.search(file.removeprefix(_PYTHONS[:-1]))
    return is_pythons or file.startswith((*_OTHERS, "<frozen "))
