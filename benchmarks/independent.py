"""PyTorch's times for a problem's reference by Triton's own timer: a second opinion on Ridgeline's baselines.

    PYTHONPATH=src python benchmarks/independent.py PROBLEM.yaml    (needs a GPU; prints one JSON object)

Nothing of Ridgeline measures here: the reference is run in this process and timed by `triton.testing.do_bench`, which
clears the L2 before every call and takes the median of CUDA events. Each mode is timed in two ways, because a GPU that
is loaded without a pause may reach its power limit and lower its clock:

- `sustained`: half a second of calls without a pause, about what `do_bench` does by default;
- `short`: bursts of some 20 ms, each after a second of rest, which is nearer to the judge's blocks with their pauses.

On an H200 eager of a 4096 x 4096 matmul in tf32 takes 0.350 to 0.365 ms sustained, with the clock at 1680 to 1845 MHz
under the software power cap, and 0.333 ms in bursts at 1980 MHz.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from triton.testing import do_bench

from ridgeline.problems.spec import load_problem

WARM_UP_MS, REPEAT_MS = 100, 400
SHORT_WARM_UP_MS, SHORT_REPEAT_MS = 5, 15  # the clock has not fallen yet
REST_S = 1.0  # after which it is back where it was
BURSTS = 5
# A table of its own, not the judge's: a second opinion that shared it would share its mistakes.
BACKENDS = {
    "sdpa_math": SDPBackend.MATH,
    "sdpa_flash": SDPBackend.FLASH_ATTENTION,
    "sdpa_efficient": SDPBackend.EFFICIENT_ATTENTION,
    "sdpa_cudnn": SDPBackend.CUDNN_ATTENTION,
}


def main() -> None:
    """Print {"sustained": {mode: milliseconds}, "short": the same}; a mode that PyTorch refuses has its words."""
    source = load_problem(Path(sys.argv[1])).reference_source("cuda")
    namespace: dict[str, Any] = {"__name__": "reference"}
    exec(compile(source, "reference.py", "exec"), namespace)
    model = namespace["Model"](*namespace.get("get_init_inputs", list)()).eval().requires_grad_(False).cuda()
    with torch.device("cuda"):
        inputs = [value.cuda() if isinstance(value, torch.Tensor) else value for value in namespace["get_inputs"]()]
    found = list(times(model, inputs, uses_attention="scaled_dot_product" in source))
    sustained = {mode: sustained_ms for mode, sustained_ms, _ in found}
    print(json.dumps({"sustained": sustained, "short": {mode: short_ms for mode, _, short_ms in found}}))


def times(
    model: torch.nn.Module, inputs: list[Any], *, uses_attention: bool
) -> Iterator[tuple[str, float | str, float | str]]:
    """Yield each mode with its sustained and its short median."""
    with torch.no_grad():
        for tf32 in (False, True):
            torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
            suffix = "_tf32" if tf32 else ""
            yield f"eager{suffix}", *medians_ms(lambda: model(*inputs))
            torch.compiler.reset()
            compiled = torch.compile(model, dynamic=False)
            yield f"compile{suffix}", *medians_ms(partial(compiled, *inputs))
        # off, as the judge has it: the products of sdpa_math are in fp32, so TF32 would speed them up
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        for name, backend in BACKENDS.items() if uses_attention else ():
            with sdpa_kernel(backend):
                yield name, *medians_ms(lambda: model(*inputs))


def medians_ms(call: Callable[[], Any]) -> tuple[float | str, float | str]:
    """Return a call's sustained and short median times, or twice PyTorch's first line when it refuses the call."""
    try:
        sustained_ms = float(do_bench(call, warmup=WARM_UP_MS, rep=REPEAT_MS, return_mode="median"))
        return sustained_ms, median(burst_ms(call) for _ in range(BURSTS))
    except RuntimeError as refused:
        words = f"{type(refused).__name__}: {refused}".splitlines()[0]
        return words, words


def burst_ms(call: Callable[[], Any]) -> float:
    """Return the median time of a call within one short burst after a rest."""
    torch.cuda.synchronize()
    time.sleep(REST_S)
    return float(do_bench(call, warmup=SHORT_WARM_UP_MS, rep=SHORT_REPEAT_MS, return_mode="median"))


if __name__ == "__main__":
    main()
