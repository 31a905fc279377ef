"""The use of a search's best kernel: its arguments, its files and the commands, for report.html."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.result import Best
from ridgeline.checkpoints.stored_certificate import certifies
from ridgeline.problems.syntax import has_init_inputs
from ridgeline.tools.records.dtypes import contiguous_strides
from ridgeline.tools.records.problem import ArgSpec
from ridgeline.tools.records.vocabulary import ArgKind, Interface, Role


@dataclass(frozen=True, slots=True, kw_only=True)
class WinnerUse:
    """The facts that a user of the best kernel has to know."""

    shell_run: str  # the folder's name, quoted for a shell
    is_certified: bool
    entry: str  # what is called
    has_workspace: bool  # `entry` takes a pointer to scratch memory
    is_loadable: bool  # by ridgeline.load, which takes no file with ModelNew and no reference that writes an input
    written_input: str  # of the reference, of which there is no package then
    has_init_inputs: bool  # in the reference, which may leave get_init_inputs out
    flags: str  # of its build, as far as the archive keeps them
    arguments: tuple[tuple[str, str, str], ...]  # name, role, what is passed


_ENTRIES = {Interface.C: "run", Interface.TORCH: "forward", Interface.MODULE: "ModelNew.forward"}
_TAKEN = {
    Interface.C: tuple(Role),
    Interface.TORCH: (Role.INPUT, Role.PARAMETER, Role.BUFFER),
    Interface.MODULE: (Role.INPUT,),
}
"""The roles of the arguments that are passed: a tensor that is returned is not."""


def winner_use(archive: Archive, best: Best | None) -> WinnerUse | None:
    """Return how to use the best kernel; None without one, or without a description of the reference."""
    description, certificate = archive.description(), archive.certificate()
    if best is None or description is None:
        return None
    build = best.evaluation.build
    is_certified = certifies(certificate, best.candidate.id)
    used = certificate.build if certificate and is_certified else build
    interface = best.candidate.interface
    taken = [arg for arg in description.signature.args if arg.role in _TAKEN[interface]]
    return WinnerUse(
        shell_run=shlex.quote(archive.path.parent.name),
        is_certified=is_certified,
        entry=_ENTRIES[interface],
        has_workspace=interface is Interface.C,
        is_loadable=interface is not Interface.MODULE and not description.signature.written_input,
        written_input=description.signature.written_input,
        has_init_inputs=has_init_inputs(archive.run().reference_source),
        flags=" ".join(used.flags if used else ()),
        arguments=tuple((arg.name, arg.role.value, _passed(arg)) for arg in taken),
    )


def _passed(arg: ArgSpec) -> str:
    if arg.kind is ArgKind.NONE:
        return "None, not passed"
    if arg.kind is ArgKind.SCALAR:
        return f"{arg.dtype}, nominally {arg.value}"
    shape = " × ".join(map(str, arg.shape)) or "one value"
    is_in_order = not arg.strides or arg.strides == contiguous_strides(arg.shape)
    strides = "" if is_in_order else f", strides {' × '.join(map(str, arg.strides))}"
    return f"{arg.dtype}, {shape}{strides}"
