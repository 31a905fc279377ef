"""The sources of the cheats that have a file of their own: each is in the table, and nvcc builds it; needs no GPU."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ridgeline.tools.build.flags import base_flags, link_flags
from ridgeline.tools.build.interfaces import problem_header
from ridgeline.tools.records.problem import ArgSpec, Signature
from ridgeline.tools.records.vocabulary import DeviceKind, Role

from ..cheats.catalogue import cases  # noqa: TID252  tests are no installed package
from ..cheats.trick import Form, Stage  # noqa: TID252
from . import waves
from .bench import HOPPER

pytestmark = pytest.mark.long

REFUSED = {case.name for case in cases(Form.CUDA) if case.end.stage is Stage.BUILD}


def _signature(name: str) -> Signature:
    rows, cols = waves.shape_of(name)
    x = ArgSpec(name="x", role=Role.INPUT, shape=(rows, cols), strides=(cols, 1))
    bias = ArgSpec(name="bias", role=Role.PARAMETER, shape=(cols,), strides=(1,))
    out = ArgSpec(name="out", role=Role.OUTPUT, shape=(rows, cols), strides=(cols, 1))
    return Signature(args=(x, bias, out))


def test_every_source_of_its_own_is_in_the_table() -> None:
    in_table = {case.name for case in cases(Form.CUDA) if case.name.partition("_")[0] in waves.SHAPES}
    assert in_table == set(waves.names())


@pytest.mark.parametrize("name", waves.names())
def test_nvcc_builds_all_but_those_that_it_must_refuse(nvcc: str, tmp_path: Path, name: str) -> None:
    (tmp_path / "problem.h").write_text(problem_header(_signature(name), DeviceKind.CUDA))
    (tmp_path / "kernel.cu").write_text(waves.source_of(name))
    flags = (*base_flags(HOPPER), *link_flags(DeviceKind.CUDA), "-Werror=all-warnings")
    command = [nvcc, *flags, "-I.", "-include", "problem.h", "kernel.cu", "-o", "kernel.so"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode != 0) == (name in REFUSED), done.stderr
