"""A package of a run whose reference was written from a live module: which models of the user's its kernel is for."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from ridgeline import ProblemSpec
from ridgeline.tools.records.problem import ArgSpec, Signature
from ridgeline.tools.records.vocabulary import Role

from .finished_run import COLS, ROWS, Finished, write_run
from .installing import python, shipped

pytestmark = pytest.mark.long

GATE = f"""
import torch


class Gate(torch.nn.Module):
    def __init__(self, temp=2.0, eps=0.25, width={COLS}):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width, eps=eps)
        self.drop = torch.nn.Dropout(0.5)  # none in eval mode
        self.temp, self.calls, self.seen = temp, 0, []

    def forward(self, x):
        self.calls += 1
        self.seen.append(x)
        return self.drop(self.norm(x) / self.temp)
"""
LEAF = """
import torch


class Gate(torch.nn.Module):
    def __init__(self, temp=2.0):
        super().__init__()
        self.temp = temp

    def forward(self, x):
        return x / self.temp
"""
KERNEL = """
#include <cmath>

void run(const float* x, const float* weight, const float* bias, float* out, void*) {
  for (int64_t row = 0; row < X_SHAPE_0; row++, x += X_SHAPE_1, out += X_SHAPE_1) {
    float mean = 0, square = 0;
    for (int64_t col = 0; col < X_SHAPE_1; col++) mean += x[col] / X_SHAPE_1;
    for (int64_t col = 0; col < X_SHAPE_1; col++) square += (x[col] - mean) * (x[col] - mean) / X_SHAPE_1;
    for (int64_t col = 0; col < X_SHAPE_1; col++)
      out[col] = ((x[col] - mean) / std::sqrt(square + 0.25f) * weight[col] + bias[col]) / 2;
  }
}
"""
HALF = "void run(const float* x, float* out, void*) { for (int64_t i = 0; i < X_NUMEL; i++) out[i] = x[i] / 2; }\n"
X = ArgSpec(name="x", role=Role.INPUT, shape=(ROWS, COLS), strides=(COLS, 1), source="x")
OUT = dataclasses.replace(X, name="out", role=Role.OUTPUT, source="out")
STATE = tuple(
    ArgSpec(name=f"norm_{name}", role=Role.PARAMETER, shape=(COLS,), strides=(1,), source=f"norm.{name}")
    for name in ("weight", "bias")
)
USE = """
import json, warnings
import torch
from gate import Gate
from gate_kernel import Kernel, _kernel

def use(model, x=None):
    _kernel._SAID.clear()
    x = torch.randn(64, 32) if x is None else x
    with warnings.catch_warnings(record=True) as caught, torch.no_grad():
        warnings.simplefilter("always")
        got = Kernel(model).eval()(x)
        error = float((got - model.eval()(x)).abs().max())
    return [str(each.message) for each in caught], error

found = {}
"""


def site(folder: Path, source: str, kernel: str, state: tuple[ArgSpec, ...]) -> Path:
    """Return the package of a run of `Gate`, with that module beside it."""
    own: dict[str, Any] = {}
    exec(source, own)
    ProblemSpec.from_module(own["Gate"](), (torch.randn(ROWS, COLS),), folder=folder / "gate", name="gate")
    reference = (folder / "gate" / "reference.py").read_text()
    signature = Signature(args=(X, *state, OUT))
    run = write_run(folder / "run", Finished(source=kernel, reference=reference, signature=signature, problem="gate"))
    out = shipped(folder, run)
    (out / "gate.py").write_text(source)
    return out


def told(site: Path, program: str) -> dict[str, Any]:
    done = python(site, "-c", f"{USE}{program}\nprint(json.dumps(found))")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return site(tmp_path_factory.mktemp("gate"), GATE, KERNEL, STATE)


@pytest.fixture(scope="module")
def found(gate: Path) -> dict[str, Any]:
    program = """
class Wild(Gate):
    def forward(self, x):
        if not self.training:
            self.norm.weight.data.mul_(2)
        if x.shape == (64, 32):
            raise KeyError("seen")
        return x

class Writing(Gate):
    def forward(self, x):
        y = super().forward(x)
        self.norm.bias.data.add_(1)
        return y

own = Gate()
with torch.no_grad():
    own.norm.weight.normal_()
own.norm.eval()
state = torch.get_rng_state()
Kernel(own)
found["state"] = [torch.equal(torch.get_rng_state(), state), own.calls, len(own.seen)]
found["modes"] = [own.training, own.norm.training, own.drop.training]
found["own"] = use(own)
found["temp"] = use(Gate(temp=2.5))
found["eps"] = use(Gate(eps=0.5))
found["type"] = use(Gate().double(), torch.randn(64, 32).double())
found["width"] = use(Gate(width=16), torch.randn(64, 16))
found["parts"] = use(torch.nn.Linear(32, 32))
found["wild"] = use(Wild(), torch.randn(4))
writing = Writing()
found["writing"] = use(writing)
wild = Wild()
Kernel(wild)
found["weight"] = float(wild.norm.weight.sum())
with torch.autocast("cpu"):
    found["autocast"] = Kernel(own)._against
"""
    return told(gate, program)


def test_the_users_own_module_with_submodules_gets_the_kernel(found: dict[str, Any]) -> None:
    causes, error = found["own"]
    assert causes == [] and error < 1e-5
    assert found["autocast"] == ""


def test_a_module_is_left_as_it_was(found: dict[str, Any]) -> None:
    assert found["state"] == [True, 0, 0]
    assert found["modes"] == [True, False, True]
    assert found["weight"] == COLS


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("temp", "the model gives something else than the reference with the same parameters and buffers"),
        ("eps", "the model gives something else than the reference with the same parameters and buffers"),
        ("width", "norm.weight was not torch.float32 (32,) when Kernel was made"),
        ("type", "norm.weight was not torch.float32 (32,) when Kernel was made"),
        ("parts", "the model has other parameters or buffers than the reference"),
        ("wild", "the model fails on cpu on the reference's inputs: KeyError: 'seen'"),
        (
            "writing",
            "the model fails on cpu on the reference's inputs: RuntimeError: its forward writes a tensor of its own",
        ),
    ],
)
def test_another_module_computes_for_itself_with_one_warning(found: dict[str, Any], what: str, words: str) -> None:
    (warning,), error = found[what]
    assert warning == f"gate_kernel: {words}; the reference computes this instead"
    assert error == 0.0 or what == "writing"  # each call of which gives something else


def test_a_module_without_submodules_is_compared_by_what_it_computes_too(tmp_path: Path) -> None:
    package = site(tmp_path, LEAF, HALF, ())
    found = told(package, "found = {'own': use(Gate()), 'temp': use(Gate(2.5))}")
    assert found["own"][0] == [] and found["own"][1] < 1e-6
    (warning,), error = found["temp"]
    assert "the model gives something else than the reference" in warning and error == 0.0


def test_the_package_of_such_a_run_compares_its_own_model_and_is_free_of_lint(gate: Path) -> None:
    done = python(gate, "-m", "gate_kernel")
    assert done.returncode == 0, done.stderr + done.stdout
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--line-length", "128", "--select", "E,F,W,SIM"]
    own = [str(path) for path in (gate / "gate_kernel").glob("_*.py")]
    linted = subprocess.run([*command, *own], capture_output=True, text=True)
    assert linted.returncode == 0, linted.stdout
