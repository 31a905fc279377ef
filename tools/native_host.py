"""The native host's executable, compiled once into the cache folder."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from ridgeline.tools.errors import DeviceError

_SOURCE = Path(__file__).parent / "native" / "host.cpp"
_FLAGS = ("-std=c++17", "-O2", "-fopenmp")
_SANITIZED_FLAGS = ("-std=c++17", "-O1", "-g", "-fopenmp", "-fno-omit-frame-pointer")
_LIBRARIES = ("-ldl",)


def native_host(cache_dir: Path, *, sanitize: str = "") -> Path:
    """Return the path of the compiled host, compiling it when its source changed (about 2 s).

    `sanitize` is "" or what -fsanitize= takes ("address,undefined").

    Raises:
        DeviceError: g++ is missing or cannot build it; one line says why.
    """
    flags = (*_SANITIZED_FLAGS, f"-fsanitize={sanitize}") if sanitize else _FLAGS
    digest = hashlib.sha256(_SOURCE.read_bytes() + " ".join(flags).encode()).hexdigest()[:16]
    host = cache_dir / "host" / f"host-{digest}"
    if host.is_file():
        return host
    compiler = shutil.which("g++")
    if compiler is None:
        raise DeviceError("g++ not found, which builds the native host: apt-get install g++")
    host.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
    with tempfile.TemporaryDirectory(dir=host.parent) as scratch:
        product = Path(scratch) / "host"
        command = [compiler, *flags, str(_SOURCE), "-o", str(product), *_LIBRARIES]
        built = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        if built.returncode != 0:
            lines = built.stderr.strip().splitlines() or ["no message"]
            raise DeviceError(f"g++ cannot build the native host: {lines[0]}")
        product.chmod(0o755)
        os.replace(product, host)
    return host
