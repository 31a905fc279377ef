"""`ridgeline.load`: a run's winner, built as it was in the search, as a module of the caller's own process."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.history.right_kernels import why_none
from ridgeline.checkpoints.runs.folders import find_run
from ridgeline.checkpoints.winner import winner_of
from ridgeline.graph.library.blocking import run_blocking
from ridgeline.graph.library.run import Run
from ridgeline.graph.session.arguments import checked
from ridgeline.graph.session.machine import check_machine, open_engine
from ridgeline.graph.session.options import RUNS
from ridgeline.tools.engine import CompileTask
from ridgeline.tools.errors import RunError
from ridgeline.tools.machine.devices import detect_device
from ridgeline.tools.records.printable import printable
from ridgeline.tools.records.problem import DescribedTarget, Device, Signature, Target
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import ArgKind, DeviceKind, Interface, Role, Status

if TYPE_CHECKING:
    from ridgeline.graph.library.winner_module import Module, WinnerModule

BY_HAND = "docs/use-the-kernel.md says how to use it by hand"


def load(
    run: Run | Path | str, model: Module | None = None, *, uncertified: bool = False, any_cpu: bool = False
) -> WinnerModule:
    """Return a run's best kernel as a module for inference; blocks while it is built, as it was in the search.

    The kernel is code that a model may have written, and it runs in this process: no sandbox is around it, nor around the
    run's reference, which runs once where a model is given. Read `open_run(run).best_source` first. The module takes the
    inputs of the reference's `forward` by position or by name, of the types, shapes and strides of the search and of no
    others, and returns the output, or a tuple of several. Parameters and buffers are those of `model`, an instance of the
    reference's `Model`: the module holds it, so they move, load and save with it, and the kernel reads their values at each
    call. There is no gradient, no training mode and no autocast.

    Args:
        run: a run's folder, its name in `runs`, an exported archive, or what `open_run` returned.
        model: may be left out where the kernel takes no parameters and no buffers. On one draw of inputs it must give what
            the reference gives with its tensors: another number or text that shows there is refused. Both compute the problem's
            full size once for that, with memory for the model's tensors twice more at most.
        uncertified: take a winner without a certificate that passed.
        any_cpu: take a winner of another CPU's run.

    Raises:
        RunError: the run has no winner, or one that cannot be loaded here; one line says why and what to do.
        InputError: `model` lacks a parameter or a buffer, or computes something else than the reference.
        DeviceError, SandboxError: nothing can be built on this machine.
    """
    path = run.path if isinstance(run, Run) else checked("run", run)
    checked("uncertified", uncertified)
    checked("any_cpu", any_cpu)
    found = path if path.is_file() else find_run(RUNS, path)
    winner = _read(found, takes_uncertified=uncertified, takes_any_cpu=any_cpu)
    _check_signature(winner.target.name, winner.target.description.signature)
    library = run_blocking(_build(winner))
    from ridgeline.graph.library.winner_module import WinnerModule  # torch, which nothing else here needs

    module = WinnerModule(library, winner.target, model)
    if model is not None:
        from ridgeline.graph.library.other_model import refuse_other

        refuse_other(winner.target.name, winner.target.reference_source, model, module.device)
    return module


@dataclass(frozen=True, slots=True, kw_only=True)
class _Loadable:
    target: DescribedTarget  # on this machine's device
    candidate: Candidate
    device_name: str
    flags: tuple[str, ...]  # of its certificate's build; none of one without a certificate


def _read(path: Path, *, takes_uncertified: bool, takes_any_cpu: bool) -> _Loadable:
    with Archive.open_read_only(path) as archive:
        winner = winner_of(archive, str(path), advice=BY_HAND)
        if winner is None:
            raise RunError(f"{path}: has no winner to load: {why_none(archive)}")
    candidate = winner.best.candidate
    if not winner.is_certified and not takes_uncertified:
        raise RunError(
            f"{path}: its best kernel {candidate.id} is not certified; uncertified=True loads it all the same"
        )
    if winner.interface is Interface.MODULE:
        raise RunError(
            f"{path}: interface module: load takes no file with ModelNew; ridgeline ship makes a package of it"
        )
    name = winner.record.device_name or winner.device.kind.value
    device = detect_device(name)
    if not (takes_any_cpu and device.kind is DeviceKind.CPU):
        how = "certified" if winner.is_certified else "searched"
        _check_device(path, made_on=winner.device, here=device, how=how)
    target = Target(
        name=winner.problem,
        reference_source=winner.reference,
        interface=winner.interface,
        tolerance=winner.tolerance,
        device=device,
    )
    described = target.described(winner.description)
    return _Loadable(target=described, candidate=candidate, device_name=name, flags=winner.certified_flags)


def _check_device(path: Path, *, made_on: Device, here: Device, how: str) -> None:
    if here.arch == made_on.arch:
        return
    if here.kind is DeviceKind.CUDA:
        raise RunError(f"{path}: made for {made_on.arch}, this GPU is {here.arch}; search again on it")
    other = f"{printable(made_on.name)} ({printable(made_on.arch)})"
    said = f"this CPU ({printable(here.arch)}) is not the {other} that it was {how} on"
    raise RunError(f"{path}: {said} (any_cpu=True runs it all the same)")


def _check_signature(problem: str, signature: Signature) -> None:
    """Refuse what the module could not pass on as the reference's `forward` takes and gives it."""
    if signature.written_input:
        raise RunError(f"{problem}: its reference writes its input {signature.written_input}; {BY_HAND}")
    for arg in signature.args:
        if arg.role is Role.INPUT and arg.source != arg.name and "[" in arg.source:
            raise RunError(
                f"{problem}: the input {arg.source} lies in a list or a dict, which load does not take; {BY_HAND}"
            )
        if arg.role is Role.OUTPUT and arg.kind is not ArgKind.TENSOR:
            raise RunError(f"{problem}: its reference returns more than tensors; {BY_HAND}")


async def _build(winner: _Loadable) -> Path:
    """Return the library, built in the sandbox or taken from the build cache."""
    await asyncio.to_thread(check_machine, winner.device_name)
    async with open_engine(winner.device_name) as engine:
        build = await engine.submit(CompileTask(problem=winner.target, candidate=winner.candidate))
    if build.status is not Status.OK or build.library_path is None:
        raise RunError(
            f"{winner.candidate.id}: does not build here ({build.reason_code}): {build.reason.splitlines()[0]}"
        )
    if winner.flags and winner.flags != build.flags:
        other = " ".join(sorted(set(winner.flags) ^ set(build.flags)))
        raise RunError(
            f"{winner.candidate.id}: was certified with other flags than it is built with here ({other}); {BY_HAND}"
        )
    return Path(build.library_path)
