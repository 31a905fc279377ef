"""The binding of a project for kernel-builder compiles; kernel-builder itself is not run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ridgeline.graph.shipping.ship import ShipRequest, ship

from .finished_run import Finished, write_run

REGISTRATION = """
#pragma once
#define TORCH_LIBRARY_EXPAND(NAME, MODULE) TORCH_LIBRARY(NAME, MODULE)
#define REGISTER_EXTENSION(NAME)
"""
"""What the binding uses of the header that kernel-builder adds."""
BUILD = """
import subprocess, sys
from torch.utils import cpp_extension
flags = ["-std=c++20", "-O0", "-shared", "-fPIC", "-fopenmp", "-DCPU_KERNEL", "-DTORCH_EXTENSION_NAME=_scaled_of_test"]
headers = [word for path in cpp_extension.include_paths("cpu") for word in ("-isystem", path)]
libraries = [f"-L{path}" for path in cpp_extension.library_paths("cpu")] + ["-lc10", "-ltorch_cpu", "-ltorch"]
sources = ["torch-ext/torch_binding.cpp", "scaled_kernel_cpu/kernel.cpp"]
command = ["g++", *flags, "-I.", "-Iscaled_kernel_cpu", *headers, *sources, "-o", "bound.so", *libraries]
subprocess.run(command, check=True)
"""
USE = """
import sys, torch
sys.path.insert(0, "torch-ext/scaled_kernel")
from reference import Model, get_init_inputs, get_inputs
torch.ops.load_library("bound.so")
forward = torch.ops._scaled_of_test.forward
model, (x, t) = Model(*get_init_inputs()), get_inputs()
with torch.no_grad():
    y, sums = forward(x, t, model.scale)
    wanted, others = model(x, t)
    torch.testing.assert_close(y, wanted)
    torch.testing.assert_close(sums, others["sums"][0])
    for given in ((x[:3], t, model.scale), (x, 0.75, model.scale)):
        try:
            forward(*given)
        except RuntimeError as error:
            print(error)
"""


@pytest.mark.slow
def test_the_binding_computes_what_the_reference_does(tmp_path: Path) -> None:
    out = tmp_path / "out"
    ship(ShipRequest(run=write_run(tmp_path / "run", Finished(fixed=True)), out=out, layout="hf-kernels"))
    (out / "registration.h").write_text(REGISTRATION)
    for program in (BUILD, USE):
        done = subprocess.run([sys.executable, "-c", program], cwd=out, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert "x: of another shape than the kernel is made for" in done.stdout
    assert "t: is not 0.5, the only value that was tried" in done.stdout
