"""Print where the installed torch keeps what an extension needs: `python -m ridgeline.tools.build.worker cpu|cuda`."""

from __future__ import annotations

import json
import sys
import sysconfig

import torch
from torch.utils import cpp_extension

from ridgeline.tools.build.torch_paths import TorchPaths
from ridgeline.tools.records.vocabulary import TORCH_MODULE, DeviceKind


def torch_paths(kind: DeviceKind) -> TorchPaths:
    """Return the include folders, libraries and flags of an extension for the CPU or for CUDA."""
    on_gpu = kind is DeviceKind.CUDA
    cuda = ("c10_cuda", "torch_cuda", "cudart") if on_gpu else ()
    # torch's own nvcc flags, and the runtime that torch itself loads: not a second one in the extension
    nvcc = (*cpp_extension.COMMON_NVCC_FLAGS, "-cudart=shared") if on_gpu else ()
    return TorchPaths(
        version=str(torch.__version__),
        include=(*cpp_extension.include_paths(kind), sysconfig.get_path("include")),
        library_folders=tuple(cpp_extension.library_paths(kind)),
        libraries=("c10", "torch_cpu", "torch", "torch_python", *cuda),
        flags=(
            "-std=c++20",  # what this torch's own extension builder passes; its headers need it
            "-DTORCH_API_INCLUDE_EXTENSION_H",
            f"-DTORCH_EXTENSION_NAME={TORCH_MODULE}",
            f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
            *nvcc,
        ),
    )


if __name__ == "__main__":
    sys.stdout.write(json.dumps(torch_paths(DeviceKind(sys.argv[1])).to_json()))
