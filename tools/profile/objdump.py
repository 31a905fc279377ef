"""objdump's listings of a shared object: the file is untrusted, so it is read in the sandbox and never loaded."""

from __future__ import annotations

import shutil
from pathlib import Path

from ridgeline.tools.sandbox.rules import Confined, Limits, temporary_workdir
from ridgeline.tools.sandbox.sandbox import Sandbox


def objdump(library: Path, sandbox: Sandbox, *options: str, listing_bytes: int) -> tuple[str, str]:
    """Return (listing, ""), or ("", why there is none)."""
    if shutil.which("objdump") is None:
        return "", "objdump is not installed (package binutils)"
    limits = Limits(wall_s=30.0, cpu_s=20, memory_bytes=1 << 30, file_bytes=listing_bytes)
    with temporary_workdir("ridgeline-objdump-") as folder:
        shutil.copyfile(library, folder / "kernel.so")
        (folder / "kernel.so").chmod(0o644)
        command = ("objdump", *options, "-w", str(folder / "kernel.so"))
        ended, output = sandbox.run(Confined(command=command, workdir=folder, limits=limits))
    if not ended.is_success:
        return "", f"objdump failed ({ended.message or 'no message'})"
    return output, ""
