"""An archive may be a stranger's: what of it reaches a compiler, a program's text or a path is checked here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ridgeline.checkpoints.winner import Winner
from ridgeline.problems import names
from ridgeline.problems.spec import load_problem, shipped_problems
from ridgeline.tools.build.flags import base_flags, link_flags, refused_flags
from ridgeline.tools.errors import ProblemError, RunError
from ridgeline.tools.records.dtypes import element_bytes
from ridgeline.tools.records.problem import ArgSpec, Device
from ridgeline.tools.records.vocabulary import ArgKind, DeviceKind

_SCALARS = ("float64", "int64", "bool")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_GPU_ARCHITECTURE = re.compile(r"sm_[0-9]{2,3}[af]?")
_OF_TORCH = re.compile(
    r"-std=c\+\+[0-9]{2}|-D[A-Za-z_][A-Za-z0-9_]*(=[A-Za-z0-9_]+)?|--expt-relaxed-constexpr|-cudart=shared"
)
"""What a build for torch adds: macros, and what torch's own builder passes. None names a file or a program."""


def expect_known_words(winner: Winner) -> None:
    """Raise RunError for a name, a type or a language of an archive that no search writes."""
    wrong = next(_wrong_words(winner), None)
    if wrong is not None:
        raise RunError(f"{winner.run}: its archive was not written by a search: {wrong}")


def _wrong_words(winner: Winner) -> Iterator[str]:
    device, candidate = winner.device, winner.best.candidate
    if not re.fullmatch(names.PATTERN, winner.problem) or winner.problem.endswith("\n"):
        yield f"{winner.problem[:80]!r} is no problem's name"
    if device.kind is DeviceKind.CUDA and not _GPU_ARCHITECTURE.fullmatch(device.arch):
        yield f"{device.arch[:80]!r} is no GPU's architecture"
    if candidate.language != winner.interface.language(device.kind):
        yield f"{candidate.language[:80]!r} is no language of interface {winner.interface}"
    for arg in winner.description.signature.args:
        yield from _wrong_in(arg)


def _wrong_in(arg: ArgSpec) -> Iterator[str]:
    if not _IDENTIFIER.fullmatch(arg.name):
        yield f"{arg.name[:80]!r} is no argument's name"
    if arg.kind is not ArgKind.NONE and not _is_type(arg):
        yield f"{arg.dtype[:80]!r} is no type of {arg.name}"


def _is_type(arg: ArgSpec) -> bool:
    if arg.kind is ArgKind.SCALAR:
        return arg.dtype in _SCALARS
    try:
        return element_bytes(arg.dtype) > 0
    except KeyError:
        return False


def expect_known_flags(winner: Winner, flags: Sequence[str]) -> None:
    """Raise RunError for a flag that no build for this device has: -wrapper and -fplugin run a program of their choice."""
    known = _own_flags(winner.device)
    others = tuple(flag for flag in flags if flag not in known and not _OF_TORCH.fullmatch(flag))
    if wrong := refused_flags(others, winner.device.kind):
        raise RunError(f"{winner.run}: its archive names a flag that no build here has: {wrong[0][:80]!r}")


def _own_flags(device: Device) -> set[str]:
    return {*base_flags(device), *link_flags(device.kind)}


def has_foreign_reference(winner: Winner) -> bool:
    """Say whether the reference is neither one that ships nor the one of the problem that the search began with."""
    kind = winner.device.kind.value
    paths = [*shipped_problems().values(), *_own_problem(winner.record.problem_file)]
    return not any(_reference(path, kind) == winner.reference for path in paths)


def _own_problem(place: Path | None) -> list[Path]:
    """Return the problem's file where it still lies on this machine."""
    return [place] if place is not None and (place.is_file() or place.is_dir()) else []


def _reference(path: Path, kind: str) -> str | None:
    try:
        problem = load_problem(path)
        return problem.reference_source(kind) if kind in problem.targets else None
    except (ProblemError, OSError):
        return None
