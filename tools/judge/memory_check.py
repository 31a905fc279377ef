"""The memory that judging a problem takes, against what a device has, before any of it is allocated."""

from __future__ import annotations

from ridgeline.tools.errors import BadReferenceError
from ridgeline.tools.judge.set_count import MIN_SETS
from ridgeline.tools.records.dtypes import spanned_bytes
from ridgeline.tools.records.problem import Signature
from ridgeline.tools.records.vocabulary import ArgKind, DeviceKind, Role

_OWNER = {DeviceKind.CPU: "this machine", DeviceKind.CUDA: "this GPU"}


def in_gb(size_bytes: float) -> str:
    """Return a size as every message about memory writes it: 812 MB, 21.5 GB, 2750 GB."""
    if size_bytes < 1e9:
        return f"{size_bytes / 1e6:.0f} MB"
    figure = f"{size_bytes / 1e9:.{1 if size_bytes < 1e11 else 0}f}"
    return f"{figure.removesuffix('.0')} GB"


def smaller_sizes(kind: DeviceKind, needed: str, memory_bytes: int) -> str:
    """Return one line with both figures and the remedy; `needed` says how much judging takes."""
    return (
        f"judging it takes {needed}, {_OWNER[kind]} has {in_gb(memory_bytes)}: choose smaller sizes "
        f"(targets.{kind.value}.sizes)"
    )


def no_room(kind: DeviceKind) -> str:
    """Return the remedy for a problem for which memory ran out."""
    return f"the problem does not fit {_OWNER[kind]} beside what judges it: choose smaller sizes (targets.{kind.value}.sizes)"


def least_bytes(signature: Signature) -> int:
    """Return a lower bound of what the judge holds at once: its fewest rotating sets, and one set in float64.

    The reference's own temporaries come on top, and more sets where there is room.
    """
    tensors = [arg for arg in signature.args if arg.kind is ArgKind.TENSOR]
    parameters = sum(arg.spanned_bytes for arg in tensors if arg.role not in (Role.INPUT, Role.OUTPUT))
    set_bytes = sum(arg.spanned_bytes for arg in tensors if arg.role in (Role.INPUT, Role.OUTPUT))
    doubled = sum(spanned_bytes(a.shape, a.strides, "float64") for a in tensors if "float" in a.dtype)
    return MIN_SETS * set_bytes + parameters + doubled


def lacking_room(signature: Signature, *, kind: DeviceKind, memory_bytes: int) -> str:
    """Return one line with both figures and the remedy where not even the least fits, "" where it does."""
    least = least_bytes(signature)
    if least <= memory_bytes:
        return ""
    needed = f"at least {in_gb(least)} ({MIN_SETS} sets of inputs and outputs, and one in float64)"
    return smaller_sizes(kind, needed, memory_bytes)


def check_room(signature: Signature, *, kind: DeviceKind, memory_bytes: int) -> None:
    """Refuse a problem that the device cannot hold.

    Raises:
        BadReferenceError: it lacks room; one line with both figures and the remedy.
    """
    if lacking := lacking_room(signature, kind=kind, memory_bytes=memory_bytes):
        raise BadReferenceError.of_text(f"{lacking}")
