"""What a verification says of the tensor that a kernel ran out of."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.tools.measure.bench import Bench

from ridgeline.tools.records.vocabulary import Status

pytestmark = [pytest.mark.long, pytest.mark.sandboxed, pytest.mark.usefixtures("warm_judge")]
FAULTY_REFERENCE = """import torch
from torch import nn
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(64))
    def forward(self, x, y):
        return (x + y) * self.gain
def get_inputs():
    return [torch.randn(32, 64), torch.randn(1, 64)]
def get_init_inputs():
    return []
"""
FAULTS = {
    "w(x)[5] = 1;": "it wrote to `x`, which is read-only",
    "w(x)[-2] = 1;": "writing 8 bytes before `x`",
    "w(x)[X_NUMEL] = 1;": "writing right past the end of `x`",
    "w(x)[X_NUMEL + 1024] = 1;": "it wrote to `y`, which is read-only",
    "w(y)[1] = 1;": "it wrote to `y`, which is read-only",
    "w(y)[Y_NUMEL] = 1;": "writing right past the end of `y`",
    "w(y)[1024] = 1;": f"writing {4096 - 256:,} bytes past the end of `y`",
    "w(gain)[63] = 1;": "it wrote to `gain`, which is read-only",
    "w(gain)[64] = 1;": "writing right past the end of `gain`",
    "w(gain)[1024] = 1;": f"writing {4096 - 256:,} bytes past the end of `gain`",
    "w(gain)[-1] = 1;": "writing 4 bytes before `gain`",
    "w(out)[OUT_NUMEL] = 1;": "nominal_0: writing right past the end of `out`: 4 bytes there changed",
    "w(out)[OUT_NUMEL + 1023] = 1;": "nominal_0: writing 4,092 bytes past the end of `out`: ",
    "for (int64_t i = OUT_NUMEL;; ++i) w(out)[i] = 1;": "past the end of `out`",
    "for (int64_t i = -1;; --i) w(out)[i] = 1;": "bytes before `out`",
    "for (int64_t i = X_NUMEL;; ++i) out[0] += w(x)[i];": "past the end of `y`",
    "float* none = reinterpret_cast<float*>(workspace); *none = 1;": "a null pointer",
}
"""What each statement does wrong, and how it has to be told; every tensor but y and gain fills its pages."""


@pytest.fixture(scope="module")
def faulty(folder: Path) -> Iterator[Bench]:
    bench = Bench(folder, FAULTY_REFERENCE)
    yield bench
    bench.evaluator.close()


@pytest.mark.parametrize("statement", FAULTS)
def test_verify_names_the_tensor_that_a_kernel_ran_out_of(faulty: Bench, statement: str) -> None:
    source = (
        "static volatile float* w(const float* p) { return const_cast<float*>(p); }\n"
        "void run(const float* x, const float* y, const float* gain, float* out, void* workspace) {\n"
        f"    {statement}\n}}\n"
    )
    verdict = faulty.verify(source)
    assert verdict.status is Status.RUNTIME_ERROR
    assert FAULTS[statement] in verdict.reason
