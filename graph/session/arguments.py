"""The values that a caller hands in from Python, checked before anything is done with them."""

from __future__ import annotations

import errno
import functools
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field, InstanceOf, TypeAdapter

from ridgeline.problems.files import as_words
from ridgeline.problems.kernel_files import SUFFIXES
from ridgeline.problems.limits import MOST
from ridgeline.problems.model_calls import CallSettings
from ridgeline.problems.spec import Budget, ProblemSpec, SearchSettings
from ridgeline.tools.errors import InputError
from ridgeline.tools.records.printable import encodable


def _place(value: object) -> Path:
    """Return a path that the file system can look for; ValueError for another value.

    Raises:
        InputError: it is a link that leads to itself.
    """
    if not isinstance(value, str | Path):
        raise ValueError("no path")  # noqa: TRY004  # pydantic tells a ValueError
    try:
        os.stat(value)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise InputError(f"{value}: is a link that leads to itself; mend it") from None
        if error.errno == errno.ENAMETOOLONG:
            raise ValueError(error.strerror) from None
    return Path(value)


def _control(value: object) -> object:
    """Return what a search can be stopped by: LangGraph's RunControl, which is not imported to say so."""
    if value is not None and not callable(getattr(value, "request_drain", None)):
        raise ValueError("no control")
    return value


def _kernel(value: object) -> str | Path:
    """Return a source as it is, a path as `_place` does; a path may have been read with the end of its line.

    Raises:
        ValueError: it is no path.
        InputError: a text in one line names no file, and has not the form of a kernel's name; or a source fits in no file.
    """
    if not isinstance(value, str):
        return _place(value)
    line = value.strip()
    is_named = "\n" not in line and line.endswith(tuple(SUFFIXES))
    if "\n" in value and not is_named:
        if encodable(value) != value:
            raise InputError("kernels: a source holds half of a pair of unicode surrogates; give it whole characters")
        return value
    place = _place(line if is_named else value)
    if not is_named and not place.exists():
        raise InputError(
            f"kernels: {as_words(value)} is no file that exists; a text in one line is taken for a path, so give a source "
            "with its line breaks"
        )
    return place


def model_names(given: object) -> tuple[str, ...]:
    """Return the names of models that a caller gave, one or several; InputError for what is neither."""
    names = checked("models", given)
    return (names,) if isinstance(names, str) else tuple(names)


def whole_source(source: str) -> str:
    """Return a kernel's source, with a line break: without one `evaluate` takes a text for a path.

    Raises:
        InputError: it has one line, or none.
    """
    if "\n" not in source.strip():
        raise InputError("source: must be a whole kernel with its line breaks, got one line")
    return source


Place = Annotated[Path, BeforeValidator(_place)]
Kernel = Annotated[str | Path, BeforeValidator(_kernel)]

_KINDS: Mapping[str, tuple[Any, str]] = {
    "problem": (InstanceOf[ProblemSpec] | Place | None, "a problem.yaml, a shipped problem's name or a loaded problem"),
    "run_dir": (Place | None, "a path"),
    "config": (InstanceOf[Mapping[str, Any]] | None, "LangGraph's configuration, a mapping"),
    "stop": (Annotated[Any, BeforeValidator(_control)], "a langgraph.runtime.RunControl"),
    "run": (Place, "the folder, the name or the archive of a run"),
    "runs_dir": (Place, "a path"),
    "bank": (Place | None, "a path"),
    "archive": (Place | None, "a path"),
    "device": (str, "cpu, cuda or cuda:N"),
    "models": (str | Sequence[str], "a model's name, or several"),
    "settings": (
        InstanceOf[SearchSettings] | InstanceOf[Mapping[str, Any]] | None,
        "SearchSettings, or a mapping of single ones",
    ),
    "budget": (InstanceOf[Budget] | None, "a Budget"),
    "model_calls": (
        InstanceOf[CallSettings] | InstanceOf[Mapping[str, Any]] | None,
        "CallSettings, or a mapping of single ones",
    ),
    "rng_seed": (int, "a whole number"),
    "resume": (bool, "True or False"),
    "max_rounds": (Annotated[int, Field(ge=1, le=MOST)] | None, f"a whole number from 1 to {MOST:,}"),
    "park": (bool, "True or False"),
    "replay": (Place | None, "a path"),
    "replay_timings": (bool, "True or False"),
    "replay_else": (str, "a model's name"),
    "replay_strict": (bool, "True or False"),
    "allow_unsafe": (bool, "True or False"),
    "uncertified": (bool, "True or False"),
    "any_cpu": (bool, "True or False"),
    "kernels": (Kernel | Sequence[Kernel], "the path of a kernel, its source, or several"),
    **dict.fromkeys(("on_event", "on_evaluation", "on_wait", "on_step"), (Callable[..., Any] | None, "a function")),
}
"""The type and the words of each argument; no value is converted but a text to a path."""


def checked(name: str, value: object) -> Any:
    """Return the value of the argument `name`, a text that stands for a path as a Path.

    Raises:
        InputError: the value is of another kind; one line says of which it must be.
    """
    try:
        return _adapter(name).validate_python(value)
    except ValueError:  # pydantic's own is one
        raise InputError(f"{name}: must be {_KINDS[name][1]}, got {as_words(value)}") from None


@functools.cache
def _adapter(name: str) -> TypeAdapter[Any]:
    return TypeAdapter(_KINDS[name][0], config=ConfigDict(strict=True))
