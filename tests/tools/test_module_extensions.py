"""The flags of a module's own extensions, made those of the machine at hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from ridgeline.tools.module_extensions import normalised
from ridgeline.tools.recipe import architecture_list
from ridgeline.tools.toolchain import cuda_home


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (["-O3", "-arch=sm_70", "--use_fast_math"], ["-O3", "--use_fast_math"]),
        (["-gencode", "arch=compute_80,code=sm_80", "-O2"], ["-O2"]),
        (["-gencode=arch=compute_80,code=sm_80", "--generate-code=arch=compute_70"], []),
        (["-march=skylake-avx512", "-fopenmp"], ["-march=native", "-fopenmp"]),
        ("-O3 -march=x86-64", ["-O3", "-march=native"]),
        (None, []),
    ],
)
def test_flags_that_choose_an_architecture_become_this_machines(given: object, kept: list[str]) -> None:
    assert normalised(given) == kept


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
