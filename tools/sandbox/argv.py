"""The command lines of the tiers: the launcher, what it wraps, and every rule spelled out."""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from ridgeline.tools.sandbox.rules import Confined, Tier, dropped_uid

# The folders that every program needs. The home folder, /run and /var, with their unix sockets, stay out.
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc/alternatives", "/etc/ld.so.cache")
_MACHINE = ("/sys/devices/system/cpu", "/sys/devices/system/node")  # how many cores there are, and where
# Of that, what never changes. The rest counts what cores and memory do: how often each core was idle, say.
_LAYOUT = (
    *(f"cpu/{name}" for name in ("kernel_max", "isolated", "offline", "online", "possible", "present")),
    *(f"cpu/cpu[0-9]*/{name}" for name in ("cache", "cpufreq/cpuinfo_m??_freq", "online", "topology")),
    *(f"node/{name}" for name in ("has_cpu", "has_memory", "has_normal_memory", "online", "possible")),
    *(f"node/node[0-9]*/{name}" for name in ("cpulist", "cpumap", "distance")),
)
# Tier B shows the machine's /proc, of which these files describe the machine; /proc/self is the command's own folder.
_PROC = tuple(f"/proc/{name}" for name in ("self", "cpuinfo", "meminfo", "version", "filesystems", "sys"))
_PROC_OF_DEVICES = ("/proc/devices", "/proc/driver/nvidia", "/proc/stat")  # a GPU's driver asks them
# What the whole machine does, which tier A covers. It would tell a candidate who else works: the judge that changes contents.
_COUNTERS = (
    "buddyinfo",
    "diskstats",
    "interrupts",
    "loadavg",
    "pressure",
    "schedstat",
    "softirqs",
    "vmstat",
    "zoneinfo",
)
_COUNTERS_WITHOUT_DEVICES = (*_COUNTERS, "stat", "uptime")
_DEV_READ = ("/dev/urandom", "/dev/random")
_DEV_WRITE = ("/dev/null", "/dev/zero", "/dev/full")
_SHM_BYTES = 16 << 20


def confined_argv(
    tier: Tier,
    launcher: Path,
    confined: Confined,
    *,
    status_fd: int | None = None,
    report_fd: int | None = None,
    descriptors: Mapping[int, int] | None = None,
) -> list[str]:
    """Return the command that runs `confined` in `tier`.

    Its guard sends status lines to the socket `status_fd`, whose hang-up ends the command. Without that socket the guard
    tells of limits and signals on stderr, and writes the status lines to `report_fd` where one is given. `descriptors`
    are renumbered: the number inside, the inherited number.
    """
    readable = _with_targets(confined.readable)
    if tier is Tier.BUBBLEWRAP:
        inner = _bubblewrap(launcher, confined, readable, lifeline=status_fd is not None)
        rules = _rules_inside(confined, [*readable, launcher])
    else:
        inner = []
        rules = _rules_outside(confined, readable, tier)
    uid = dropped_uid()
    user = [] if uid is None else ["--uid", str(uid), "--gid", str(uid)]
    status = [] if status_fd is None else ["--status-fd", str(status_fd)]
    status += [] if report_fd is None else ["--report-fd", str(report_fd)]
    reach = [launcher, *readable, *([confined.workdir] if confined.workdir else [])]
    renumbered = [
        f"{part}" for pair in (descriptors or {}).items() for part in ("--inside", pair[0], "--outside", pair[1])
    ]
    enter = [str(launcher), "enter", *user, *status, *renumbered, *_each("--reach", reach), "--"]
    guard_user = user if tier is not Tier.BUBBLEWRAP else []
    guard = [str(launcher), "guard", *guard_user, *status, *rules, *_limits(confined), "--"]
    return [*enter, *inner, *guard, *confined.command]


def _with_targets(paths: Iterable[Path]) -> list[Path]:
    """Return the paths that exist, each with what it points to, outermost first so that a nested one is bound last."""
    found = {Path(os.path.abspath(path)) for path in paths if path.exists()}
    return sorted(found | {path.resolve() for path in found})


def _bubblewrap(launcher: Path, confined: Confined, readable: list[Path], *, lifeline: bool) -> list[str]:
    limits = confined.limits
    program = shutil.which("bwrap") or "bwrap"
    argv = [program, "--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"]
    argv += ["--unshare-cgroup-try", "--as-pid-1", "--hostname", "sandbox"]
    # With a lifeline the guard itself sees the parent's end. --die-with-parent would follow the parent's *thread*.
    argv += [] if lifeline else ["--die-with-parent"]
    for path in _SYSTEM:
        argv += _system_bind(path)
    argv += ["--proc", "/proc", "--dev", "/dev", "--size", str(_SHM_BYTES), "--tmpfs", "/dev/shm"]
    for name in _COUNTERS if confined.devices else _COUNTERS_WITHOUT_DEVICES:
        argv += _covered(f"/proc/{name}")
    for path in confined.devices:
        argv += ["--dev-bind", path, path]
    for path in _MACHINE:
        argv += ["--ro-bind-try", path, path]
    argv += ["--size", str(limits.file_bytes or 1 << 30), "--tmpfs", "/tmp"]
    for bound in [*readable, launcher]:
        argv += ["--ro-bind", str(bound), str(bound)]
    if confined.workdir is not None:
        argv += ["--bind", str(confined.workdir), str(confined.workdir)]
    # bubblewrap's own tmpfs behind / and /dev has no size limit, so both become read-only.
    return [*argv, "--remount-ro", "/dev", "--remount-ro", "/", "--"]


def _covered(path: str) -> list[str]:
    """Return what shows nothing in a path's place; a machine may have none."""
    if os.path.isdir(path):
        return ["--tmpfs", path, "--remount-ro", path]
    return ["--ro-bind", os.devnull, path] if os.path.exists(path) else []


def _system_bind(path: str) -> list[str]:
    if os.path.islink(path):
        return ["--symlink", os.readlink(path), path]
    return ["--ro-bind-try", path, path]


@functools.cache
def _layout() -> tuple[str, ...]:
    """Return the files and folders of this machine that tell where its cores and its memory are."""
    found = (path for pattern in _LAYOUT for path in Path("/sys/devices/system").glob(pattern))
    return tuple(sorted(map(str, found)))


def _rules_inside(confined: Confined, readable: list[Path]) -> list[str]:
    """Return the Landlock rules of tier A. They are a second layer: of the mount namespace all but counters may be read."""
    writable = ["/tmp", "/dev/shm", *([confined.workdir] if confined.workdir else [])]
    devices = [*_DEV_READ, *_DEV_WRITE, *confined.devices]
    reads = ["/"] if confined.devices else [*_SYSTEM, "/proc", "/dev", *_layout(), *readable]
    rules = ["--namespaced", *_each("--list", ["/"]), *_each("--read", reads)]
    rules += [*_each("--write", writable), *_each("--device", devices)]
    # The network namespace holds a loopback interface and this command alone.
    rules += ["--own-network"] if confined.own_network else []
    return [*rules, *_behaviour(confined, "/tmp")]


def _rules_outside(confined: Confined, readable: list[Path], tier: Tier) -> list[str]:
    machine = (*_MACHINE, *_PROC_OF_DEVICES) if confined.devices else _layout()
    reads = [*_SYSTEM, *machine, *_PROC, *_DEV_READ, *readable]
    writable = [confined.workdir] if confined.workdir else []
    rules = [
        *_each("--list", _MACHINE),
        *_each("--read", reads),
        *_each("--write", writable),
        *_each("--device", [*_DEV_WRITE, *confined.devices]),
    ]
    if tier is Tier.NONE:
        rules.append("--unsafe")
    elif confined.own_network:
        rules.append("--own-network")  # the machine's, of which the guard lets this command reach its own sockets alone
    return [*rules, *_behaviour(confined, str(confined.workdir or "/nonexistent"))]


def _behaviour(confined: Confined, temporary: str) -> list[str]:
    rules = [] if confined.allow_processes else ["--threads-only"]
    if confined.limits.cap_address_space and not confined.devices:
        rules.append("--cap-data")
    if confined.devices:
        rules.append("--uses-devices")
    if confined.word_pipe is not None:
        rules += ["--word-pipe", str(confined.word_pipe)]
    if confined.workdir is not None:
        rules += ["--workdir", str(confined.workdir)]
    rules += _each("--on-cpu", confined.cpus)
    return [*rules, *_each("--setenv", [f"{key}={value}" for key, value in confined.environment(temporary).items()])]


def _limits(confined: Confined) -> list[str]:
    limits = confined.limits
    named = {
        "--wall": limits.wall_s,
        "--cpu": limits.cpu_s,
        "--memory": limits.memory_bytes,
        "--file": limits.file_bytes,
        "--disk": limits.disk_bytes,
        "--processes": limits.processes,
        "--open-files": limits.open_files,
    }
    return [part for name, value in named.items() for part in (name, str(value))]


def _each(option: str, values: Iterable[object]) -> list[str]:
    return [part for value in values for part in (option, str(value))]
