"""One of Ridgeline's own CUDA kernels, timed by Triton's `do_bench`, PyTorch's profiler and CUDA events: see agreement.py.

Prints a line `ready` when its imports are done, reads a line with a JSON object on stdin (library, reference,
signature, cache_bytes), and prints one as its last line. The library is one that Ridgeline wrote and built itself, so
it is loaded here as it is; a candidate never is.
"""

from __future__ import annotations

import ctypes
import json
import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch
from torch.autograd import DeviceType  # type: ignore[attr-defined]
from torch.profiler import ProfilerActivity, profile
from triton.testing import do_bench

WARM_UP_MS, REPEAT_MS = 100, 400
SHORT_WARM_UP_MS, SHORT_REPEAT_MS = 5, 15
BURSTS, REST_S = 3, 1.0
"""Bursts with rests: half a second of calls without a pause lowers an H200's clock under its power limit."""
BLOCKS, BLOCK_MS, PAUSE_S = 12, 15.0, 0.2
MOST_SETS, MOST_BYTES = 64, 16 << 30
NOT_THE_KERNELS = ("at::native", "Memcpy", "Memset")
"""Names of the launches that renew the inputs between blocks, in part."""
LARGEST_ERROR = 2e-2


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentSet:
    """One set of a kernel's tensors, and the arrays that its entry point takes."""

    inputs: list[torch.Tensor]
    outputs: list[torch.Tensor]
    pointers: Any
    keep: list[torch.Tensor]


def main() -> None:
    """Print each timer's median in milliseconds. Imports are done before the request is read."""
    print("ready", flush=True)
    request = json.loads(sys.stdin.readline())
    library = ctypes.CDLL(request["library"])
    namespace: dict[str, Any] = {"__name__": "reference"}
    exec(compile(request["reference"], "reference.py", "exec"), namespace)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    model = namespace["Model"](*namespace.get("get_init_inputs", list)()).eval().requires_grad_(False).cuda()
    signature = request["signature"]["args"]
    sets = [argument_set(signature, namespace, model)]
    enough = math.ceil(4 * request["cache_bytes"] / bytes_of(sets[0])) + 1
    affordable = MOST_BYTES // bytes_of(sets[0])
    sets += [argument_set(signature, namespace, model) for _ in range(min(enough, affordable, MOST_SETS) - 1)]
    call = caller(library, signature)
    call(sets[0])
    error = largest_error(model, sets[0])
    if error > LARGEST_ERROR:
        raise SystemExit(f"the kernel is wrong here: relative error {error:.3g}")
    bench_ms = float(do_bench(lambda: call(sets[0]), warmup=WARM_UP_MS, rep=REPEAT_MS, return_mode="median"))
    bursts = [_burst_ms(lambda: call(sets[0])) for _ in range(BURSTS)]
    blocks = Blocks(call=call, sets=sets, namespace=namespace, calls=max(1, min(math.ceil(BLOCK_MS / bench_ms), 512)))
    figures = {"do_bench_ms": bench_ms, "do_bench_short_ms": median(bursts), "sets": len(sets), "error": error}
    print(json.dumps({**figures, **profiled(blocks), "events_ms": events_ms(blocks)}))


def _burst_ms(call: Callable[[], None]) -> float:
    time.sleep(REST_S)
    return float(do_bench(call, warmup=SHORT_WARM_UP_MS, rep=SHORT_REPEAT_MS, return_mode="median"))


def argument_set(signature: list[dict[str, Any]], namespace: dict[str, Any], model: torch.nn.Module) -> ArgumentSet:
    """Return fresh inputs and outputs in the order of `run`'s arguments; parameters are the model's own."""
    inputs = drawn(namespace)
    stored = dict(model.named_parameters()) | dict(model.named_buffers())
    given, outputs, tensors = iter(inputs), [], []
    for arg in signature:
        if arg["kind"] != "tensor":
            continue
        if arg["role"] == "output":
            dtype = getattr(torch, arg["dtype"])
            outputs.append(torch.empty_strided(arg["shape"], arg["strides"], dtype=dtype, device="cuda"))
            tensors.append(outputs[-1])
        else:
            tensors.append(next(given) if arg["role"] == "input" else stored[arg["source"] or arg["name"]])
    pointers = (ctypes.c_void_p * len(tensors))(*(tensor.data_ptr() for tensor in tensors))
    return ArgumentSet(inputs=inputs, outputs=outputs, pointers=pointers, keep=tensors)


def drawn(namespace: dict[str, Any]) -> list[torch.Tensor]:
    """Return fresh inputs, drawn on the GPU."""
    with torch.device("cuda"):
        return [value.cuda() for value in namespace["get_inputs"]() if isinstance(value, torch.Tensor)]


def bytes_of(given: ArgumentSet) -> int:
    """Return what one set's inputs and outputs take."""
    return sum(tensor.numel() * tensor.element_size() for tensor in (*given.inputs, *given.outputs))


def caller(library: ctypes.CDLL, signature: list[dict[str, Any]]) -> Callable[[ArgumentSet], None]:
    """Return a function that calls the kernel on PyTorch's stream; RuntimeError for a CUDA error."""
    numbers = [float(arg["value"]) for arg in signature if arg["kind"] == "scalar"]
    scalars = (ctypes.c_double * max(len(numbers), 1))(*numbers)
    needed = 0
    if hasattr(library, "workspace_bytes"):
        library.workspace_bytes.restype = ctypes.c_size_t
        needed = library.workspace_bytes()
    workspace = torch.empty(max(needed, 1), dtype=torch.uint8, device="cuda")
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)

    def call(given: ArgumentSet) -> None:
        code = library.ridgeline_call(given.pointers, scalars, ctypes.c_void_p(workspace.data_ptr()), stream)
        if code != 0:
            raise RuntimeError(f"CUDA error {code}")

    return call


def largest_error(model: torch.nn.Module, given: ArgumentSet) -> float:
    """Return how far the kernel's outputs are from PyTorch's."""
    with torch.no_grad():
        expected = model(*given.inputs)
    expected = list(expected) if isinstance(expected, tuple | list) else [expected]
    pairs = zip(given.outputs, expected, strict=True)
    return max(float((o.float() - e.float()).norm() / (e.float() - e.float().mean()).norm()) for o, e in pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """The calls that are timed: blocks of so many, on rotating sets.

    As in Ridgeline's measurement, inputs are written anew before each block and a block lasts some 15 ms and follows a
    pause, so that the chip's power and clocks are those of its measurement.
    """

    call: Callable[[ArgumentSet], None]
    sets: list[ArgumentSet]
    namespace: dict[str, Any]
    calls: int

    def prepare(self) -> None:
        """Write every input anew, as the reference draws them (their values decide what power a product takes), and rest."""
        for given in self.sets:
            for tensor, fresh in zip(given.inputs, drawn(self.namespace), strict=True):
                tensor.copy_(fresh)
        torch.cuda.synchronize()
        time.sleep(PAUSE_S)

    def run(self, block: int) -> None:
        """Launch one block's calls."""
        for index in range(self.calls):
            self.call(self.sets[(block + index) % len(self.sets)])


def profiled(blocks: Blocks) -> dict[str, Any]:
    """Return the time of one call's kernels by the profiler, the median over blocks."""
    blocks.prepare()
    blocks.run(0)
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as recorded:
        for block in range(BLOCKS):
            blocks.prepare()
            blocks.run(block)
            torch.cuda.synchronize()
    events = [e for e in recorded.events() if e.device_type == DeviceType.CUDA and not is_renewal(e.name)]
    kernels, calls = sorted(events, key=lambda e: e.time_range.start), blocks.calls
    each = len(kernels) // (BLOCKS * calls)
    if each == 0 or each * BLOCKS * calls != len(kernels):
        raise SystemExit(f"{len(kernels)} kernels in {BLOCKS * calls} calls: the profiler lost some")
    times = [k.time_range.elapsed_us() / 1e3 for k in kernels]
    per_call = [sum(times[i : i + each]) for i in range(0, len(times), each)]
    means = [sum(per_call[i : i + calls]) / calls for i in range(0, len(per_call), calls)]
    return {"profiler_ms": median(means), "kernels_a_call": each, "calls_a_block": calls}


def events_ms(blocks: Blocks) -> float:
    """Return the time of one call by CUDA events around the same blocks: what it is when no profiler looks on."""
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
    times = []
    for block in range(BLOCKS):
        blocks.prepare()
        first.record()
        blocks.run(block)
        last.record()
        torch.cuda.synchronize()
        times.append(float(first.elapsed_time(last)) / blocks.calls)
    return median(times)


def is_renewal(name: str) -> bool:
    """Say whether an event is not the kernel's own."""
    return any(part in name for part in NOT_THE_KERNELS)


if __name__ == "__main__":
    main()
