"""Have Triton compile a module's kernels: `-m ridgeline.tools.runner.worker.triton_main BUNDLE SPEC OUTPUT`, confined.

The process makes `ModelNew`, calls it on zeros of the right form, and packs the kernels that Triton compiled. SPEC is a
TritonSpec as JSON. The process holds no secret, and only compiled kernels leave it.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import torch

from ridgeline.tools.modelnew.file import load_file, make_model, told
from ridgeline.tools.runner.triton_wire import GPU_OPEN, PROGRESS, TritonSpec
from ridgeline.tools.runner.worker.candidates import filled
from ridgeline.tools.runner.worker.extensions import Loader
from ridgeline.tools.runner.worker.triton_cache import pack, use_cache


def main() -> int:
    """Return 0 when the module was called and its kernels are packed."""
    bundle, spec, output = (Path(word).absolute() for word in sys.argv[1:4])
    wanted = TritonSpec.from_json(json.loads(spec.read_text(encoding="utf-8")))
    torch.zeros(1, device="cuda")
    os.write(PROGRESS, GPU_OPEN)
    os.close(PROGRESS)
    kernels = output.parent / "triton"
    use_cache(kernels)
    Loader(bundle, output.parent / "extensions").install()
    try:
        _call(wanted)
    except BaseException as error:  # noqa: BLE001  a candidate's code: SystemExit too is its failure
        sys.stderr.write(told(error)[:600] + "\n")
        return 1
    pack(kernels, output)
    return 0


def _call(wanted: TritonSpec) -> None:
    module = wanted.module
    model = make_model(load_file(module.source), module.init).to("cuda")
    tensors = [
        torch.zeros(t.shape, dtype=getattr(torch, t.dtype), device="cuda").as_strided(t.shape, t.strides)
        for t in wanted.inputs
    ]
    arguments = [filled(argument, tensors) for argument in module.arguments]
    with torch.no_grad():
        model(*arguments)
    torch.cuda.synchronize()


if __name__ == "__main__":
    sys.exit(main())
