"""Calls of the library as a PyTorch extension, which takes and returns tensors."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from ._denormals import kept_denormals

EXTENSION = "ridgeline_candidate"


class Library:
    """A loaded kernel. Its calls take turns: it may keep memory of its own."""

    def __init__(self, path: Path, args: Sequence[Mapping[str, Any]], device: torch.device) -> None:
        """`args` are those that the kernel is passed, each with its role and its kind."""
        loader = importlib.machinery.ExtensionFileLoader(EXTENSION, str(path))
        specification = importlib.util.spec_from_file_location(EXTENSION, str(path), loader=loader)
        if specification is None:
            raise ImportError(f"{path}: is no extension of Python")
        with kept_denormals():
            module = importlib.util.module_from_spec(specification)
            loader.exec_module(module)
        self._forward = module.forward
        self._is_tensor = [arg["kind"] == "tensor" for arg in args if arg["role"] != "output"]
        self._lock = threading.Lock()

    def call(self, tensors: Sequence[torch.Tensor], scalars: Sequence[Any]) -> list[torch.Tensor]:
        """Return the outputs; `tensors` have the certified types, shapes and strides."""
        left, numbers = iter(tensors), iter(scalars)
        arguments = [next(left) if is_tensor else next(numbers) for is_tensor in self._is_tensor]
        with self._lock, torch.cuda.device(tensors[0].device if tensors and tensors[0].is_cuda else -1):
            result = self._forward(*arguments)
        return [result] if isinstance(result, torch.Tensor) else list(result)
