"""A shipped package, installed and used in a process of its own. Its kernel is a test's own, so it is loaded there."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ridgeline.checkpoints.result import read_schema
from ridgeline.checkpoints.storage.strict_json import finite
from ridgeline.tools.machine.devices import detect_device
from ridgeline.tools.records.vocabulary import Interface

from .finished_run import MODULE, NO_INIT_INPUTS, Finished, write_run
from .installing import environment_of, python, scenario, shipped, shipped_site

pytestmark = pytest.mark.long

TORCH_FLAGS = (
    *("-O2", "-shared", "-fPIC", "-std=c++20", "-DTORCH_API_INCLUDE_EXTENSION_H"),
    "-DTORCH_EXTENSION_NAME=ridgeline_candidate",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shipped")
    return shipped_site(folder, write_run(folder / "run"))


@pytest.fixture(scope="module")
def found(site: Path) -> dict[str, Any]:
    return scenario(site, "falls", "opcheck")


def test_a_module_around_the_kernel_gives_what_one_around_the_reference_gives(found: dict[str, Any]) -> None:
    assert found["eager"] < 1e-6
    assert found["slice"] < 1e-6  # a slice starts at no multiple of 64 bytes
    assert found["silent"] == []


def test_the_operator_passes_torchs_own_check(found: dict[str, Any]) -> None:
    assert set(found["opcheck"].values()) == {"SUCCESS"}


def test_a_backward_pass_is_refused(found: dict[str, Any]) -> None:
    assert "scaled_kernel computes forward only" in found["refused"]


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("shape", "the shape of x is not (64, 32)"),
        ("type", "the type of x is not torch.float32"),
        ("strides", "the strides of x are not those of its certificate"),
        ("constants", "the model's shift is not the reference's"),
        ("training", "this is training mode"),
        ("autocast", "without autocast"),
        ("number", "an argument is no float"),
        ("count", "it takes 2 arguments"),
    ],
)
def test_what_was_not_certified_goes_to_the_reference_with_one_warning(
    found: dict[str, Any], what: str, words: str
) -> None:
    (warning,) = found[what]
    assert warning.startswith("scaled_kernel: ")
    assert words in warning
    assert warning.endswith("the reference computes this instead")


def test_the_operator_itself_takes_other_strides_and_no_other_shape(found: dict[str, Any]) -> None:
    assert found["raw_strides"] < 1e-6
    assert "the shape of x is not (64, 32)" in found["raw"]


def test_the_operator_is_compiled_as_one_graph(site: Path) -> None:
    found = scenario(site, "compile")
    assert found["compiled"] < 1e-6
    assert found["compiled_with_gradients"] < 1e-6
    assert "computes forward only" in found["compiled_refused"]
    (warning,) = found["compiled_fall"]
    assert "the shape of x" in warning


@pytest.mark.slow
def test_gradients_are_the_references_where_that_was_asked_for(tmp_path: Path) -> None:
    site = shipped_site(tmp_path, write_run(tmp_path / "run"), gradients="reference")
    found = scenario(site, "opcheck", "compile")
    assert set(found["opcheck"].values()) == {"SUCCESS"}
    assert set(found["opcheck_gradients"].values()) == {"SUCCESS"}
    assert found["gradients"] < 1e-6
    assert found["compiled_gradients"] < 1e-6


@pytest.mark.parametrize(
    ("interface", "flags"),
    [pytest.param(Interface.TORCH, TORCH_FLAGS, marks=pytest.mark.slow), (Interface.MODULE, None)],
)
def test_the_other_interfaces_are_shipped_too(
    tmp_path: Path, interface: Interface, flags: tuple[str, ...] | None
) -> None:
    run = write_run(tmp_path / "run", Finished(interface=interface, flags=flags))
    site = shipped_site(tmp_path, run)
    done = python(site, "-m", "scaled_kernel")
    assert done.returncode == 0, done.stderr + done.stdout


@pytest.mark.parametrize("interface", [Interface.C, Interface.MODULE])
def test_a_reference_without_get_init_inputs_is_shipped_as_what_runs(tmp_path: Path, interface: Interface) -> None:
    source = MODULE.replace("(self, cols)", "(self, cols=32)") if interface is Interface.MODULE else ""
    run = write_run(tmp_path / "run", Finished(interface=interface, source=source, reference=NO_INIT_INPUTS))
    out = shipped(tmp_path, run)
    (snippet,) = re.findall(r"```python\n(.*?)```", (out / "README.md").read_text(), re.DOTALL)
    assert "get_init_inputs" not in snippet
    strictly = "import warnings\nwarnings.filterwarnings('error', 'scaled_kernel: ')\n"
    for words in (("-m", "scaled_kernel"), ("-c", strictly + snippet)):
        done = python(out, *words)
        assert done.returncode == 0, done.stderr + done.stdout


@pytest.mark.thorough
def test_its_own_check_compares_with_the_reference(site: Path) -> None:
    """Started as its user starts it."""
    command = [sys.executable, "-m", "scaled_kernel"]
    done = subprocess.run(command, env=environment_of(site), cwd=site, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + done.stdout
    assert re.search(r"relative error to the reference in float64: \d\.\de-0\d \(at most 1e-05\)", done.stdout)
    assert re.search(
        r"\d ms, the reference \d+\.\d{4} ms \(each one's median\): \d+\.\d\dx, the median of.*\ncertified: \d+\.\d\dx \(",
        done.stdout,
    )


def test_a_machine_without_a_compiler_uses_the_reference(site: Path, tmp_path: Path) -> None:
    done = python(site, "-m", "scaled_kernel", PATH="/nowhere", RIDGELINE_KERNEL_CACHE=str(tmp_path / "cache"))
    assert done.returncode == 1
    assert "no g++ here to build it with" in done.stdout


@pytest.mark.slow
def test_another_cpu_uses_the_reference_unless_its_user_says_otherwise(site: Path, tmp_path: Path) -> None:
    moved = tmp_path / "site"
    shutil.copytree(site, moved)
    told = moved / "scaled_kernel" / "kernel.json"
    contract = json.loads(told.read_text())
    contract["device"] |= {"arch": "x86_64-another", "name": "Another CPU"}
    told.write_text(json.dumps(contract))
    done = python(moved, "-m", "scaled_kernel")
    assert done.returncode == 1
    here = f"this CPU ({detect_device('cpu').arch})"
    assert (
        f"{here} is not the Another CPU (x86_64-another) that it was certified on (SCALED_KERNEL_ANY_CPU=1"
        in done.stdout
    )
    contract["certified"] = False
    told.write_text(json.dumps(contract))
    assert "(x86_64-another) that it was searched on" in python(moved, "-m", "scaled_kernel").stdout
    done = python(moved, "-m", "scaled_kernel", SCALED_KERNEL_ANY_CPU="1")
    assert done.returncode == 0, done.stderr + done.stdout


def test_the_operator_itself_is_refused_on_another_cpu(site: Path, tmp_path: Path) -> None:
    moved = tmp_path / "site"
    shutil.copytree(site, moved)
    told = moved / "scaled_kernel" / "kernel.json"
    contract = json.loads(told.read_text())
    contract["device"] |= {"arch": "x86_64-another", "name": "Another CPU"}
    told.write_text(json.dumps(contract))
    calls = """
import torch, scaled_kernel
for forward in (torch.ops.scaled_kernel.forward, scaled_kernel.forward):
    try:
        forward(torch.ones(64, 32), 0.5, torch.ones(32))
        print("computed")
    except ValueError as error:
        print(error)
"""
    refused = python(moved, "-c", calls).stdout.splitlines()
    assert ["is not the Another CPU (x86_64-another)" in line for line in refused] == [True, True]
    assert python(moved, "-c", calls, SCALED_KERNEL_ANY_CPU="1").stdout == "computed\ncomputed\n"


def test_a_cache_that_others_may_write_is_not_loaded_from(site: Path, tmp_path: Path) -> None:
    (tmp_path / "cache" / "scaled_kernel").mkdir(parents=True)
    (tmp_path / "cache" / "scaled_kernel").chmod(0o777)
    done = python(site, "-m", "scaled_kernel", RIDGELINE_KERNEL_CACHE=str(tmp_path / "cache"))
    assert done.returncode == 1
    assert "others may write there" in done.stdout


def test_kernel_json_keeps_its_schema(site: Path) -> None:
    contract = _contract(site)
    jsonschema.validate(finite(contract), read_schema("kernel"))
    assert contract["certified"] is True
    assert contract["figures"]["speedup_ci95"] == [1.9, 2.1]


def test_its_modules_are_free_of_lint(site: Path) -> None:
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--line-length", "120", "--select", "E,F,W,SIM"]
    done = subprocess.run([*command, str(site / "scaled_kernel")], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def _contract(site: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((site / "scaled_kernel" / "kernel.json").read_text())
    return read
