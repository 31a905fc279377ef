"""Build what a module's file builds: `python -m ridgeline.tools.runner.worker.build_main SOURCE SPEC OUTPUT`, confined.

The builder imports the file and makes `ModelNew` once. For a GPU, torch first describes the GPU where the module will
run; a file that goes on to use that GPU fails, and is made again without the description. A failure is told on stderr in
a compiler's form: the extension's own messages, or `candidate.py:LINE: error: …`. SPEC is a BuilderSpec as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import nullcontext
from pathlib import Path

from ridgeline.tools.modelnew.file import FILE, load_file, make_model, told
from ridgeline.tools.records.builder_spec import BuilderSpec
from ridgeline.tools.runner.worker.extensions import Packer
from ridgeline.tools.runner.worker.stand_in_gpu import described_gpu

_NO_GPU = ("cuda", "nvidia driver", "active drivers")
"""Words of torch's and Triton's errors where a file uses the GPU: a builder has none, and the runner tries again."""
_FAILED_BUILD = "Error building extension"


def main() -> int:
    """Return 0 when everything was built and packed."""
    source, spec, output = (Path(word) for word in sys.argv[1:4])
    for variable, folder in (("TORCH_EXTENSIONS_DIR", "extensions"), ("TRITON_CACHE_DIR", "triton")):
        os.environ[variable] = str(output.absolute().parent / folder)  # nothing but the build folder can be written
    wanted = BuilderSpec.from_json(json.loads(spec.read_text(encoding="utf-8")))
    packer = Packer()
    packer.install()
    text, gpu = source.read_text(encoding="utf-8"), wanted.gpu
    for description in (described_gpu(gpu), nullcontext()) if gpu else (nullcontext(),):
        with description:
            error = _failure(text, wanted.init)
        if error is None:
            break
        if not gpu or not _wants_gpu(error):
            return _tell(error)
    packer.write(output)
    return 0


def _failure(text: str, init: str) -> BaseException | None:
    """Return what importing the file and making its module raises."""
    try:
        make_model(load_file(text), init)
    except BaseException as error:  # noqa: BLE001  a candidate's code: SystemExit too is its failure
        return error
    return None


def _wants_gpu(error: BaseException) -> bool:
    text = str(error)
    is_torchs = isinstance(error, RuntimeError | AssertionError) and not text.startswith(_FAILED_BUILD)
    return is_torchs and any(words in text.lower() for words in _NO_GPU)


def _tell(error: BaseException) -> int:
    """Print an extension's own messages first: they hold the compiler's errors."""
    text = str(error)
    if text.startswith(_FAILED_BUILD):
        sys.stderr.write(text + "\n")
        error = RuntimeError(text.partition("\n")[0])
    line = told(error)
    place, _, rest = line.partition(": ") if line.startswith(FILE) else (FILE, "", line)
    sys.stderr.write(f"{place}: error: {rest[:600]}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
