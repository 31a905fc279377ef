"""The content of kernel.json: what a shipped kernel was certified for, how it is called and built.

`checkpoints/schemas/kernel.json` is its schema.
"""

from __future__ import annotations

import re
from typing import Any

from ridgeline.checkpoints.winner import Winner
from ridgeline.graph.shipping.foreign import expect_known_flags
from ridgeline.tools.errors import RunError
from ridgeline.tools.records.module_contract import CallForm
from ridgeline.tools.records.printable import printable
from ridgeline.tools.records.vocabulary import TORCH_MODULE, ArgKind, Interface, Label, Role
from ridgeline.tools.wording import option

KERNEL_SCHEMA_VERSION = 1
_OF_OWN_TORCH = re.compile(r"-D_GLIBCXX_USE_CXX11_ABI=.*")
"""A flag that the torch beside which a kernel runs decides."""


def make_contract(winner: Winner, call: CallForm, *, name: str, gradients: str) -> dict[str, Any]:
    """Return the content of kernel.json."""
    candidate, device, args = winner.best.candidate, winner.device, described_args(winner)
    return {
        "schema_version": KERNEL_SCHEMA_VERSION,
        "name": name,
        "problem": winner.problem,
        "kernel": candidate.id,
        "run": winner.run,
        "interface": winner.interface.value,
        "certified": winner.is_certified,
        "gradients": gradients,
        "device": {
            "kind": device.kind.value,
            "name": printable(device.name),  # the package prints both, and an archive may be a stranger's
            "arch": device.arch,
            "driver": printable(device.driver),
        },
        "build": make_build(winner),
        "call": call.to_json(),
        "args": args,
        "gate": max((arg["gate"] for arg in args if "gate" in arg), default=0.0),
        "figures": {key: getattr(winner.figures, key) for key in _FIGURES},
    }


_FIGURES = (
    *("speedup", "speedup_ci95", "speedup_vs_best", "speedup_vs_seed", "median_ms", "reference_ms"),
    *("precision_class", "labels"),
)


def make_build(winner: Winner) -> dict[str, Any]:
    """Return the name of the source, and the flags and compiler that it was certified with.

    Raises:
        RunError: the flags were not kept, or one of them is no flag of a build.
    """
    candidate, build = winner.best.candidate, winner.best.evaluation.build
    flags = () if winner.interface is Interface.MODULE else _certified_flags(winner)
    return {
        "source": f"kernel.{candidate.language}",
        "flags": [flag for flag in flags if not _OF_OWN_TORCH.fullmatch(flag)],
        "toolchain": build.toolchain if build else "",
    }


def _certified_flags(winner: Winner) -> tuple[str, ...]:
    """Return the flags of the certificate's build, else of the one that was measured.

    Raises:
        RunError: neither was kept, or one of them is no flag of a build.
    """
    build = winner.best.evaluation.build
    flags = winner.certified_flags or (build.flags if build else ())
    if not flags:
        raise RunError(f"{winner.run}: its build's flags were not kept; run the search anew")
    expect_known_flags(winner, flags)
    return flags


def described_args(winner: Winner) -> list[dict[str, Any]]:
    """Return the signature's arguments; `fixed` is true of a scalar that had one value in every test.

    An output also has `measure` and `gate`: how its error is measured, and the largest that is allowed.
    """
    skipped = [t.name for t in winner.description.skipped_trials if t.label is Label.NOT_VARIED]
    fixed = {name.removeprefix(f"{Label.NOT_VARIED} ") for name in skipped}
    has_model = winner.interface.has_model
    described = []
    for arg in winner.description.signature.args:
        is_fixed = arg.kind is ArgKind.SCALAR and (has_model or arg.name in fixed)
        told = arg.to_json() | {"fixed": is_fixed}
        if arg.role is Role.OUTPUT and arg.kind is ArgKind.TENSOR:
            told |= dict(zip(("measure", "gate"), winner.limit(arg), strict=True))
        described.append(told)
    return described


def reason_against_shipping(winner: Winner, call: CallForm, layout: str) -> str:
    """Return why this kernel cannot be shipped in this layout, "" where it can."""
    args = winner.description.signature.args
    inputs = [a for a in args if a.role is Role.INPUT and a.kind is ArgKind.TENSOR]
    if call.written:
        return (
            f"its forward() writes its input {inputs[call.written[0]].source}, which an operator without effects cannot"
        )
    if layout == "hf-kernels" and winner.interface is not Interface.C:
        return f"interface {winner.interface} has no place in the layout hf-kernels: ship it without {option('layout')}"
    if winner.interface is Interface.TORCH and TORCH_MODULE not in " ".join(make_build(winner)["flags"]):
        return "its build's flags are not those of an extension; run the search anew"
    return ""
