"""Which plain values of a model count as the reference's: what cannot be compared does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from .finished_run import write_run
from .installing import python, shipped

pytestmark = pytest.mark.long

BOTH = """
import dataclasses, enum, functools, types
import torch
import torch.nn.functional as F
from scaled_kernel._attributes import _is_same, _difference

nan = float("nan")


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


@dataclasses.dataclass
class Settings:
    size: int
    act: object


class Odd:
    pass


def scaled(by):
    return lambda x: x * by


lstm = torch.nn.LSTM(3, 4).eval()
layer = torch.nn.TransformerEncoderLayer(8, 2).eval()
"""
SAME = [
    "(nan, nan)",
    "(torch.tensor([nan, 1.0]), torch.tensor([nan, 1.0]))",
    "(F.relu, F.relu)",
    "({'a': [1, nan]}, {'a': [1, nan]})",
    "({1, 2}, {2, 1})",
    "(Settings(1, F.gelu), Settings(1, F.gelu))",
    "(Colour.RED, Colour.RED)",
    "(torch.nn.ReLU, torch.nn.ReLU)",
    "(functools.partial(F.gelu, approximate='tanh'), functools.partial(F.gelu, approximate='tanh'))",
    "(scaled(2), scaled(2))",
    "(types.SimpleNamespace(a=1), types.SimpleNamespace(a=1))",
]
DIFFERENT = [
    "(1.0, nan)",
    "(nan, 1.0)",
    "(torch.tensor([nan]), torch.tensor([1.0]))",
    "(torch.ones(2), torch.ones(2).double())",
    "(F.relu, F.gelu)",
    "({'a': 1}, {'a': 2})",
    "({'a': 1}, {'b': 1})",
    "({1, 2}, {1, 3})",
    "(Settings(1, F.gelu), Settings(1, F.relu))",
    "(Colour.RED, Colour.BLUE)",
    "(torch.nn.ReLU, torch.nn.GELU)",
    "(functools.partial(F.gelu, approximate='tanh'), functools.partial(F.gelu, approximate='none'))",
    "(scaled(2), scaled(3))",
    "(Odd(), Odd())",
    "(None, 1)",
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shipped")
    return shipped(folder, write_run(folder / "run"))


def test_equal_values_are_the_references_and_others_are_not(site: Path) -> None:
    lines = [f"assert _is_same(*{pair}), {pair!r}" for pair in SAME]
    lines += [f"assert not _is_same(*{pair}), {pair!r}" for pair in DIFFERENT]
    done = python(site, "-c", "\n".join([BOTH, *lines]))
    assert done.returncode == 0, done.stderr


def test_modules_of_torch_are_equal_to_another_of_their_kind(site: Path) -> None:
    program = """
for make in (lambda: torch.nn.LSTM(3, 4), lambda: torch.nn.TransformerEncoderLayer(8, 2), lambda: torch.nn.Conv2d(1, 2, 3)):
    certified, own = make().eval().to("meta"), make().eval()
    assert _difference(certified, own, "") == "", make
layer.activation = F.gelu
assert _difference(torch.nn.TransformerEncoderLayer(8, 2).eval().to("meta"), layer, "") != ""
"""
    done = python(site, "-c", BOTH + program)
    assert done.returncode == 0, done.stderr
