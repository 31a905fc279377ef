"""The native host's executable, compiled once into the cache folder."""

from __future__ import annotations

import hashlib
from pathlib import Path

from ridgeline.tools.records import DeviceKind
from ridgeline.tools.toolchain import build_trusted, find_toolchain

_SOURCE = Path(__file__).parent / "native" / "host.cpp"
_FLAGS = ("-std=c++17", "-O2", "-fopenmp")
_SANITIZED_FLAGS = ("-std=c++17", "-O1", "-g", "-fopenmp", "-fno-omit-frame-pointer")
_LIBRARIES = ("-ldl",)


def native_host(cache_dir: Path, *, sanitize: str = "") -> Path:
    """Return the path of the compiled host, compiling it when its source changed (about 2 s).

    `sanitize` is "" or what -fsanitize= takes ("address,undefined").

    Raises:
        DeviceError: g++ is missing or cannot build it; one line says why.
        StorageError: `cache_dir` cannot be written.
    """
    flags = (*_SANITIZED_FLAGS, f"-fsanitize={sanitize}") if sanitize else _FLAGS
    digest = hashlib.sha256(_SOURCE.read_bytes() + " ".join(flags).encode()).hexdigest()[:16]
    host = cache_dir / "host" / f"host-{digest}"
    if host.is_file():
        return host
    compiler = find_toolchain(DeviceKind.CPU).compiler
    build_trusted(host, [str(compiler), *flags, str(_SOURCE), *_LIBRARIES], what="the native host")
    return host
