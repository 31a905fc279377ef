"""Modules and arguments of which no problem is made."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.environments import child_environment
from tests.problems.live.modules import Chain, Given, made
from torch import nn
from torch.nn import functional

from ridgeline.problems.spec import ProblemSpec
from ridgeline.tools.errors import ProblemError
from ridgeline.tools.judge.outline import OutlineCode
from ridgeline.tools.judge.worker.outline_main import outline
from ridgeline.tools.records.vocabulary import PrecisionClass


class Refused(nn.Module):
    def __init__(self, forward: Callable[..., Any]) -> None:
        super().__init__()
        self.call = forward
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> Any:
        return self.call(self, x)


def counted(module: Refused, x: torch.Tensor) -> torch.Tensor:
    module.count += 1
    return x * module.count


def with_autocast(_: Refused, x: torch.Tensor) -> torch.Tensor:
    with torch.autocast("cpu"):
        return x @ x


def test_a_module_that_fails_gets_its_mode_back(tmp_path: Path) -> None:
    module = Chain().train()
    with pytest.raises(ProblemError, match="cannot be exported"):
        made(tmp_path, module, torch.randn(8, 63))
    assert module.training and module.drop.training and not (tmp_path / "own").exists()


def test_a_forward_that_fails_only_when_it_is_run_is_told_in_one_line(tmp_path: Path) -> None:
    class Fails(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if type(x) is torch.Tensor and not torch.compiler.is_exporting():
                raise OSError("no room")
            return x + 1

    with pytest.raises(ProblemError, match="forward fails on the example: OSError: no room"):
        made(tmp_path, Fails(), torch.randn(8, 64))


def leaves(_: Refused, x: torch.Tensor) -> torch.Tensor:
    raise SystemExit(3)


@pytest.mark.parametrize(
    ("forward", "said"),
    [
        (lambda _, x: None, "forward returns no tensor, but None: a kernel needs one to write"),
        (lambda _, x: "words", "forward returns no tensor, but 'words'"),
        (leaves, "the module cannot be exported: SystemExit: 3"),
        (
            lambda _, x: x if x.sum() > 0 else -x,
            r"control flow that depends on values \(.*test_refused.py line \d+ in <lambda>: `.*`\); in place of an if",
        ),
        (
            lambda _, x: x[: int(x.sum().item())],
            r"exported: a number or a shape that depends on values \(\S*test_refused.py line \d+ in <lambda>: ",
        ),
        (
            lambda _, x: x.reshape(3),
            r"exported: RuntimeError: shape .* \(.*test_refused.py line \d+ in <lambda>: `.*`\)$",
        ),
        (
            lambda _, x: x * x.sum().item(),
            r"makes a number or a shape of a tensor's values .* fixed shapes does \(.*test_refused.py line \d+ in .*\)$",
        ),
        (lambda _, x: x[x > 0], "makes a number or a shape of a tensor's values"),
        (lambda _, x: functional.dropout(x, 0.5), "gives another result than the module"),
        (counted, r"forward\(\) changes its own `count` \(.*: what it gives depends on earlier calls"),
        (with_autocast, "forward uses autocast"),
        (lambda _, x: torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,)), "forward uses cond"),
        (lambda _, x: {x}, r"forward returns no tensor, but \{tensor\(\[\["),
        (
            lambda _, x: x + float(np.linalg.inv(np.zeros((2, 2)))[0, 0]),
            r"exported: LinAlgError: Singular matrix \(\S*test_refused.py line \d+ in <lambda>: `.*`\)$",
        ),
        (lambda _, x: 1 / 0, "cannot be exported: ZeroDivisionError"),
    ],
)
def test_what_a_reference_cannot_do_is_told_in_one_line(
    tmp_path: Path, forward: Callable[..., Any], said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ProblemError, match=f"^ProblemSpec.from_module: .*({said})") as caught:
            made(tmp_path, Refused(forward), torch.randn(4, 4))
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 500
    assert not (tmp_path / "own").exists()
    said_by_torch = capfd.readouterr()
    assert not said_by_torch.out and "def forward" not in said_by_torch.err


@pytest.mark.parametrize(
    "returned",
    [
        "torch.view_as_complex(x)",
        "x[:0]",
        "{'y': x, 'lr': [0.1]}",
        "(x, 'words')",
        "x.to_sparse()",
        "(x, np.prod(x.shape))",
        "{'y': x, 'n': [np.bool_(1)]}",
        "(x, np.longlong(3), {1})",
        "(x, np.float32(3))",
        "(x, {1})",
        "(x, x.dtype)",
    ],
)
def test_a_result_that_no_kernel_gives_is_refused_in_the_words_of_the_judge(tmp_path: Path, returned: str) -> None:
    with pytest.raises(ProblemError) as caught:
        made(tmp_path, Refused(eval(f"lambda _, x: {returned}")), torch.randn(4, 2))
    assert not (tmp_path / "own").exists()
    refused = outline(SAME.format(returned=returned), PrecisionClass.FP32)
    assert refused.code is OutlineCode.FORM
    assert str(caught.value) == f"ProblemSpec.from_module: {refused.reason}"


SAME = """
import numpy as np
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return {returned}
def get_inputs():
    return [torch.randn(4, 2)]
"""
UNFIT = """
import logging
import torch
from ridgeline import ProblemSpec

try:
    ProblemSpec.from_module(torch.nn.Linear(4, 4), (torch.randn(3, 5),), name="own", folder="own")
except Exception as error:
    print(error)
logging.getLogger("torch._subclasses.fake_tensor").error("of something else")
"""


@pytest.mark.thorough
def test_torch_logs_nothing_of_a_module_that_it_cannot_export(tmp_path: Path) -> None:
    command, environment = [sys.executable, "-c", UNFIT], child_environment()
    said = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "a and b must have same reduction dim" in said.stdout and said.stdout.count("\n") == 1
    assert said.stderr.count("\n") == 1 and "of something else" in said.stderr


class Masked(nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.Tensor, scale: float, *, shift: float = 0.0) -> torch.Tensor:
        return x * mask * scale + shift


class Named(nn.Module):
    def forward(self, x: torch.Tensor, *, mask: torch.Tensor) -> torch.Tensor:
        return x * mask


class Unbound(Refused):
    def forward(self, x: torch.Tensor) -> Any:
        raise TypeError("missing a required argument: 'x'")


@pytest.mark.parametrize(
    ("module", "said"),
    [
        (Masked(), r"example_inputs: lack mask, scale, which forward takes without a default; give every"),
        (
            Named(),
            r"example_inputs: lack mask, which .*, in a module around this one where forward takes it by its name",
        ),
        (Unbound(torch.sin), r"the module cannot be exported: TypeError: missing a required argument: 'x'"),
    ],
)
def test_an_example_that_leaves_an_argument_out_is_told_which(tmp_path: Path, module: nn.Module, said: str) -> None:
    with pytest.raises(ProblemError, match=f"^ProblemSpec.from_module: {said}"):
        made(tmp_path, module, torch.randn(4, 4))


def test_arguments_that_are_none_are_told_in_one_line(tmp_path: Path) -> None:
    x = torch.randn(4, 4)
    lazy, sparse = nn.LazyLinear(4), Given()
    sparse.weight = nn.Parameter(torch.eye(4).to_sparse())
    large = Refused(lambda module, x: x + module.noise[0])
    large.register_buffer("noise", torch.randn(1 << 21), persistent=False)
    refused: list[tuple[Any, Any, dict[str, Any], str]] = [
        (Given, (x,), {}, "module must be a torch.nn.Module, got"),
        (Given(), x, {}, "example_inputs must be a tuple of forward's arguments, got a Tensor"),
        (Given(), ([x],), {}, "input x: must be a tensor, a number or None, got a list; pass its tensors"),
        (Given(), ({"x": x},), {}, "input x: must be a tensor, a number or None, got a mapping"),
        (Given(), ("x",), {}, "input x: must be a tensor"),
        (Given(), (2.0,), {}, "hold no tensor"),
        (Given(), (), {}, "hold no tensor"),
        (Given(), (x.to_sparse(),), {}, "input x: is nested, sparse"),
        (Given(), (x.to(torch.complex64),), {}, "input x: is complex64"),
        (Given(), (x.to("meta"),), {}, "input x: is nested, sparse or without values"),
        (lazy, (x,), {}, "parameter weight: is not initialised; call the module once first"),
        (sparse, (x,), {}, "parameter weight: is nested, sparse"),
        (large, (x,), {}, "buffer noise: its 8388608 bytes are held exactly"),
        (Given(), (x,), {"reference": "x.py"}, "reference: is written here"),
        (Given(), (x,), {"serach": {}}, "serach: unknown key; did you mean `search`"),
        (Given(), (x,), {"name": "Own"}, "name: must be 1 to 64"),
        (Given(), (x,), {"tolerance": "fp33"}, "tolerance: must be one of"),
        (Given(), (x,), {"folder": 5}, "folder must be a path, got 5"),
    ]
    for module, example, keys, said in refused:
        given = {"name": "own", "folder": tmp_path / "own", **keys}
        with pytest.raises(ProblemError, match=f"^ProblemSpec.from_module: .*{said}") as caught:
            ProblemSpec.from_module(module, example, **given)
        assert "\n" not in str(caught.value)
    assert not (tmp_path / "own").exists()
