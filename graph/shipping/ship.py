"""Shipping: a run's winner leaves as a folder of its own that can be installed without Ridgeline."""

from __future__ import annotations

import keyword
import os
import re
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.history.right_kernels import why_none
from ridgeline.checkpoints.runs.folders import state_now
from ridgeline.checkpoints.storage.errors import storage_errors
from ridgeline.checkpoints.winner import Winner, winner_of
from ridgeline.graph.shipping.contract import make_contract, reason_against_shipping
from ridgeline.graph.shipping.foreign import expect_known_words, has_foreign_reference
from ridgeline.graph.shipping.package import Files, hf_files, package_files
from ridgeline.tools.errors import InputError, RunError
from ridgeline.tools.judge.outline_process import OutlineProcess
from ridgeline.tools.machine.whole_files import draft_folder
from ridgeline.tools.records.module_contract import CallForm
from ridgeline.tools.records.vocabulary import RunState
from ridgeline.tools.wording import option

# The last lines are what torch.ops has already: operators of torch and of its sisters, and names of its own.
_TAKEN = (
    "torch numpy ridgeline"
    " aten c10d c10d_functional caffe2 classes debug_mode_ops debugprims export fbgemm flex_lib fsdp higher_order image"
    " import_module inductor inductor_prims load_library loaded_libraries mkl mkldnn mkldnn_prepacked onednn onnx"
    " onnx_symbolic prepacked prim prims profiler quantization quantized rngprims sparse static_runtime streams symm_mem"
    " tensorexpr torchaudio torchvision triton vulkan xnnpack"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShipRequest:
    """A request to ship: what, where to, and how."""

    run: Path
    out: Path
    name: str | None = None  # of the Python package; PROBLEM_kernel without it
    layout: str = "package"
    gradients: str = "none"
    takes_uncertified: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Shipped:
    """A folder that was written."""

    out: Path
    name: str
    winner: Winner


def ship(request: ShipRequest, *, on_warning: Callable[[str], None] | None = None) -> Shipped:
    """Write the folder, whole or not at all; `on_warning` is told of a foreign reference before it is run.

    Raises:
        RunError: the run has no winner or no certificate, or its kernel cannot be shipped.
        InputError: the name is no package's, or the folder exists.
        StorageError: it cannot be written.
    """
    _refuse_existing(request.out)
    if request.layout == "hf-kernels" and request.gradients != "none":
        raise InputError(
            f"{option('gradients', 'reference')}: not in the layout hf-kernels, which holds no reference at run time"
        )
    winner = _read_winner(request.run, takes_uncertified=request.takes_uncertified)
    expect_known_words(winner)
    name = _package_name(request, winner.problem)
    if on_warning and has_foreign_reference(winner):
        on_warning(f"{request.run}: its reference is none that ships: it is run as you, outside of any sandbox")
    call = _call_form(request.run, winner)
    if reason := reason_against_shipping(winner, call, request.layout):
        raise RunError(f"{request.run}: its kernel cannot be shipped: {reason}")
    contract = make_contract(winner, call, name=name, gradients=request.gradients)
    files = hf_files if request.layout == "hf-kernels" else package_files
    _write(request.out, files(winner, contract))
    return Shipped(out=request.out, name=name, winner=winner)


def _refuse_existing(out: Path) -> None:
    if os.path.lexists(out):
        raise InputError(f"{out}: exists already; name a new folder in {option('out')}")


def _read_winner(run: Path, *, takes_uncertified: bool) -> Winner:
    """Return a run's winner.

    Raises:
        RunError: the run has none, or it has no certificate that passed and `takes_uncertified` does not allow that.
        StorageError: the archive is damaged.
    """
    with Archive.open_read_only(run) as archive:
        winner = winner_of(archive, run.resolve().name)
        is_running = state_now(run, archive.run()) == RunState.RUNNING
        missing = "" if winner else why_none(archive)
    if winner is None and is_running:
        raise RunError(f"{run}: is still running and has no right kernel to ship yet; {_meanwhile(run)}")
    if winner is None:
        raise RunError(f"{run}: has no winner to ship: {missing}")
    if winner.is_certified or takes_uncertified:
        return winner
    kernel = winner.best.candidate.id
    if is_running:
        raise RunError(
            f"{run}: is still running, and certifies its winner when its rounds are over; {_meanwhile(run)}; "
            f"{option('uncertified', True)} ships {kernel}, the fastest so far"
        )
    raise RunError(
        f"{run}: {kernel} is not certified{_why(winner)}; {option('uncertified', True)} ships it all the same"
    )


def _meanwhile(run: Path) -> str:
    return f"wait for its end (ridgeline show {shlex.quote(str(run))} says how far it is)"


def _why(winner: Winner) -> str:
    if winner.certificate and winner.certificate.reason:
        return f" ({winner.certificate.reason})"
    return " (its times are replayed)" if winner.record.replay and winner.record.replay.get("times") else ""


def _package_name(request: ShipRequest, problem: str) -> str:
    name = request.name or re.sub(r"\W", "_", f"{problem}_kernel".lower())
    if why := _why_no_name(name):
        given = option("name") if request.name else "name"
        raise InputError(f"{given} {name}: no name for a package: {why}; choose another ({option('name')})")
    return name


def _why_no_name(name: str) -> str:
    """Return why a package cannot be called so, "" where it can."""
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name):
        return "a package's is of lower-case letters, digits and single _"
    if keyword.iskeyword(name):
        return "it is a word of Python's own"
    if name in sys.stdlib_module_names:
        return "Python's own library has a module of this name"
    return "another package, or torch.ops, has it" if name in _TAKEN.split() else ""


def _call_form(run: Path, winner: Winner) -> CallForm:
    """Return how the reference is called, which a process of its own finds on fake tensors."""
    with OutlineProcess(with_calls=True) as outlines:
        found = outlines.outline(winner.reference, winner.tolerance)
    if found.call is None:
        raise RunError(f"{run}: its kernel cannot be shipped: how its reference is called is not known: {found.reason}")
    return found.call


def _write(out: Path, files: Files) -> None:
    with storage_errors(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        with draft_folder(out) as draft:
            for path, text in files.items():
                place = draft / path
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(text, encoding="utf-8")
            draft.chmod(0o755)
            draft.rename(out)
