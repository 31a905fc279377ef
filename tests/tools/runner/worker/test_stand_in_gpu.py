"""A builder has no GPU and describes the one where a module will run."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from ridgeline.tools.machine.python_env import python_command, python_path
from ridgeline.tools.records.builder_spec import BuilderSpec, GpuFacts
from ridgeline.tools.runner.worker.stand_in_gpu import described_gpu
from ridgeline.tools.sandbox.python import package_paths
from ridgeline.tools.sandbox.sandbox import Confined, Limits, Sandbox, claim_workdir

pytestmark = pytest.mark.sandboxed

H200 = GpuFacts(name="NVIDIA H200", arch="sm_90a", cores=132, memory_bytes=150_109_880_320)


def test_torch_describes_the_gpu_and_forgets_it() -> None:
    before = torch.cuda.is_available()
    with described_gpu(H200):
        assert torch.cuda.is_available()
        assert (torch.cuda.device_count(), torch.cuda.current_device()) == (1, 0)
        assert torch.cuda.get_device_capability(0) == (9, 0)
        assert torch.cuda.get_device_name() == "NVIDIA H200"
        assert torch.cuda.get_device_properties("cuda").multi_processor_count == 132
        assert torch.cuda.is_bf16_supported()
    assert torch.cuda.is_available() is before


@pytest.mark.parametrize(("arch", "capability"), [("sm_75", (7, 5)), ("sm_100a", (10, 0)), ("sm_120", (12, 0))])
def test_a_capability_is_the_architectures_number(arch: str, capability: tuple[int, int]) -> None:
    with described_gpu(replace(H200, arch=arch)):
        assert torch.cuda.get_device_capability() == capability


ASKS = """
import torch
if torch.cuda.is_available():
    raise ValueError(f"would build for {torch.cuda.get_device_capability()}")
class ModelNew(torch.nn.Module): ...
"""
USES = """
import torch
if torch.cuda.is_available():
    torch.cuda.synchronize()
    raise ValueError("there is no GPU here")
class ModelNew(torch.nn.Module): ...
"""


@pytest.mark.first_case
@pytest.mark.parametrize(
    ("source", "told"),
    [
        (ASKS, "candidate.py:4: error: ValueError: would build for (9, 0)"),
        (USES, ""),
    ],
)
def test_a_file_finds_the_gpu_described_until_it_uses_it(
    sandbox: Sandbox, tmp_path: Path, source: str, told: str
) -> None:
    tmp_path.chmod(0o755)
    folder = tmp_path / "build"
    folder.mkdir()
    (folder / "candidate.py").write_text(source)
    (folder / "spec.json").write_text(json.dumps(BuilderSpec(init="[]", gpu=H200).to_json()))
    confined = Confined(
        command=python_command("runner.worker.build_main", "candidate.py", "spec.json", "out.zip"),
        workdir=claim_workdir(folder),
        readable=package_paths(),
        env={"PYTHONPATH": python_path(), "OMP_NUM_THREADS": "1"},
        limits=Limits(wall_s=120.0, memory_bytes=4 << 30),
        allow_processes=True,
    )
    ended, said = sandbox.run(confined)
    assert ended.is_success is (told == ""), said
    assert told in said
    assert (folder / "out.zip").exists() is (told == "")
