"""The modules of every kind of package, as text: they are free of lint, and those that need no library import."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.winner import Winner, winner_of
from ridgeline.graph.shipping import render
from ridgeline.graph.shipping.contract import make_contract
from ridgeline.graph.shipping.package import Files, hf_files, package_files
from ridgeline.tools.judge.outline_process import OutlineProcess
from ridgeline.tools.records.module_contract import CallForm
from ridgeline.tools.records.problem import Signature
from ridgeline.tools.records.vocabulary import Interface, PrecisionClass

from .finished_run import REFERENCE, Finished, signature, write_run
from .installing import python_alone

SHIPPED = Path(render.__file__).parent / "shipped"
KINDS = tuple(product(Interface, ("none", "reference"), (True, False)))
STUB = """
import torch

_LIBRARY = torch.library.Library("_stub", "DEF")
_LIBRARY.define("forward(Tensor a, float b, Tensor c) -> (Tensor, Tensor)")
ops = torch.ops._stub


def add_op_namespace_prefix(name):
    return f"_stub::{name}"
"""


@pytest.fixture(scope="module")
def call(outlines: OutlineProcess) -> CallForm:
    found = outlines.outline(REFERENCE, PrecisionClass.FP32).call
    assert found is not None
    return found


def test_a_package_calls_a_library_by_the_modules_that_ridgeline_itself_runs(tmp_path: Path, call: CallForm) -> None:
    shipped = {path.name: path.read_text() for path in SHIPPED.glob("_[!_]*.py")}
    assert not any("ridgeline import" in text or "import ridgeline" in text for text in shipped.values())
    files: Files = {}
    for interface in (Interface.C, Interface.TORCH):
        winner = winner_for(tmp_path / interface, certified=True, interface=interface)
        files |= package_files(winner, make_contract(winner, call, name="scaled_kernel", gradients="none"))
    assert shipped and shipped == {name: files[f"scaled_kernel/{name}"] for name in shipped}


def winner_for(folder: Path, *, certified: bool, **wanted: object) -> Winner:
    with Archive.open(write_run(folder, Finished(certified=certified, **wanted)), create=False) as archive:
        winner = winner_of(archive, "run")
    assert winner is not None
    return winner


def write(files: Files, out: Path) -> None:
    for name, text in files.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text(text)


def hf(folder: Path, call: CallForm, *, certified: bool, **wanted: object) -> Path:
    winner = winner_for(folder / "run", certified=certified, **wanted)
    contract = make_contract(winner, call, name="scaled_kernel", gradients="none")
    write(hf_files(winner, contract), folder / "out")
    return folder / "out"


def test_the_modules_of_every_kind_are_free_of_lint(tmp_path: Path, call: CallForm) -> None:
    for at, (interface, gradients, certified) in enumerate(KINDS):
        winner = winner_for(tmp_path / f"run{at}", certified=certified, interface=interface)
        contract = make_contract(winner, call, name="scaled_kernel", gradients=gradients)
        files = package_files(winner, contract)
        own = {name: text for name, text in files.items() if not name.endswith(("kernel.py", "reference.py"))}
        write(own, tmp_path / "out" / f"{interface}_{gradients}_{certified}")
    for certified in (True, False):
        hf(tmp_path / f"hf{certified}", call, certified=certified)
    modules = [*(tmp_path / "out").rglob("*.py"), *tmp_path.glob("hf*/out/torch-ext/*/__init__.py")]
    scripts = tmp_path.glob("run*/use_kernel.py")
    assert len(modules) > len(KINDS) * 10
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--line-length", "128", "--select", "F,W,SIM,E"]
    done = subprocess.run([*command, *map(str, modules)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    done = subprocess.run([*command, "--ignore", "E501", *map(str, scripts)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout  # a script's first lines are the flags and the limits, each on one


@pytest.mark.parametrize("certified", [True, False])
def test_hugging_faces_module_imports_whatever_the_arguments_are_called(
    tmp_path: Path, call: CallForm, certified: bool
) -> None:
    names = iter(("ops", "lambda", "torch"))
    args = tuple(replace(arg, name=next(names, arg.name)) for arg in signature().args)
    out = hf(tmp_path, call, certified=certified, signature=Signature(args=args))
    (out / "torch-ext" / "scaled_kernel" / "_ops.py").write_text(STUB)
    use = (
        "import warnings, torch\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n"
        "    import scaled_kernel\n"
        "print([str(each.message) for each in caught])\n"
        "y, sums = scaled_kernel.forward(torch.ones(64, 32, device='meta'), 0.5, torch.ones(32, device='meta'))\n"
        "assert (y.shape, sums.shape) == ((64, 32), (64,))\n"
    )
    done = python_alone("-c", use, cwd=out / "torch-ext")
    assert done.returncode == 0, done.stderr
    assert ("this kernel is not certified" in done.stdout) is not certified
    assert ("`certificate.json` holds every measurement" in (out / "CARD.md").read_text()) is certified


def test_hugging_faces_binding_takes_no_other_value_of_a_number_that_was_never_varied(
    tmp_path: Path, call: CallForm
) -> None:
    binding = (hf(tmp_path / "one", call, certified=True, fixed=True) / "torch-ext" / "torch_binding.cpp").read_text()
    assert 'TORCH_CHECK(static_cast<double>(given_1) == 0.5, "t", ": is not 0.5, the only value' in binding
    binding = (hf(tmp_path / "two", call, certified=True) / "torch-ext" / "torch_binding.cpp").read_text()
    assert "the only value" not in binding
