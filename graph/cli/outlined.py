"""The outline of what a problem asks of a kernel, told without running its reference for real: the signature, the composer."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ridgeline.graph.session.machine import users_reference
from ridgeline.graph.session.on_device import on_device
from ridgeline.tools.errors import BadReferenceError, DeviceError, UncoveredError
from ridgeline.tools.judge.outline import OPEN, Outline, OutlineCode
from ridgeline.tools.machine.devices import detect_device
from ridgeline.tools.records.printable import printable
from ridgeline.tools.records.problem import ArgSpec, DescribedTarget, Device
from ridgeline.tools.records.vocabulary import DeviceKind, Role

if TYPE_CHECKING:
    from ridgeline.problems.spec import ProblemSpec
    from ridgeline.tools.judge.outline_process import OutlineProcess

ARCH = "sm_80"
"""The oldest architecture with the asynchronous copies and the bf16 products that the composers use."""
_LEFT_TO_A_RUN = OPEN | {OutlineCode.TIME, OutlineCode.MEMORY}
"""Codes of a reference that may be judged all the same, on this machine or another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutlinedProblem:
    """A problem on one kind of device."""

    kind: DeviceKind
    unknown: str = ""  # why the rest is not known before a run
    target: DescribedTarget | None = None
    refusal: UncoveredError | None = None  # the offline model's
    room: str = ""  # what this machine's memory lacks, or may lack
    is_too_large: bool = False  # a run here is refused

    @property
    def is_covered(self) -> bool:
        """Say whether the offline model composes kernels for it."""
        return self.target is not None and self.refusal is None

    @property
    def header(self) -> str:
        """Return the text of problem.h; of interface `module` what its files are told."""
        from ridgeline.tools.build.interfaces import problem_header

        target = self.target
        return problem_header(target.description.signature, self.kind, target.interface) if target else ""

    def to_json(self) -> dict[str, Any]:
        """Return the object of `ridgeline problems PROBLEM --json`."""
        signature = self.target.description.signature.to_json() if self.target else {"args": None}
        return {
            "target": self.kind.value,
            "entry": self.entry if self.target else None,
            "args": signature["args"],
            "problem_h": self.header or None,
            "keyless": self.is_covered if self.target else None,
            "why_not": _why(self.refusal) if self.refusal else None,
            "memory": self.room or None,
            "unknown": self.unknown or None,
        }

    @property
    def entry(self) -> str:
        """Return in one line what a kernel has to define, or why that is not known."""
        from ridgeline.tools.build.interfaces import entry_declaration

        target = self.target
        return entry_declaration(target.description.signature, self.kind, target.interface) if target else self.unknown

    def lines(self) -> list[str]:
        """Return each argument of a kernel, and whether the offline model composes it, for a person."""
        if self.target is None:
            return []
        args = self.target.description.signature.args
        names, roles = (max(map(len, texts)) for texts in zip(*((a.name, a.role) for a in args), strict=True))
        told = [
            f"  {a.name:<{names}}  {a.role:<{roles}}  {a.dtype}{f' {list(a.shape)}' if a.shape else ''}{_in_result(a)}"
            for a in args
        ]
        keyless = "yes" if self.refusal is None else f"no, because {_why(self.refusal)}"
        return [*told, f"  keyless: {keyless}", *([f"  on this machine: {self.room}"] if self.room else [])]


def tells_of_wait(reference: object) -> Callable[[float], None]:
    """Return what says on standard error that a reference, named as its user does, is waited for, and how long at most."""

    def tell(left_s: float) -> None:
        at_latest = time.strftime("%H:%M:%S", time.localtime(time.time() + left_s))
        line = f"{reference}: waiting for its import and its first calls, until about {at_latest}"
        sys.stderr.write(f"ridgeline: {printable(line)}\n")
        sys.stderr.flush()

    return tell


def outline_problem(
    outlines: OutlineProcess, spec: ProblemSpec, target: str, *, with_run: bool = False
) -> OutlinedProblem:
    """Return a problem on the oldest device of a kind that is composed for; `outlines` is with graphs.

    With `with_run` a reference that reads values is run with the processor's sizes.

    Raises:
        ProblemError: the reference cannot be judged anywhere.
    """
    from ridgeline.graph.search.coverage import why_uncovered

    kind = DeviceKind(target)
    arch = ARCH if kind is DeviceKind.CUDA else "native"
    device = Device(kind=kind, name=kind.value, arch=arch, uuid="", cores=2, memory_bytes=1 << 33, cache_bytes=1 << 25)
    problem = on_device(spec, device)
    runs = with_run and kind is DeviceKind.CPU
    found = outlines.outline(problem.reference_source, problem.tolerance, with_run=runs)
    refuse_broken(found, spec, kind)
    if found.description is None:
        return OutlinedProblem(
            kind=kind, unknown=f"only a run can tell its signature: {lacks_a_gpu(found) or found.reason}"
        )
    described = problem.described(found.description)
    here = _on_this_machine(found, kind)
    is_too_large = here.code is OutlineCode.MEMORY
    return OutlinedProblem(
        kind=kind, target=described, refusal=why_uncovered(described), room=here.reason, is_too_large=is_too_large
    )


def _on_this_machine(found: Outline, kind: DeviceKind) -> Outline:
    """Return the outline with what this machine's memory lacks; as it is for a GPU, of which there may be several."""
    with contextlib.suppress(DeviceError):  # a machine that judges nothing tells of problems all the same
        return found.on(detect_device(kind)) if kind is DeviceKind.CPU else found
    return found


def refuse_too_large(outlined: Sequence[OutlinedProblem], spec: ProblemSpec) -> None:
    """Refuse a problem that this machine can judge on no device that it names, as a run would.

    Raises:
        BadReferenceError: with what judging takes, and the remedy.
    """
    if all(each.is_too_large for each in outlined):
        with users_reference(spec, outlined[0].kind):
            raise BadReferenceError.of_text(outlined[0].room)


def refuse_broken(found: Outline, spec: ProblemSpec, target: str) -> None:
    """Raise BadReferenceError for an outline that `why_broken` refuses; its reference and sizes are named as its user does.

    What only a GPU may run is refused of a problem that names none.
    """
    lacks = found.reason if found.code is OutlineCode.GPU and DeviceKind.CUDA not in spec.targets else ""
    if said := why_broken(found) or lacks:
        with users_reference(spec, target):
            raise BadReferenceError.of_text(said)


def why_broken(found: Outline) -> str:
    """Return why a reference can be judged nowhere, "" where it may be."""
    if not found.code or found.code in _LEFT_TO_A_RUN:
        return ""
    return found.reason.replace("FakeTensor", "Tensor")  # what stands for one in an outline


def lacks_a_gpu(found: Outline) -> str:
    """Return what a reference raised on the processor that may lack a GPU alone, "" of every other outline."""
    return f"on the processor {found.reason}; perhaps it lacks a GPU alone" if found.code is OutlineCode.GPU else ""


def problem_lines(outlined: Sequence[OutlinedProblem]) -> list[str]:
    """Return the lines that tell a person of a problem: its entry on each kind of device, and below what they share."""
    told: list[str] = []
    for each, following in zip(outlined, [*outlined[1:], None], strict=True):
        told.append(f"on {each.kind.value}: {each.entry}")
        if following is None or following.lines() != each.lines():
            told += each.lines()
    return [printable(line) for line in told]


def _in_result(arg: ArgSpec) -> str:
    """Return where an output lies in a nested result; "" where its name tells it, and for what is no output."""
    return f"  {arg.source}" if arg.role is Role.OUTPUT and arg.source.startswith("result[") else ""


def _why(refusal: UncoveredError) -> str:
    """Return the offline model's refusal without the name of the problem."""
    return str(refusal).partition(": ")[2]
