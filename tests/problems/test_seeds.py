"""Every shipped seed kernel of interface `c` is written against the header that is generated for its problem."""

import subprocess
from pathlib import Path

import pytest

from ridgeline.problems.spec import load_problem, shipped_problems
from ridgeline.tools.build.interfaces import problem_header
from ridgeline.tools.records.problem import ArgSpec, Signature
from ridgeline.tools.records.vocabulary import DeviceKind, Role


def tensor(name: str, role: Role, *shape: int) -> ArgSpec:
    strides = tuple(int(step) for step in (shape[-1], 1)[-len(shape) :])
    return ArgSpec(name=name, role=role, shape=shape, strides=strides)


SIGNATURES = {
    "quickstart": (
        tensor("x", Role.INPUT, 2048, 768),
        tensor("residual", Role.INPUT, 2048, 768),
        tensor("bias", Role.PARAMETER, 768),
        tensor("norm_weight", Role.PARAMETER, 768),
        tensor("norm_bias", Role.PARAMETER, 768),
        tensor("out", Role.OUTPUT, 2048, 768),
    ),
    "softmax": (tensor("x", Role.INPUT, 2048, 4096), tensor("out", Role.OUTPUT, 2048, 4096)),
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_a_seed_kernel_compiles_without_a_warning(name: str, tmp_path: Path) -> None:
    (tmp_path / "problem.h").write_text(problem_header(Signature(args=SIGNATURES[name]), DeviceKind.CPU))
    for stem, source in load_problem(shipped_problems()[name]).seed_sources("cpu"):
        (tmp_path / f"{stem}.cpp").write_text(source)
        command = ["g++", "-std=c++17", "-fsyntax-only", "-fopenmp", "-Wall", "-Wextra", "-Werror"]
        done = subprocess.run(
            [*command, "-include", "problem.h", f"{stem}.cpp"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr


def test_both_attention_problems_ship_the_same_kernels() -> None:
    """A seed has to lie in its problem's folder, so what is mended in one has to be mended in the other."""
    here, there = (shipped_problems()[name].parent / "seeds" for name in ("attention_fp16", "attention_fp16_d128"))
    kernels = [{path.name: path.read_text() for path in folder.iterdir()} for folder in (here, there)]
    assert kernels[0] == kernels[1] != {}
