"""A run's winner as a module on a GPU. The kernel is written here, and so is trusted: it runs in this process."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from ridgeline.graph.library.winner import load
from ridgeline.tools.errors import InputError
from ridgeline.tools.records.problem import Device
from tests.graph.library.test_winner import COLS, ROWS, write_run

pytestmark = [pytest.mark.gpu, pytest.mark.any_tier]

KERNEL = """
__global__ void twice(const float* x, float* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < X_NUMEL) out[i] = 2 * x[i];
}

void run(const float* x, float* out, void* workspace, cudaStream_t stream) {
  twice<<<(X_NUMEL + 127) / 128, 128, 0, stream>>>(x, out);
}
"""


def test_a_winner_runs_on_the_current_stream_of_its_gpu_and_takes_no_tensor_of_the_cpu(
    gpu: Device, tmp_path: Path
) -> None:
    kernel = load(write_run(tmp_path / "run", source=KERNEL, device_name="cuda"))
    x = torch.randn(ROWS, COLS, device="cuda")
    assert torch.equal(kernel(x), 2 * x)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        out = kernel(x)
    stream.synchronize()
    assert torch.equal(out, 2 * x)
    with pytest.raises(InputError, match=f"on cuda:{gpu.index}, got float32 .* on cpu"):
        kernel(x.cpu())
