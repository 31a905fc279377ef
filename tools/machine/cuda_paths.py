"""The folders in which loaders and linkers find the CUDA driver's library, libcuda.so.1."""

from __future__ import annotations

import os
from pathlib import Path

from ridgeline.tools.machine.gpus import driver_library

_NAME = "libcuda.so.1"
_USUAL_FOLDERS = ("/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib")


def named_folder() -> Path | None:
    """Return the folder of LD_LIBRARY_PATH that has the driver's library, None where the loader needs no such help.

    Some images keep the driver in a folder that only this variable names.
    """
    return next((folder for folder in _named() if (folder / _NAME).exists()), None)


def linking_folder() -> Path:
    """Return a folder in which a linker finds the library under its short name.

    Raises:
        DeviceError: there is no driver.
    """
    library = driver_library()
    folders = (library.parent, *_named(), *map(Path, _USUAL_FOLDERS))
    return next((folder for folder in folders if (folder / _NAME).exists()), library.parent)


def _named() -> list[Path]:
    return [Path(text).absolute() for text in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep) if text]
