"""A CUDA kernel that is shipped, installed and used on a GPU. The kernel is written here, so that it is loaded as it is."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ridgeline.tools.records.problem import ArgSpec, Device, Signature
from ridgeline.tools.records.vocabulary import Role
from tests.graph.shipping.finished_run import Finished, write_run
from tests.graph.shipping.installing import python, shipped_site

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(900)]

REFERENCE = """
import torch


class Model(torch.nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(cols))

    def forward(self, x):
        return torch.relu(x) * self.scale


def get_inputs():
    return [torch.randn(4096, 1024)]


def get_init_inputs():
    return [1024]
"""
KERNEL = """
__global__ void scaled(const float* x, const float* scale, float* out) {
  const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < X_NUMEL) out[i] = fmaxf(x[i], 0.0f) * scale[i % X_SHAPE_1];
}

void run(const float* x, const float* scale, float* out, void* workspace, cudaStream_t stream) {
  scaled<<<(X_NUMEL + 255) / 256, 256, 0, stream>>>(x, scale, out);
}

size_t workspace_bytes() { return 4096; }
"""
USE = """
import json, warnings
import torch
from scaled_kernel import Kernel, forward
from scaled_kernel.reference import Model, get_init_inputs, get_inputs
warnings.filterwarnings("error", message="scaled_kernel: ")  # the package's own; torch deprecates parts of itself
model = Model(*get_init_inputs()).cuda().eval()
with torch.no_grad():
    model.scale.normal_()
    x = get_inputs()[0].cuda()
    kernel = Kernel(model)
    found = {"eager": torch.equal(kernel(x), model(x))}
    with torch.cuda.stream(torch.cuda.Stream()):
        found["stream"] = torch.equal(kernel(x), model(x))
    found["compiled"] = torch.allclose(torch.compile(kernel, fullgraph=True)(x), model(x))
    found["opcheck"] = torch.library.opcheck(forward.default, (x, model.scale.detach()))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = kernel(x)
    x.normal_()
    graph.replay()
    found["graph"] = torch.equal(out, model(x))
    found["after"] = torch.equal(kernel(x), model(x))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Kernel(model.cpu())(x.cpu())
    found["on_cpu"] = [str(each.message) for each in caught]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def site(gpu: Device, nvcc: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    x = ArgSpec(name="x", role=Role.INPUT, shape=(4096, 1024), strides=(1024, 1), source="x")
    scale = ArgSpec(name="scale", role=Role.PARAMETER, shape=(1024,), strides=(1,), source="scale")
    signature = Signature(args=(x, scale, replace(x, name="out", role=Role.OUTPUT, source="out")))
    folder = tmp_path_factory.mktemp("shipped")
    finished = Finished(source=KERNEL, reference=REFERENCE, signature=signature, device=gpu)
    return shipped_site(folder, write_run(folder / "run", finished))


def test_a_cuda_kernel_is_shipped_and_takes_the_references_place(site: Path) -> None:
    done = python(site, "-c", USE)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert (found["eager"], found["stream"], found["compiled"]) == (True, True, True)
    assert (found["graph"], found["after"]) == (True, True)
    assert set(found["opcheck"].values()) == {"SUCCESS"}
    assert ["x is not on cuda" in words for words in found["on_cpu"]] == [True]


def test_its_own_check_and_the_run_folders_script_pass(site: Path) -> None:
    checked = python(site, "-m", "scaled_kernel")
    assert checked.returncode == 0, checked.stderr + checked.stdout
    used = python(site, str(site.parent / "run" / "use_kernel.py"))
    assert used.returncode == 0, used.stderr + used.stdout
