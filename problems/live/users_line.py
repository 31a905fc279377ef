"""The line of a live module's own code at which torch's export ended, in words."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterable
from pathlib import Path

import torch

_TORCHS = str(Path(torch.__file__).parent)
_OWN = str(Path(__file__).parent)
_LONGEST_CODE = 100
_FRAME = re.compile(r'File "([^"\n]+)", line (\d+), in ([^\n]+)\n +([^\n]+)')


def place_of(error: BaseException) -> str:
    """Return " (FILE line 7 in forward: `if x.sum() > 0:`)", the last line that is not torch's; "" where there is none."""
    frames = traceback.extract_tb(error.__traceback__)
    return _last_place((f.filename, str(f.lineno), f.name, f.line or "") for f in frames)


def place_in(stack_trace: object) -> str:
    """Return the same of the text that torch keeps with an operation of an exported program."""
    return _last_place(_FRAME.findall(stack_trace)) if isinstance(stack_trace, str) else ""


def _last_place(frames: Iterable[tuple[str, str, str, str]]) -> str:
    own = [frame for frame in frames if not frame[0].startswith((_TORCHS, _OWN))]
    if not own:
        return ""
    file, line, function, code = own[-1]
    shown = code if len(code) <= _LONGEST_CODE else code[: _LONGEST_CODE - 1] + "…"
    return f" ({file} line {line} in {function}{f': `{shown}`' if shown else ''})"
