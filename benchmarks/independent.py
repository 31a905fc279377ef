"""PyTorch's times for a problem's reference by Triton's own timer: a second opinion on Ridgeline's baselines.

    PYTHONPATH=src python benchmarks/independent.py PROBLEM.yaml    (needs a GPU; prints one JSON object)

Nothing of Ridgeline measures here: the reference is run in this process and timed by `triton.testing.do_bench`, which
clears the L2 before every call and takes the median of CUDA events.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from triton.testing import do_bench

from ridgeline.problems.spec import load_problem

WARM_UP_MS, REPEAT_MS = 100, 400
# A table of its own, not the judge's: a second opinion that shared it would share its mistakes.
BACKENDS = {
    "sdpa_math": SDPBackend.MATH,
    "sdpa_flash": SDPBackend.FLASH_ATTENTION,
    "sdpa_efficient": SDPBackend.EFFICIENT_ATTENTION,
    "sdpa_cudnn": SDPBackend.CUDNN_ATTENTION,
}


def main() -> None:
    """Print {mode: milliseconds, or what PyTorch says where it refuses}."""
    source = load_problem(Path(sys.argv[1])).reference_source("cuda")
    namespace: dict[str, Any] = {"__name__": "reference"}
    exec(compile(source, "reference.py", "exec"), namespace)
    model = namespace["Model"](*namespace.get("get_init_inputs", list)()).eval().requires_grad_(False).cuda()
    with torch.device("cuda"):
        inputs = [value.cuda() if isinstance(value, torch.Tensor) else value for value in namespace["get_inputs"]()]
    print(json.dumps(dict(times(model, inputs, uses_attention="scaled_dot_product" in source))))


def times(model: torch.nn.Module, inputs: list[Any], *, uses_attention: bool) -> Iterator[tuple[str, float | str]]:
    """Yield each mode with its median."""
    with torch.no_grad():
        for tf32 in (False, True):
            torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
            suffix = "_tf32" if tf32 else ""
            yield f"eager{suffix}", median_ms(lambda: model(*inputs))
            torch.compiler.reset()
            compiled = torch.compile(model, dynamic=False)
            yield f"compile{suffix}", median_ms(lambda compiled=compiled: compiled(*inputs))
        for name, backend in BACKENDS.items() if uses_attention else ():
            with sdpa_kernel(backend):
                yield name, median_ms(lambda: model(*inputs))


def median_ms(call: Callable[[], Any]) -> float | str:
    """Return the median time of a call, or the first line of PyTorch's message when it refuses it."""
    try:
        return float(do_bench(call, warmup=WARM_UP_MS, rep=REPEAT_MS, return_mode="median"))
    except RuntimeError as refused:
        return f"{type(refused).__name__}: {refused}".splitlines()[0]


if __name__ == "__main__":
    main()
