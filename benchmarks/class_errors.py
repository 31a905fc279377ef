"""Errors of each class of arithmetic against float64, by PyTorch alone: a second opinion on the judge's gates.

Operands are rounded to the class and the operation is computed in float64; fp32 is PyTorch's own result. The error is
the judge's: |o - o64| / |o64 - mean(o64)|. Nothing of Ridgeline measures here. calibrate.py runs it as a process of its
own (`class_errors.py cpu|cuda`, prints JSON), which leaves the GPU free again.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

SIZE = {"cpu": 512, "cuda": 4096}
DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp8": torch.float8_e4m3fn}
DROPPED_BITS = 13  # of fp32's 23 bits of mantissa; tf32 keeps 10

Operation = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
OPERATIONS: dict[str, Operation] = {
    "matmul": torch.matmul,
    "softmax": lambda x, _: torch.softmax(x, dim=-1),
    "layer_norm": lambda x, _: functional.layer_norm(x, x.shape[-1:]),
    "gelu_chain": lambda x, y: functional.gelu(x + y) * y,
}


def class_errors(device: str) -> dict[str, Any]:
    """Return each class's smallest and largest error over the operations, and each operation's."""
    torch.manual_seed(0)
    size = SIZE[device]
    x, y = (torch.randn(size, size, device=device) for _ in range(2))
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    errors: dict[str, dict[str, float]] = {name: {} for name in ("fp32", "tf32", *DTYPES)}
    for name, operation in OPERATIONS.items():
        exact = operation(x.double(), y.double())
        errors["fp32"][name] = _error(operation(x, y), exact)
        errors["tf32"][name] = _error(operation(to_tf32(x).double(), to_tf32(y).double()), exact)
        for precision, dtype in DTYPES.items():
            rounded = operation(x.to(dtype).double(), y.to(dtype).double())
            errors[precision][name] = _error(rounded.to(dtype).double(), exact)
    ranges = {name: [min(found.values()), max(found.values())] for name, found in errors.items()}
    return {"range": ranges, "by_operation": errors, "size": size, "torch": torch.__version__}


def _error(output: torch.Tensor, exact: torch.Tensor) -> float:
    return float((output.double() - exact).norm() / (exact - exact.mean()).norm())


def to_tf32(tensor: torch.Tensor) -> torch.Tensor:
    bits = tensor.view(torch.int32)
    half = (1 << (DROPPED_BITS - 1)) - 1 + ((bits >> DROPPED_BITS) & 1)  # to nearest, ties to even
    return ((bits + half) & -(1 << DROPPED_BITS)).view(torch.float32)


if __name__ == "__main__":
    print(json.dumps(class_errors(sys.argv[1])))
