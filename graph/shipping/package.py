"""The files of an installable package, and of Hugging Face's kernel-builder project, around one kernel."""

from __future__ import annotations

import datetime as dt
import math
import re
from typing import Any

from ridgeline import __version__
from ridgeline.checkpoints.storage.strict_json import finite, pretty
from ridgeline.checkpoints.winner import Winner
from ridgeline.graph.shipping.contract import make_build
from ridgeline.graph.shipping.render import render_shipped, shipped_source, weights_source
from ridgeline.problems.syntax import has_init_inputs
from ridgeline.problems.written import is_of_live_module
from ridgeline.tools.build.interfaces import architecture_list, problem_header
from ridgeline.tools.records.vocabulary import ArgKind, DeviceKind, Interface, Role

_MODULES = ("__init__", "__main__", "_compare", "_contract", "_device", "_kernel", "_model", "_module", "_op")
_OF_INTERFACE: dict[Interface, tuple[str, ...]] = {
    Interface.C: ("_build",),
    Interface.TORCH: ("_build",),
    Interface.MODULE: ("_call_module",),
}
_SHIPPED: dict[Interface, tuple[str, ...]] = {
    Interface.C: ("_call_c", "_denormals"),
    Interface.TORCH: ("_call_torch", "_denormals"),
    Interface.MODULE: (),
}
"""Modules that Ridgeline runs too, shipped as they are."""
Files = dict[str, str]
"""Texts by their path in the new folder."""


def package_files(winner: Winner, contract: dict[str, Any]) -> Files:
    """Return the files of a Python package that setuptools builds."""
    name = contract["name"]
    names = _names(winner, contract)
    modules = (*_MODULES, "_results" if names["is_live"] else "_attributes", *_OF_INTERFACE[winner.interface])
    files = {f"{name}/{module}.py": render_shipped(f"package/{module}.py.j2", **names) for module in modules}
    files |= {f"{name}/{module}.py": shipped_source(module) for module in _SHIPPED[winner.interface]}
    if winner.interface is Interface.MODULE:
        files[f"{name}/_weights.py"] = weights_source()
    files |= {f"{name}/{file}": text for file, text in _kernel_files(winner, contract).items()}
    files |= {f"{name}/kernel.json": pretty(finite(contract))}
    files |= {path: render_shipped(f"{path}.j2", **names) for path in ("pyproject.toml", "README.md", "LICENSE")}
    return files


def hf_files(winner: Winner, contract: dict[str, Any]) -> Files:
    """Return the files of a project for Hugging Face's kernel-builder, format edition 5."""
    name, kind = contract["name"], winner.device.kind.value
    names = _names(winner, contract)
    folder = f"{name}_{kind}"
    source = f"{folder}/kernel.{winner.best.candidate.language}"
    own = _kernel_files(winner, contract)
    files = {source: f'#include "problem.h"\n{own.pop(contract["build"]["source"])}'}
    files |= {f"{folder}/problem.h": own.pop("problem.h")}
    files |= {f"torch-ext/{name}/reference.py": own.pop("reference.py")}
    files |= own
    files |= {f"torch-ext/{name}/__init__.py": render_shipped("hf/__init__.py.j2", **names)}
    files |= {"kernel.json": pretty(finite(contract)), "LICENSE": render_shipped("LICENSE.j2", **names)}
    for path in ("build.toml", "flake.nix", "CARD.md", "torch-ext/torch_binding.cpp", "torch-ext/torch_binding.h"):
        files[path] = render_shipped(
            f"hf/{path.rpartition('/')[2]}.j2",
            **names,
            **_portable(winner),
            fixed=_fixed(contract),
            folder=folder,
            source=source,
        )
    return files


def _fixed(contract: dict[str, Any]) -> dict[str, str]:
    """Return the numbers that had one value in every test, as C++ writes them."""
    infinity = "std::numeric_limits<double>::infinity()"
    values = {arg["name"]: float(arg["value"]) for arg in contract["args"] if arg["fixed"]}
    signs = {math.inf: infinity, -math.inf: f"-{infinity}"}
    return {name: signs.get(value) or repr(value) for name, value in values.items()}


_NOT_PORTABLE = re.compile(r"-march=.*|-mtune=.*|-gencode=.*|-shared|-fPIC|-Wl,.*|-Xcompiler=.*|-Xlinker=.*|-std=.*")
"""Flags that kernel-builder chooses itself, or that bind a build to the machine it is made on."""


def _portable(winner: Winner) -> dict[str, Any]:
    """Return the architecture and the flags by which kernel-builder builds the kernel."""
    flags = [flag for flag in make_build(winner)["flags"] if not _NOT_PORTABLE.fullmatch(flag)]
    capability = architecture_list(winner.device.arch) if winner.device.kind is DeviceKind.CUDA else ""
    return {"portable_flags": flags, "capability": capability}


def _kernel_files(winner: Winner, contract: dict[str, Any]) -> Files:
    source = winner.best.candidate.source
    files = {contract["build"]["source"]: source if source.endswith("\n") else f"{source}\n"}
    files["reference.py"] = winner.reference
    if winner.interface is not Interface.MODULE:
        files["problem.h"] = problem_header(winner.description.signature, winner.device.kind, winner.interface)
    if winner.certificate_json is not None:
        files["certificate.json"] = pretty(finite(winner.certificate_json))
    return files


def _names(winner: Winner, contract: dict[str, Any]) -> dict[str, Any]:
    args, proof = winner.description.signature.args, winner.certificate
    passed = [a for a in args if a.kind is not ArgKind.NONE]
    return {
        "title": f"{winner.problem}: a kernel that Ridgeline {'certified' if winner.is_certified else 'found'}",
        "name": contract["name"],
        "dashed": contract["name"].replace("_", "-"),
        "interface": winner.interface.value,
        "gradients": contract["gradients"],
        "certified": winner.is_certified,
        "contract": contract,
        "winner": winner,
        "best": winner.figures,
        "date": (proof.date if proof else "") or dt.datetime.now(dt.UTC).date().isoformat(),
        "versions": (proof.versions if proof else None) or dict(winner.record.versions or {}),
        "reason": proof.reason if proof else "",
        "is_live": is_of_live_module(winner.reference),
        "has_init_inputs": has_init_inputs(winner.reference),
        "given": [a for a in passed if a.role is not Role.OUTPUT],
        "outputs": [a for a in passed if a.role is Role.OUTPUT],
        "on_gpu": winner.device.kind is DeviceKind.CUDA,
        "ridgeline": __version__,
    }
