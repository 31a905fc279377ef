"""The flags of a module's own extensions, made those of the machine at hand."""

from __future__ import annotations

import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from tests.environments import child_environment

from ridgeline.tools.build.interfaces import architecture_list
from ridgeline.tools.build.toolchain import cuda_home
from ridgeline.tools.runner.worker.extensions import Packer, normalised, with_architecture


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (["-O3", "-arch=sm_70", "--use_fast_math"], ["-O3", "--use_fast_math"]),
        (["-gencode", "arch=compute_80,code=sm_80", "-O2"], ["-O2"]),
        (["-gencode=arch=compute_80,code=sm_80", "--generate-code=arch=compute_70"], []),
        (["-march=skylake-avx512", "-fopenmp"], ["-march=native", "-fopenmp"]),
        ("-O3 -march=x86-64", ["-O3", "-march=native"]),
        (["-Xptxas", "-maxrregcount=64"], ["-Xptxas", "-maxrregcount=64"]),
        (None, []),
    ],
)
def test_flags_that_choose_an_architecture_become_this_machines(given: object, kept: list[str]) -> None:
    assert normalised(given) == kept


def test_nvcc_is_told_the_architecture_that_torch_leaves_out_beside_a_host_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "9.0a")
    host = ["-Xcompiler", "-march=native"]
    assert with_architecture(host) == [*host, "-gencode=arch=compute_90a,code=sm_90a"]
    assert with_architecture(["-O3"]) == ["-O3"]  # torch itself adds it
    monkeypatch.delenv("TORCH_CUDA_ARCH_LIST")
    assert with_architecture(host) == host


def test_a_list_of_sources_stays_as_it_was_given() -> None:
    built: list[list[str]] = []

    def build(name: str, cpp_sources: list[str], is_python_module: bool = True) -> Any:
        cpp_sources.insert(0, "#include <torch/extension.h>")  # as load_inline does
        built.append(cpp_sources)
        module = types.ModuleType(name)
        module.__file__ = f"/built/{name}.so"
        return module

    sources = ["int f();"]
    building = Packer()._around(build)
    building("one", sources)
    building("two", sources)
    assert sources == ["int f();"]
    assert built == [["#include <torch/extension.h>", "int f();"]] * 2


@pytest.mark.parametrize(
    ("arch", "listed"), [("sm_90a", "9.0a"), ("sm_86", "8.6"), ("sm_100", "10.0"), ("sm_120a", "12.0a")]
)
def test_torch_is_told_this_gpus_architecture_in_its_own_form(arch: str, listed: str) -> None:
    assert architecture_list(arch) == listed


def test_a_toolkit_is_found_behind_a_script_called_nvcc(tmp_path: Path) -> None:
    real = tmp_path / "cuda"
    (real / "include").mkdir(parents=True)
    (real / "include" / "cuda_runtime.h").touch()
    (real / "bin").mkdir()
    (real / "bin" / "nvcc").touch()
    assert cuda_home(real / "bin" / "nvcc") == real
    script = tmp_path / "scripts" / "nvcc"
    script.parent.mkdir()
    script.touch()
    assert cuda_home(script) == Path("/usr/local/cuda")


def test_a_runner_that_builds_nothing_does_not_import_what_builds_extensions() -> None:
    needless = {"setuptools", "torch.utils.cpp_extension"}
    code = f"import sys, ridgeline.tools.runner.worker.__main__; print({needless} & {{*sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], env=child_environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"
