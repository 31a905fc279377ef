"""The native launcher `confine`, compiled once per machine into the cache folder."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from ridgeline.tools.errors import SandboxError, StorageError
from ridgeline.tools.machine.places import default_cache_dir
from ridgeline.tools.machine.programs import is_whole_program
from ridgeline.tools.wording import remedy_for, said_by

_SOURCES = Path(__file__).parent / "native"
_FLAGS = ("-std=c++17", "-O2", "-fno-exceptions", "-fstack-protector-strong")
_BUILD_LIMIT_S = 120.0  # 1 s on a quiet core


def build_launcher(folder: Path | None = None) -> Path:
    """Return the path of the compiled launcher, compiling it when it is damaged or its sources changed (about 1 s).

    Only its owner may write to `folder`, and everyone may read it.

    Raises:
        SandboxError: there is no g++, or it cannot build the launcher.
        StorageError: `folder` cannot be written.
    """
    folder = folder or default_cache_dir() / "sandbox"
    sources = sorted(_SOURCES.glob("confine*"))
    digest = hashlib.sha256(b"\0".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    launcher = folder / f"confine-{digest}"
    if _is_ours(launcher) and is_whole_program(launcher):
        return launcher
    compiler = shutil.which("g++")
    if compiler is None:
        raise SandboxError("g++ not found, which builds the sandbox's launcher: apt-get install g++")
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o755)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            product = Path(scratch) / "confine"
            _compile(compiler, product)
            product.chmod(0o755)
            os.replace(product, launcher)
    except subprocess.TimeoutExpired as error:
        raise SandboxError(f"g++ did not build the sandbox's launcher within {_BUILD_LIMIT_S:.0f} s") from error
    except OSError as error:
        why = said_by(error)
        remedy = remedy_for(why, "set RIDGELINE_CACHE_DIR to a folder of yours that has room")
        raise StorageError(f"{folder}: the sandbox's launcher cannot be kept there: {why}; {remedy}") from error
    return launcher


def _is_ours(launcher: Path) -> bool:
    """Say whether the launcher is there and nobody else could have written it."""
    try:
        info = launcher.lstat()
    except OSError:
        return False
    return info.st_uid == os.geteuid() and not info.st_mode & 0o022 and os.access(launcher, os.X_OK)


def _compile(compiler: str, product: Path) -> None:
    source = str(_SOURCES / "confine.cpp")
    # Static starts faster and needs nothing inside the sandbox; not every machine has a static libc.
    for linking in (("-static",), ("-static-libstdc++", "-static-libgcc")):
        command = [compiler, *_FLAGS, *linking, source, "-o", str(product)]
        built = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_BUILD_LIMIT_S)
        if built.returncode == 0:
            return
    if os.strerror(errno.ENOSPC) in built.stderr:
        scratch = (os.environ.get("TMPDIR"), tempfile.gettempdir())  # Python skips a full TMPDIR, g++ does not
        full = next((each for each in scratch if each and each in built.stderr), product.parent.parent)
        raise SandboxError(f"{full}: no space left on device, where g++ builds the sandbox's launcher: free some space")
    lines = built.stderr.strip().splitlines() or ["no message"]
    raise SandboxError(f"g++ cannot build the sandbox's launcher: {lines[0]}")
