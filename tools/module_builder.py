"""Builds what a module's file builds: `python -m ridgeline.tools.module_builder SOURCE SPEC OUTPUT`, in the build sandbox.

It imports the file and makes `ModelNew` once. What fails is told on stderr as a compiler would: the extension's own
messages, or `candidate.py:LINE: error: …`. SPEC is JSON: {"init": the constructor's arguments, "device": "cpu" | "cuda"}.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from ridgeline.tools.module_extensions import Packer
from ridgeline.tools.module_file import FILE, load_file, make_model, told

_NO_GPU = ("no cuda gpus are available", "found no nvidia driver", "no nvidia driver", "cuda driver", "cuda error")
"""What torch says where a constructor puts tensors on the GPU: a builder has none, and the runner makes it again."""


def main() -> int:
    """Return 0 when everything was built and packed."""
    source, spec, output = (Path(word) for word in sys.argv[1:4])
    for variable, folder in (("TORCH_EXTENSIONS_DIR", "extensions"), ("TRITON_CACHE_DIR", "triton")):
        os.environ[variable] = str(output.absolute().parent / folder)  # nothing but the build folder can be written
    wanted = json.loads(spec.read_text(encoding="utf-8"))
    packer = Packer()
    packer.install()
    try:
        module = load_file(source.read_text(encoding="utf-8"))
        make_model(module, wanted["init"])
    except BaseException as error:  # noqa: BLE001  a candidate's code: SystemExit too is its failure
        needs_gpu = wanted["device"] == "cuda" and any(words in str(error).lower() for words in _NO_GPU)
        if not needs_gpu:
            return _tell(error)
    packer.write(output)
    return 0


def _tell(error: BaseException) -> int:
    """Print an extension's own messages first: they hold the compiler's errors."""
    text = str(error)
    if text.startswith("Error building extension"):
        sys.stderr.write(text + "\n")
    line = told(error) if "\n" not in text else told(type(error)(text.partition("\n")[0]))
    place, _, rest = line.partition(": ") if line.startswith(FILE) else (FILE, "", line)
    sys.stderr.write(f"{place}: error: {rest[:600]}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
