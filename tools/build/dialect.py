"""The C++ of each kind of device: its types, its stream and its errors, beyond the standard's."""

from __future__ import annotations

from collections.abc import Collection
from importlib import resources
from typing import Protocol

from ridgeline.tools.records.vocabulary import DeviceKind

_HALF = {
    "float16": "#include <cuda_fp16.h>\nusing fp16 = __half;\n",
    "bfloat16": "#include <cuda_bf16.h>\nusing bf16 = __nv_bfloat16;\n",
}


class Dialect(Protocol):
    """The C++ of one kind of device."""

    torch_includes: str  # beside torch's own
    stream_parameters: tuple[str, ...]  # of `run`, after the workspace
    stream_arguments: tuple[str, ...]  # what `ridgeline_call` gives for them
    call_result: str  # of `ridgeline_call`: 0, or the number of an error that `run` left behind
    error_text: str  # the definition of `ridgeline_error`, which names such an error

    def types(self, dtypes: Collection[str]) -> str:
        """Return what defines the types of these tensors and the device's own."""
        ...

    def stage_clocks(self) -> str:
        """Return what defines RIDGELINE_STAGE in a profile's build, with the table of times that the library exports."""
        ...


class CpuDialect:
    """g++'s C++."""

    torch_includes = ""
    stream_parameters: tuple[str, ...] = ()
    stream_arguments: tuple[str, ...] = ()
    call_result = "0"
    error_text = ""

    def types(self, dtypes: Collection[str]) -> str:
        return "\n" + _native("half.h")

    def stage_clocks(self) -> str:
        return _native("stages.h") + _native("stage_macro.h")


class CudaDialect:
    """CUDA's C++."""

    torch_includes = "#include <c10/cuda/CUDAStream.h>\n"
    stream_parameters: tuple[str, ...] = ("cudaStream_t stream",)
    stream_arguments: tuple[str, ...] = ("static_cast<cudaStream_t>(stream)",)
    call_result = "static_cast<int>(cudaPeekAtLastError())"
    error_text = (
        'extern "C" __attribute__((visibility("default"))) const char* ridgeline_error(int error) {\n'
        "  return cudaGetErrorString(static_cast<cudaError_t>(error));\n}\n"
    )

    def types(self, dtypes: Collection[str]) -> str:
        return "#include <cuda_runtime.h>\n" + "".join(text for dtype, text in _HALF.items() if dtype in dtypes)

    def stage_clocks(self) -> str:
        return _native("stages_cuda.h") + _native("stage_macro.h")


def _native(name: str) -> str:
    return resources.files("ridgeline.tools.build").joinpath("native", name).read_text(encoding="utf-8")


DIALECTS: dict[DeviceKind, Dialect] = {DeviceKind.CPU: CpuDialect(), DeviceKind.CUDA: CudaDialect()}
