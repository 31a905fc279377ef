"""Calls of the library by its C interface: pointers, scalars, scratch memory and, on a GPU, the stream."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from ._denormals import kept_denormals

ALIGNMENT_BYTES = 64


class KernelFailed(RuntimeError):
    """A call left an error of CUDA behind."""


class Library:
    """A loaded kernel. Its calls take turns: it may keep memory of its own."""

    def __init__(self, path: Path, args: Sequence[Mapping[str, Any]], device: torch.device) -> None:
        """`args` are those that the kernel is passed, each with its role, an output with its shape, strides and dtype.

        `device` is the first one that the kernel is called on.
        """
        with kept_denormals():
            self._library = ctypes.CDLL(str(path))
        self._call = self._library.ridgeline_call
        self._call.argtypes = [ctypes.c_void_p] * 4
        self._call.restype = ctypes.c_int
        self._bytes = 0
        if hasattr(self._library, "workspace_bytes"):
            self._library.workspace_bytes.restype = ctypes.c_size_t
            self._bytes = int(self._library.workspace_bytes())
        outputs = (arg for arg in args if arg["role"] == "output")
        self._outputs = [(tuple(out["shape"]), tuple(out["strides"]), getattr(torch, out["dtype"])) for out in outputs]
        self._workspaces: dict[torch.device, torch.Tensor] = {}
        self._streams: dict[torch.device, Any] = {}
        self._lock = threading.Lock()
        self._device = device
        if device.type == "cuda":  # now: what is allocated while a graph is captured is of the graph's memory
            self._device = torch.device("cuda", torch.cuda.current_device()) if device.index is None else device
            self._workspace(self._device)

    def call(self, tensors: Sequence[torch.Tensor], scalars: Sequence[float]) -> list[torch.Tensor]:
        """Return the outputs in new memory; `tensors` have the certified types, shapes and strides.

        Raises:
            KernelFailed: the kernel left an error of CUDA behind.
        """
        device = tensors[0].device if tensors else self._device
        aligned = [_aligned(tensor) for tensor in tensors]
        outputs = [torch.empty_strided(n, s, dtype=dtype, device=device) for n, s, dtype in self._outputs]
        addresses = [tensor.data_ptr() for tensor in (*aligned, *outputs)]
        pointers = (ctypes.c_void_p * max(1, len(addresses)))(*addresses)
        numbers = (ctypes.c_double * max(1, len(scalars)))(*map(float, scalars))
        with self._lock:
            if device.type == "cuda":
                with torch.cuda.device(device):
                    self._run(pointers, numbers, device, self._stream(device))
            else:
                self._run(pointers, numbers, device, None)
        return outputs

    def _run(self, pointers: Any, numbers: Any, device: torch.device, stream: int | None) -> None:
        error = self._call(pointers, numbers, self._workspace(device), stream)
        if error:
            self._library.ridgeline_error.restype = ctypes.c_char_p
            raise KernelFailed(f"the kernel left a CUDA error: {self._library.ridgeline_error(error).decode()}")

    def _workspace(self, device: torch.device) -> int | None:
        if not self._bytes:
            return None
        if device not in self._workspaces:
            self._workspaces[device] = torch.empty(self._bytes, dtype=torch.uint8, device=device)
        return self._workspaces[device].data_ptr()

    def _stream(self, device: torch.device) -> int:
        """Return the current stream, in order after the one of the last call: a kernel has one memory for both.

        While a graph is captured it is in no order: a captured stream may wait for no work outside of its graph.
        """
        stream = torch.cuda.current_stream(device)
        if torch.cuda.is_current_stream_capturing():
            return int(stream.cuda_stream)
        last = self._streams.get(device)
        if last is not None and last != stream:
            stream.wait_stream(last)
        self._streams[device] = stream
        return int(stream.cuda_stream)


def _aligned(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor, or a copy of it where it starts at no multiple of 64 bytes, as a slice may."""
    if tensor.data_ptr() % ALIGNMENT_BYTES == 0:
        return tensor
    copy = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device)
    return copy.copy_(tensor)
