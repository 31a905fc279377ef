"""The sources of the cheats that have a file of their own: each is in the table, and nvcc builds it; needs no GPU."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ridgeline.tools.build.flags import base_flags, link_flags, requested_flags
from ridgeline.tools.build.interfaces import problem_header
from ridgeline.tools.records.problem import ArgSpec, Signature
from ridgeline.tools.records.vocabulary import DeviceKind, Role

from ..cheats.catalogue import cases  # noqa: TID252  tests are no installed package
from ..cheats.trick import Form, Stage  # noqa: TID252
from ..one_unit import Part, one_unit, units  # noqa: TID252  as above
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


def _build(nvcc: str, folder: Path, signature: Signature, source: str) -> subprocess.CompletedProcess[str]:
    (folder / "problem.h").write_text(problem_header(signature, DeviceKind.CUDA))
    (folder / "kernel.cu").write_text(source)
    flags = (*base_flags(HOPPER), *link_flags(DeviceKind.CUDA), "-Werror=all-warnings")
    command = [nvcc, *flags, "-I.", "-include", "problem.h", "kernel.cu", "-o", "kernel.so"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_nvcc_refuses_what_it_must(nvcc: str, tmp_path: Path, name: str) -> None:
    assert _build(nvcc, tmp_path, _signature(name), waves.source_of(name)).returncode != 0


@pytest.mark.thorough
def test_nvcc_builds_all_others_without_a_warning(nvcc: str, tmp_path: Path) -> None:
    """Those that ask for the same headers in one unit; a GPU's tests build each by itself."""
    built = set(waves.names()) - REFUSED
    parts = [Part(name=name, signature=_signature(name), source=waves.source_of(name)) for name in sorted(built)]
    for unit in units(parts, DeviceKind.CUDA):
        assert not requested_flags(unit[0].source)
        done = _build(nvcc, tmp_path, unit[0].signature, one_unit(unit, DeviceKind.CUDA))
        assert done.returncode == 0, done.stderr
