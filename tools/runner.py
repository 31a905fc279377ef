"""The untrusted process of one `torch` candidate: `python -m ridgeline.tools.runner`, inside the sandbox.

It imports torch, then reads the set-up from descriptor 3, loads the extension, and calls `forward` when told to. It
shares its address space with the candidate, so the parent believes none of its words: outputs are compared by the judge,
the clock is the parent's. What only this process can see of correctness (types, shared storage, global state) it reports
as `failed CODE …`. The wire is that of the native host: docs/runner-protocol.md.
"""

from __future__ import annotations

import importlib.util
import mmap
import os
import socket
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import torch

MODULE = "ridgeline_candidate"
_SOCKET = 3
_LONGEST_MESSAGE = 300
_CHANGED_EARLIER = "a call changed the tensor that an earlier call had returned"

Forward = Callable[..., Any]
Outputs = tuple[torch.Tensor, ...]


class Failed(Exception):
    """What this process saw go wrong: a code of the protocol and a sentence."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(slots=True, kw_only=True)
class Setup:
    """The parent's set-up lines, with the regions mapped."""

    library: str = ""
    sets: int = 1
    regions: list[tuple[mmap.mmap, bool]] = field(default_factory=list)  # mapping, read-only
    arguments: list[list[Any]] = field(default_factory=list)  # of `forward`: one value for each set
    outputs: list[list[torch.Tensor]] = field(default_factory=list)  # the judge's memory: one view for each set
    parameters: list[int] = field(default_factory=list)  # which arguments are parameters

    def arguments_of(self, set_index: int) -> tuple[Any, ...]:
        """Return what `forward` is called with on one set."""
        return tuple(values[set_index] for values in self.arguments)


def main() -> None:
    """Serve one candidate until the parent says quit or closes the socket."""
    warnings.simplefilter("ignore")  # torch.frombuffer warns of read-only memory, which is the point of it
    wire = socket.socket(fileno=_SOCKET)
    try:
        serve(wire)
    except Failed as failure:
        _say(wire, f"failed {failure.code} {' '.join(str(failure).split())[:_LONGEST_MESSAGE]}")
        os._exit(1)
    os._exit(0)  # no destructor of the candidate has a say


def serve(wire: socket.socket) -> None:
    """Read the set-up, load the candidate and answer requests.

    Raises:
        Failed: the candidate did something that ends its run.
    """
    lines = _lines(wire)
    setup = read_setup(lines)
    _say(wire, "mapped")
    torch.ones(1 << 20).clone()  # starts torch's threads: collecting an output would, after they have been counted
    state = GlobalState()
    module = _load(setup)
    state.check("loading the library")
    module.watch(_SOCKET, [(_address(region), len(region), read_only) for region, read_only in setup.regions])
    caller = Caller(setup, module.forward, state)
    _say(wire, f"ready 0 {torch.get_num_threads()}")
    with torch.no_grad():
        for line in lines:
            if line == "quit":
                return
            verb, nonce, *words = line.split()
            elapsed_ns = caller.answer(verb, words)
            _say(wire, f"done {nonce} {elapsed_ns}")


class Caller:
    """Calls `forward` and looks at what it returns."""

    def __init__(self, setup: Setup, forward: Forward, state: GlobalState) -> None:
        self._setup = setup
        self._forward = forward
        self._state = state
        self._clock = time.perf_counter_ns  # bound before the candidate could patch it
        self._arguments = [setup.arguments_of(i) for i in range(setup.sets)]
        self._kept: list[Any] = [None] * setup.sets  # by set: what the last call on it returned
        self._earlier: tuple[Outputs, Outputs] | None = None  # what the last run returned, and a copy of it

    def answer(self, verb: str, words: Sequence[str]) -> int:
        """Carry out one request and return its nanoseconds."""
        if verb == "run":
            return self._run(int(words[0]))
        if verb == "loop":
            return self._loop(int(words[0]), int(words[1]))
        if verb == "collect":
            self._write(int(words[0]), self._checked(self._kept[int(words[0])]))
            return 0
        raise Failed("protocol", f"unknown request {verb}")

    def _run(self, set_index: int) -> int:
        """Call once, with every check: for verification, not for timing."""
        start = self._clock()
        result = self._call(self._arguments[set_index])
        elapsed_ns = self._clock() - start
        outputs = self._checked(result)
        if self._earlier is None:
            self._check_weights(set_index, outputs)
        self._check_earlier(outputs)
        self._state.check("a call")
        self._write(set_index, outputs)
        return elapsed_ns

    def _loop(self, first: int, calls: int) -> int:
        """Call over rotating sets; each result is held until its set comes again, as the judge holds eager's.

        Which of them will be looked at is not known here, nor is it to the candidate.
        """
        forward, arguments, sets, kept = self._forward, self._arguments, self._setup.sets, self._kept
        index = first % sets
        start = self._clock()
        try:
            for _ in range(calls):
                kept[index] = forward(*arguments[index])
                index = index + 1 if index + 1 < sets else 0
        except Exception as error:
            raise _raised(error) from error
        return self._clock() - start

    def _call(self, arguments: tuple[Any, ...]) -> Any:
        try:
            return self._forward(*arguments)
        except Exception as error:  # whatever a candidate raises is its result
            raise _raised(error) from error

    def _write(self, set_index: int, outputs: Outputs) -> None:
        for views, output in zip(self._setup.outputs, outputs, strict=True):
            views[set_index].copy_(output)

    def _checked(self, result: Any) -> Outputs:
        """Return the outputs when they are what the reference returns: plain tensors of its shapes, types and strides."""
        outputs = (
            (result,) if type(result) is torch.Tensor else tuple(result) if type(result) in (tuple, list) else None
        )
        if outputs is None or any(type(output) is not torch.Tensor for output in outputs):
            raise Failed("not_a_tensor", f"forward returned {type(result).__name__}, not torch.Tensor")
        if len(outputs) != len(self._setup.outputs):
            raise Failed("shape_mismatch", f"{len(outputs)} outputs, the reference has {len(self._setup.outputs)}")
        for views, output in zip(self._setup.outputs, outputs, strict=True):
            _check_form(output, views[0])
            self._check_storage(output)
        return outputs

    def _check_storage(self, output: torch.Tensor) -> None:
        start = output.untyped_storage().data_ptr()
        end = start + output.untyped_storage().nbytes()
        for region, _ in self._setup.regions:
            base = _address(region)
            if start < base + len(region) and base < end:
                raise Failed("output_aliases_input", "the output is a view of an input or a parameter")

    def _check_earlier(self, outputs: Outputs) -> None:
        """Compare what the last call returned with a copy made then, and hold on to what this one returned."""
        if self._earlier is not None:
            returned, copies = self._earlier
            if not _equal(returned, copies):
                raise Failed("stale_output", _CHANGED_EARLIER)
            addresses = {tensor.untyped_storage().data_ptr() for tensor in returned if tensor.numel()}
            if any(output.untyped_storage().data_ptr() in addresses for output in outputs if output.numel()):
                raise Failed("stale_output", "two calls returned the same memory")
        self._earlier = (outputs, tuple(output.clone() for output in outputs))

    def _check_weights(self, set_index: int, outputs: Outputs) -> None:
        """Call once with other weights, as a second instance of the module would: the result has to differ."""
        arguments = list(self._arguments[set_index])
        floating = [i for i in self._setup.parameters if arguments[i].is_floating_point() and arguments[i].numel()]
        if not floating:
            return
        for i in floating:
            arguments[i] = torch.empty_strided(
                arguments[i].shape, arguments[i].stride(), dtype=arguments[i].dtype
            ).copy_(arguments[i] * -0.75 + 0.5)
        copies = tuple(output.clone() for output in outputs)
        others = self._checked(self._call(tuple(arguments)))
        if not _equal(outputs, copies):
            raise Failed("stale_output", _CHANGED_EARLIER)
        if _equal(others, copies):
            raise Failed("weights_ignored", "other weights give the same output")


class GlobalState:
    """What a candidate may not change: torch's settings, and the functions of torch and of the time module."""

    def __init__(self) -> None:
        self._settings = _settings()
        self._functions = {module: dict(vars(module)) for module in (torch, torch.Tensor, torch.nn.functional, time)}

    def check(self, during: str) -> None:
        """Raise Failed when something differs from the start."""
        for name, value in _settings().items():
            if self._settings[name] != value:
                raise Failed("state_changed", f"{during} changed torch's {name} from {self._settings[name]} to {value}")
        for module, functions in self._functions.items():
            now = vars(module)
            for name, function in functions.items():
                if callable(function) and now.get(name) is not function:
                    raise Failed("state_changed", f"{during} replaced {module.__name__}.{name}")


def read_setup(lines: Iterator[str]) -> Setup:
    """Return the set-up that the parent sends, its regions mapped."""
    setup = Setup()
    for line in lines:
        word, *rest = line.split(" ")
        if word == "end":
            return setup
        if word == "library":
            setup.library = " ".join(rest)
        elif word == "sets":
            setup.sets = int(rest[0])
        elif word == "region":
            setup.regions.append(_map(int(rest[0]), int(rest[1]), read_only=rest[2] == "ro"))
        elif word == "pointer":
            _add_pointer(setup, rest)
        elif word == "scalar":
            setup.arguments.append([_scalar(rest[0], rest[1])] * setup.sets)
    raise Failed("protocol", "the set-up has no end")


def _map(descriptor: int, size_bytes: int, *, read_only: bool) -> tuple[mmap.mmap, bool]:
    protection = mmap.PROT_READ if read_only else mmap.PROT_READ | mmap.PROT_WRITE
    mapped = mmap.mmap(descriptor, size_bytes, flags=mmap.MAP_SHARED, prot=protection)
    os.close(descriptor)
    return mapped, read_only


def _add_pointer(setup: Setup, words: Sequence[str]) -> None:
    role, dtype = words[0], words[4]
    region, offset, set_stride, ndim, *numbers = (int(word) for word in (*words[1:4], *words[5:]))
    shape, strides = numbers[:ndim], numbers[ndim:]
    memory, _ = setup.regions[region]
    views = [_view(memory, offset + i * set_stride, dtype, shape, strides) for i in range(setup.sets)]
    if role == "output":
        setup.outputs.append(views)
        return
    if role == "parameter":
        setup.parameters.append(len(setup.arguments))
    setup.arguments.append(views)


def _view(memory: mmap.mmap, offset: int, dtype: str, shape: Sequence[int], strides: Sequence[int]) -> torch.Tensor:
    kind = getattr(torch, dtype)
    if 0 in shape:
        return torch.empty(tuple(shape), dtype=kind)
    count = 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    return torch.frombuffer(memory, dtype=kind, count=count, offset=offset).as_strided(tuple(shape), tuple(strides))


def _scalar(dtype: str, text: str) -> float | int | bool:
    value = float(text)
    return bool(value) if dtype == "bool" else int(value) if dtype == "int64" else value


def _address(region: mmap.mmap) -> int:
    return torch.frombuffer(region, dtype=torch.uint8, count=1).data_ptr()


def _load(setup: Setup) -> ModuleType:
    spec = importlib.util.spec_from_file_location(MODULE, setup.library)
    if spec is None or spec.loader is None:
        raise Failed("load_failed", f"{setup.library} is no extension module")
    try:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    except ImportError as error:
        raise Failed("load_failed", str(error)) from error
    return module


def _check_form(output: torch.Tensor, like: torch.Tensor) -> None:
    if tuple(output.shape) != tuple(like.shape):
        raise Failed("shape_mismatch", f"the output has shape {tuple(output.shape)}, not {tuple(like.shape)}")
    if output.dtype != like.dtype:
        raise Failed("dtype_mismatch", f"the output is {output.dtype}, not {like.dtype}")
    if output.layout != torch.strided or output.device != like.device or output.is_conj() or output.is_neg():
        raise Failed("not_a_tensor", f"the output is no plain tensor: {output.layout} on {output.device}")
    sizes = [i for i, size in enumerate(like.shape) if size > 1]
    if like.numel() and any(output.stride(i) != like.stride(i) for i in sizes):
        raise Failed("shape_mismatch", f"the output has strides {output.stride()}, the reference's {like.stride()}")


def _equal(first: Outputs, second: Outputs) -> bool:
    """Compare bytes, so that NaN equals itself."""
    return all(
        torch.equal(a.contiguous().view(torch.uint8), b.contiguous().view(torch.uint8))
        if a.dim()
        else _equal_scalar(a, b)
        for a, b in zip(first, second, strict=True)
    )


def _equal_scalar(first: torch.Tensor, second: torch.Tensor) -> bool:
    return _equal((first.reshape(1),), (second.reshape(1),))


def _settings() -> dict[str, object]:
    return {
        "default dtype": torch.get_default_dtype(),
        "deterministic mode": torch.are_deterministic_algorithms_enabled(),
        "number of threads": torch.get_num_threads(),
        "matmul precision": torch.get_float32_matmul_precision(),
        "cuDNN TF32": torch.backends.cudnn.allow_tf32,
        "oneDNN": torch.backends.mkldnn.enabled,
        "autocast on the CPU": torch.is_autocast_enabled("cpu"),
        "autocast on CUDA": torch.is_autocast_enabled("cuda"),
        "inference mode": torch.is_inference_mode_enabled(),
    }


def _raised(error: Exception) -> Failed:
    return Failed("crashed", f"the call of forward raised {type(error).__name__}: {error}")


def _lines(wire: socket.socket) -> Iterator[str]:
    pending = b""
    while True:
        line, separator, rest = pending.partition(b"\n")
        if separator:
            pending = rest
            yield line.decode()
            continue
        data = wire.recv(1 << 16)
        if not data:
            os._exit(0)  # the parent is gone
        pending += data


def _say(wire: socket.socket, line: str) -> None:
    wire.sendall(line.encode() + b"\n")


if __name__ == "__main__":
    main()
