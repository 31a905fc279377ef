"""The reference's own code: loaded, run, and its exceptions told in one line."""

from __future__ import annotations

import contextlib
import dis
import linecache
import os
import re
import sys
import traceback
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import torch

from ridgeline.tools.errors import REFERENCE, BadReferenceError, ContentsRefusedError, NoRoomError, ProblemError
from ridgeline.tools.judge.memory_check import no_room
from ridgeline.tools.machine.kills import tells_of_kill
from ridgeline.tools.records.vocabulary import DeviceKind

T = TypeVar("T")

_MODULE = "ridgeline_reference"
FILE = REFERENCE
_LONGEST_MESSAGE = 300
_INDUCTORS_COMMAND = re.compile(r"Command: .*? Output: ")
"""How inductor's error begins where its compiler fails: of the compiler's own words nothing would be left behind it."""
_TORCHS_FRAMES = re.compile(r"\s*Exception raised from [^\n]+ \(most recent call first\):.*?(?=\"?$)", re.DOTALL)
"""The place in torch's own C++ and the frames that led there, behind the message of an error of its binding."""
_ARGUMENTS_OF = {"Model()": "get_init_inputs()", "forward()": "get_inputs()"}
_NO_GRADIENT = "does not require grad and does not have a grad_fn"  # torch's own words
_NO_GPU = re.compile(
    "not compiled with CUDA|not linked with support for cuda|Found no NVIDIA driver|No CUDA GPUs are available"
)  # torch's own words
_TORCHS_CUDA = f"{Path(torch.cuda.__file__).parent}{os.sep}"
_LACKS_A_GPU = re.compile(
    r"\bcuda|cudnn|nvidia|\bGPUs?\b|\btriton\b|\b0 active drivers|dummy base class|could not run '|"
    r"not implemented for '(?:half|bfloat16|float8|float4|complexhalf)|_cpu\"? not implemented for|no viable backend|"
    r"no available kernel",
    re.IGNORECASE,
)
"""Words of torch, and of Triton, for what has no kernel for the processor, or of a build without CUDA or a machine without.

Of the types that a kernel may lack they are those that processors are often without, or that a kernel lacks which is named
after the processor: no device has a softmax of int64.
"""
_RAISING = "RAISE_VARARGS"
"""The instruction of a `raise` and of an `assert`."""


def load_reference(source: str) -> types.ModuleType:
    """Run the source and return its module."""
    module = types.ModuleType(_MODULE)
    sys.modules[_MODULE] = module  # dataclasses and torch.compile look it up
    linecache.cache[FILE] = (len(source), None, source.splitlines(keepends=True), FILE)
    process = os.getpid()
    exec(compile(source, FILE, "exec"), module.__dict__)  # noqa: S102  the user's own code
    if os.getpid() != process:
        os._exit(0)  # the source forked: only one process may answer
    return module


def attribute(module: types.ModuleType, name: str) -> Callable[..., Any]:
    """Return one of the functions or classes that a reference defines.

    Raises:
        BadReferenceError: the reference does not define it.
    """
    found = getattr(module, name, None)
    if callable(found):
        return found  # type: ignore[no-any-return]
    if name == "get_init_inputs":
        return list
    raise BadReferenceError.of_text(f"{name} is missing: the reference defines Model, get_inputs and get_init_inputs")


def run_own(what: str, call: Callable[[], T]) -> T:
    """Return the result of a part of the reference.

    Raises:
        BadReferenceError: the part raised; one line says what.
    """
    try:
        with torch.no_grad():
            return call()
    except ProblemError:
        raise
    except BaseException as error:  # the user's code may raise anything, SystemExit too; it comes back in one line
        place = place_in_reference(error)
        line = f"{what} raised {named_line(error)}{place}"
        remedy = _remedy(error, what, place)
        raise (BadReferenceError.of_text(line + remedy) if remedy else as_problem(error, line)) from error


def as_problem(error: BaseException, said: str) -> BadReferenceError:
    """Return the error that ends a search; with the remedy when memory ran out."""
    kind = _full_device(error)
    if kind is not None:
        return NoRoomError.of_text(f"{said}; {no_room(kind)}")
    return BadReferenceError.of_text(said, was_killed=tells_of_kill(said))


def _full_device(error: BaseException) -> DeviceKind | None:
    """Return the device whose memory ran out, None for every other failure."""
    if isinstance(error, torch.OutOfMemoryError):
        return DeviceKind.CUDA
    is_allocator = isinstance(error, RuntimeError) and "can't allocate memory" in str(error)  # torch's own, on a CPU
    return DeviceKind.CPU if is_allocator or isinstance(error, MemoryError) else None


def place_in_reference(error: BaseException) -> str:
    """Return " (line 7 in forward)", the reference's last line on the way to the error; "" when none was running."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == FILE]
    if not frames:
        return ""
    where = "" if frames[-1].name == "<module>" else f" in {frames[-1].name}"
    return f" (line {frames[-1].lineno}{where})"


def _remedy(error: BaseException, what: str, place: str) -> str:
    if isinstance(error, ImportError):
        return "; install it beside Ridgeline, or copy it in here: a reference is one file, apart from its folder"
    if isinstance(error, NameError) and error.name == "__file__":
        return "; a reference is one file, apart from its folder"
    if isinstance(error, TypeError) and not place and what in _ARGUMENTS_OF:  # the call itself does not fit
        return f"; the list that {_ARGUMENTS_OF[what]} returns holds its arguments"
    if isinstance(error, RuntimeError) and _NO_GRADIENT in str(error):
        return "; forward() is called without gradients: write the derivative out"
    if _makes_on_a_gpu(error):
        return "; make model and inputs on the CPU: Ridgeline moves them to the device"
    return ""


def _makes_on_a_gpu(error: BaseException) -> bool:
    """Say whether this is torch's refusal to make or move a tensor to a GPU, where none was asked of `torch.cuda` itself."""
    if not (isinstance(error, AssertionError | RuntimeError) and _NO_GPU.search(str(error))):
        return False
    asked = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith(_TORCHS_CUDA)]
    return all(frame.name == "_lazy_init" for frame in asked)


def lacks_a_gpu(error: BaseException | None) -> bool:
    """Return whether a GPU, or a kernel for the processor, may be all that was missing where this was raised.

    It never is for what the reference raises by itself, nor for a tensor that it moves to a GPU, which Ridgeline does.
    """
    if not isinstance(error, RuntimeError | AssertionError | ValueError):  # a name or a package is missing anywhere
        return False
    return bool(_LACKS_A_GPU.search(named_line(error))) and not (
        _is_raised_by_reference(error) or _makes_on_a_gpu(error)
    )


def _is_raised_by_reference(error: BaseException) -> bool:
    """Say whether a `raise` or an `assert` in the reference's own text raised this, and nothing that it calls."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is None or (code := last.tb_frame.f_code).co_filename != FILE:
        return False
    return dis.opname[code.co_code[last.tb_lasti]] == _RAISING


def named_line(error: BaseException) -> str:
    """Return an exception's type and the first lines of its message as one short line."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001  a class of the user's own, whose __str__ may do anything
        text = "(its message cannot be shown)"
    text = _TORCHS_FRAMES.sub("", text)
    words = _INDUCTORS_COMMAND.sub("", " ".join(text.encode(errors="backslashreplace").decode().split()))
    printable = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in words[:_LONGEST_MESSAGE])
    return f"{type(error).__name__}: {printable}" if printable else type(error).__name__


_REFUSALS: tuple[type[Exception], ...] = (
    torch.linalg.LinAlgError,  # type: ignore[attr-defined]  # public, and missing from its stub
    ValueError,
    IndexError,
    ArithmeticError,
    AssertionError,
)
"""Raised by a reference for values that it does not take."""


def is_refusal(error: BaseException) -> bool:
    """Return whether a reference raised this for values that it does not take."""
    return isinstance(error, _REFUSALS)


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether memory ran out, which says nothing of the contents."""
    return isinstance(error, NoRoomError) or _full_device(error) is not None


@contextlib.contextmanager
def contents_may_be_refused(are_to_blame: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Tell values that a reference does not take from its other errors.

    `are_to_blame` says of an error that may be anything whether the contents cause it: torch has RuntimeError for most.

    Raises:
        ContentsRefusedError: it refused them; one line says with what.
    """
    try:
        yield
    except Exception as error:
        cause = error.__cause__ or error
        if is_out_of_memory(error) or not (is_refusal(cause) or are_to_blame()):
            raise
        raise ContentsRefusedError.of_text(
            f"forward() refuses contents that were made from get_inputs() for timing: {named_line(cause)}"
        ) from error
