"""Remedies for a machine that lacks a sandbox tier: the words of `ridgeline doctor`."""

from __future__ import annotations

import platform
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from ridgeline.tools.sandbox.rules import Tier

TIER_WORDS = {
    Tier.BUBBLEWRAP: "bubblewrap's namespaces, and Landlock, seccomp and limits inside them",
    Tier.LANDLOCK: "Landlock, seccomp and limits; tier A adds processes, files and a network of its own",
    Tier.NONE: "limits alone: untrusted kernels are refused",
}
"""The parts of each tier, in one line."""

INSTALL_BUBBLEWRAP = "apt-get install bubblewrap (Fedora: dnf install bubblewrap)"
"""How the program of tier A is had."""
_OLDEST_BUBBLEWRAP = (0, 7)
_OLDEST_LANDLOCK = (5, 13)
_NAMESPACE_SETTINGS = (  # name, the value that forbids, the value that allows
    ("kernel.unprivileged_userns_clone", "0", "1"),
    ("user.max_user_namespaces", "0", "15000"),
    ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
)


def no_bubblewrap() -> str:
    """Return the reason against tier A on a machine without bubblewrap."""
    return f"bubblewrap not installed: {INSTALL_BUBBLEWRAP}"


def program_gone(program: str, remedy: str) -> str:
    """Return that a program of the sandbox disappeared while it was in use, and how to go on."""
    return (
        f"the sandbox cannot go on: its program {program} was here when this began and is gone; {remedy}; "
        "`ridgeline doctor` says what works here now, and `ridgeline run --resume` goes on with a search"
    )


def own_network_advice(yama: Path = Path("/proc/sys/kernel/yama/ptrace_scope")) -> str:
    """Return how a tool that watches a candidate gets sockets that reach the candidate alone."""
    if yama.exists() and yama.read_text().strip() not in ("0", "1"):
        return "sysctl -w kernel.yama.ptrace_scope=1, or sandbox tier A (bubblewrap)"
    return (
        "sandbox tier A (bubblewrap) can, and tier B on Linux 5.14 or newer where nothing else supervises system calls"
    )


def bubblewrap_advice(program: str, settings: Path = Path("/proc/sys")) -> str:
    """Return why bubblewrap fails here, with a remedy, in parentheses; "" when no reason is known."""
    version = _version(_said(program, "--version"))
    if version and version < _OLDEST_BUBBLEWRAP:
        wanted = ".".join(map(str, _OLDEST_BUBBLEWRAP))
        return f" (bubblewrap {'.'.join(map(str, version))} cannot size a tmpfs: install {wanted} or newer)"
    return _namespace_advice(settings)


def _namespace_advice(settings: Path) -> str:
    """Return the setting that forbids user namespaces, with its remedy, in parentheses; "" when none is known."""
    for name, forbids, allows in _NAMESPACE_SETTINGS:
        setting = settings.joinpath(*name.split("."))
        if setting.exists() and setting.read_text().strip() == forbids:
            return f" (user namespaces are disabled: sysctl -w {name}={allows})"
    if Path("/.dockerenv").exists() or Path("/run/.containerenv").exists():
        return " (a container's seccomp profile forbids them: start it with --security-opt seccomp=unconfined)"
    return ""


def landlock_advice(release: str | None = None, modules: Path = Path("/sys/kernel/security/lsm")) -> str:
    """Return why there is no Landlock, with a remedy, in parentheses; "" when no reason is known."""
    release = release or platform.release()
    version = _version(release)
    if version and version < _OLDEST_LANDLOCK:
        return f" (Linux {release} has no Landlock: it needs 5.13 or newer)"
    if modules.exists() and "landlock" not in modules.read_text().strip().split(","):
        return f" (Landlock is not started: boot with lsm=landlock,{modules.read_text().strip()})"
    return ""


def closed_folders(paths: Iterable[Path]) -> list[Path]:
    """Return the folders on the way to these paths that an ordinary user may not pass, outermost first."""
    ways = {folder for path in paths for folder in path.absolute().parents}
    return sorted(folder for folder in ways if folder.is_dir() and not folder.stat().st_mode & 0o001)


def python_advice(paths: Iterable[Path]) -> str:
    """Return the remedy for a sandbox that cannot run this Python; "" when no reason is known."""
    closed = closed_folders(paths)
    if not closed:
        return ""
    listed = " ".join(map(str, closed))
    return (
        f"{listed} is closed to the user that candidates run as, so its Python cannot be bound: chmod o+x {listed}, or "
        "make the virtual environment from a Python under /usr or /opt"
    )


def _said(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=5).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""


def _version(text: str) -> tuple[int, int] | None:
    found = re.search(r"(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else None
