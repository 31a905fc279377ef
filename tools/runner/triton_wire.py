"""The wire between the parent and the process that compiles a module's Triton kernels; both Python ends import it.

The process gets a TritonSpec as a file. Through a descriptor of its own it tells that the GPU is open, before anything of
the candidate runs: what is said there the candidate cannot unsay.
"""

from __future__ import annotations

from dataclasses import dataclass

from ridgeline.tools.records.codec import Record
from ridgeline.tools.records.module_contract import ModuleSetup

PROGRESS = 3
"""The descriptor in the process that compiles."""
GPU_OPEN = b"gpu_open\n"
"""The word that the GPU is open: a failure after it is the module's, one before it the machine's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputForm(Record):
    """The form of an input tensor."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in elements
    dtype: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TritonSpec(Record):
    """A module to be called once, and the forms of the tensors that it is called on."""

    module: ModuleSetup
    inputs: tuple[InputForm, ...]
