"""The kernels that a problem file names: each lies in the problem's folder and is a native or a Python source."""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Mapping
from pathlib import Path

from ridgeline.problems.files import as_name
from ridgeline.tools.errors import ProblemError

SOURCE_SUFFIX: Mapping[str, str] = {"cpu": ".cpp", "cuda": ".cu"}
"""Suffix of a native source, by target."""
MODULE_SUFFIX = ".py"
"""Suffix of a file of interface `module`, for every target."""
SUFFIXES: Collection[str] = (*SOURCE_SUFFIX.values(), MODULE_SUFFIX)


def matching_kernels(glob: str, problem: Path) -> list[Path]:
    """Return the seed kernels of one glob of a problem file, sorted.

    Raises:
        ProblemError: it matches nothing, leaves the folder, or names something that is no kernel source.
    """
    where = f"{problem}: seeds"
    folder = problem.parent.resolve()
    shown = as_name(glob)
    if Path(glob).is_absolute() or ".." in Path(glob).parts:
        raise ProblemError(f"{where}: `{shown}` leaves the problem's folder; copy the kernels into it")
    if not Path(glob).parts:
        raise ProblemError(f"{where}: `{shown}` is the problem's folder; name the kernels in it, as in `seeds/*.cpp`")
    try:
        paths = sorted(path for path in folder.glob(glob) if path.is_file())
    except RecursionError:
        raise ProblemError(f"{where}: `{shown}` names too many folders; shorten it") from None
    except ValueError as error:
        raise ProblemError(f"{where}: `{shown}` is no glob ({error}); mend it") from None
    except OSError as error:
        raise ProblemError(f"{where}: `{shown}` cannot be looked for ({error.strerror}); mend it") from None
    if not paths:
        raise ProblemError(f"{where}: `{shown}` matches no file in {problem.parent}; mend the glob or remove it")
    for path in paths:
        if not path.resolve().is_relative_to(folder):
            raise ProblemError(f"{where}: {path.name} is a link out of the problem's folder; copy the kernel into it")
        if path.suffix not in SUFFIXES:
            raise ProblemError(f"{where}: `{shown}` matches {path.name}; a seed is a .cpp, .cu or .py file")
    return paths


def named_kernel(name: str, problem: Path) -> Path:
    """Return the file of one of a problem's `references`.

    Raises:
        ProblemError: it leaves the folder, does not exist, or is no kernel source.
    """
    where = f"{problem}: references"
    folder = problem.parent.resolve()
    shown = as_name(name)
    if Path(name).is_absolute() or ".." in Path(name).parts:
        raise ProblemError(f"{where}: `{shown}` leaves the problem's folder; copy the kernel into it")
    path = problem.parent / name
    try:
        is_file = path.is_file()
    except (OSError, ValueError) as error:
        raise ProblemError(f"{where}: `{shown}` cannot be looked for ({error}); mend it") from None
    if not is_file:
        raise ProblemError(f"{where}: `{shown}` is no file in {problem.parent}; mend the path or remove it")
    if not path.resolve().is_relative_to(folder):
        raise ProblemError(f"{where}: `{shown}` is a link out of the problem's folder; copy the kernel into it")
    if path.suffix not in SUFFIXES:
        raise ProblemError(f"{where}: `{shown}` is no kernel; name a .cpp, .cu or .py file")
    return path


def refuse_source(path: Path) -> None:
    """Say what to do with a reference or a kernel in the place of a problem; what YAML says of it helps nobody."""
    if not os.path.exists(path):
        return
    if path.suffix == MODULE_SUFFIX:
        raise ProblemError(
            f"{path}: a Python file: ridgeline new NAME --from {shlex.quote(str(path))} makes a problem of it"
        )
    if path.suffix in SOURCE_SUFFIX.values():
        remedy = (
            "a kernel lies beside a problem.yaml that names it in `seeds`, or is given to ridgeline evaluate after it"
        )
        raise ProblemError(f"{path}: a kernel's source, not a problem: {remedy}")
