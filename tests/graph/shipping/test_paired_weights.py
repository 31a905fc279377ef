"""A shipped `ModelNew` has the reference's parameters where the judge puts them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ridgeline.tools.records.problem import ArgSpec, Signature
from ridgeline.tools.records.vocabulary import Interface, Role

from .finished_run import Finished, write_run
from .installing import python, python_alone, shipped

REFERENCE = """
import torch


class Model(torch.nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.early = torch.nn.Parameter(torch.zeros(cols))
        self.late = torch.nn.Parameter(torch.zeros(cols))

    def forward(self, x):
        return torch.relu(x + self.early) + self.late


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return [16]
"""
KERNEL = """
import torch


class ModelNew(torch.nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.bias_late = torch.nn.Parameter(torch.zeros(cols))
        self.bias_early = torch.nn.Parameter(torch.zeros(cols))

    def forward(self, x):
        return torch.relu(x + self.bias_early) + self.bias_late
"""
USE = """
import warnings
import torch
warnings.simplefilter("error")
state = torch.get_rng_state()
from scaled_kernel import Kernel
from scaled_kernel.reference import Model
model = Model(16).eval()
seeded = []
torch.cuda.manual_seed_all = torch.cuda.manual_seed = seeded.append
with torch.no_grad():
    model.early.fill_(1.0)
    model.late.fill_(-2.0)
    x = torch.randn(8, 16)
    assert torch.equal(Kernel(model)(x), model(x))
assert seeded == [], seeded
"""


@pytest.fixture
def run(tmp_path: Path) -> Path:
    x = ArgSpec(name="x", role=Role.INPUT, shape=(8, 16), strides=(16, 1), source="x")
    early, late = (
        ArgSpec(name=name, role=Role.PARAMETER, shape=(16,), strides=(1,), source=name) for name in ("early", "late")
    )
    args = (x, early, late, replace(x, name="out", role=Role.OUTPUT, source="out"))
    finished = Finished(interface=Interface.MODULE, source=KERNEL, reference=REFERENCE, signature=Signature(args=args))
    return write_run(tmp_path / "run", finished)


def test_equal_biases_of_other_names_are_paired_as_the_judge_pairs_them(run: Path, tmp_path: Path) -> None:
    done = python(shipped(tmp_path, run), "-c", USE)
    assert done.returncode == 0, done.stderr


def test_the_run_folders_script_pairs_them_so_too(run: Path, tmp_path: Path) -> None:
    program = (
        "import sys, torch; sys.path.insert(0, sys.argv[1]); import use_kernel, reference\n"
        "torch.manual_seed(42); model = reference.Model(16).eval().requires_grad_(False)\n"
        "kernel = use_kernel.make_kernel(model); kernel(torch.randn(8, 16))\n"
        "own = {name: cell for name, cell in zip(kernel.__code__.co_freevars, kernel.__closure__)}\n"
        "names = use_kernel.reference_names(\n"
        "    {n: use_kernel.fingerprint(t) for n, t in model.state_dict().items()}, own['new'].cell_contents)\n"
        "assert names == {'bias_late': 'late', 'bias_early': 'early'}, names\n"
    )
    for words in (["-c", program, str(run)], [str(run / "use_kernel.py")]):
        done = python_alone(*words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr + done.stdout
