"""Confinement of untrusted code: compilers that read candidates, and the candidates themselves.

Tier A wraps bubblewrap's namespaces around Landlock, seccomp and rlimits; tier B is Landlock, seccomp and rlimits alone;
tier C is rlimits alone, and is refused unless asked for. Covered in A and B: other files than those given, secrets
in environments, the network, other processes, persistence after the end, and memory, disk, process and time bombs. Not
covered: exploits of the kernel or of a driver, GPU hangs, side channels. docs/sandbox.md has the details.
"""

from __future__ import annotations

import fcntl
import os
import platform
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from ridgeline.tools.errors import EngineError, SandboxError
from ridgeline.tools.sandbox.advice import (
    INSTALL_BUBBLEWRAP,
    bubblewrap_advice,
    landlock_advice,
    no_bubblewrap,
    own_network_advice,
    program_gone,
)
from ridgeline.tools.sandbox.argv import confined_argv
from ridgeline.tools.sandbox.launcher import build_launcher
from ridgeline.tools.sandbox.process import ExitStatus, SandboxedProcess, Stream, launch
from ridgeline.tools.sandbox.rules import Confined, Limits, Tier, claim_workdir

__all__ = [
    "UNSAFE_VARIABLE",
    "Confined",
    "ExitStatus",
    "Limits",
    "Sandbox",
    "SandboxReport",
    "SandboxedProcess",
    "Tier",
    "claim_workdir",
    "probe_sandbox",
    "reason_against",
]

UNSAFE_VARIABLE = "RIDGELINE_UNSAFE_NO_SANDBOX"  # "1": the engine tells its evaluators that tier C was asked for
_LEAST_OF_ITS_OWN = (
    ("open files", "-n", resource.RLIMIT_NOFILE, 0, Limits().open_files),  # some get numbers above 128
    ("file size", "-H -f", resource.RLIMIT_FSIZE, 1, Limits().file_bytes),
    ("CPU time", "-H -t", resource.RLIMIT_CPU, 1, Limits().cpu_s + 1),
    ("processes", "-H -u", resource.RLIMIT_NPROC, 1, Limits().processes),
    ("virtual memory", "-v", resource.RLIMIT_AS, 0, Limits().memory_bytes),  # a judge reserves most of it by itself
)
"""Limits that a process which starts sandboxes has at least, as the shell's `ulimit` names them: a confined one is given
its own, and nobody else may raise a hard one."""


class Sandbox:
    """Starts confined commands in one tier. Holds nothing open; share it freely between threads."""

    def __init__(self, tier: Tier, *, launcher: Path | None = None) -> None:
        self.tier = tier
        self.launcher = launcher or build_launcher()

    def argv(self, confined: Confined, *, report_fd: int | None = None) -> list[str]:
        """Return a command line for others to start (ninja): confined and watched, its ending explained on stderr.

        Exit status: the command's, 128 + n for signal n, 124 past a limit, 125 without a sandbox, 127 without a command.
        A confined command may end with any of these itself. Whoever starts the command line can pass a file as
        `report_fd`: only the sandbox writes there, and `parse_status` reads it.
        """
        return confined_argv(self.tier, self.launcher, _resolved(confined), report_fd=report_fd)

    def start(
        self,
        confined: Confined,
        *,
        pass_fds: Sequence[int] | Mapping[int, int] = (),
        stdin: Stream = subprocess.DEVNULL,
        stdout: Stream = subprocess.DEVNULL,
        stderr: Stream = subprocess.DEVNULL,
    ) -> SandboxedProcess:
        """Start `confined` and return when its program is about to run.

        `pass_fds` keep their numbers inside; a mapping {number inside: descriptor} gives them others, below 100. Pass
        connected stream sockets, pipes and memfds only: a datagram socket could be sent elsewhere.

        Raises:
            SandboxError: a program of the sandbox disappeared since it was tried out.
            EngineError: the sandbox could not be set up, or the command could not be executed.
        """
        resolved = _resolved(confined)
        numbers = pass_fds if isinstance(pass_fds, Mapping) else {}
        ours, guards = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with guards:
            # Above every number inside: a renumbered descriptor must not take its place.
            guards_fd = fcntl.fcntl(guards, fcntl.F_DUPFD_CLOEXEC, 100)
        try:
            argv = confined_argv(self.tier, self.launcher, resolved, status_fd=guards_fd, descriptors=numbers)
        except OSError:  # of a path that cannot be looked at
            os.close(guards_fd)
            ours.close()
            raise
        passed = [*numbers.values()] if numbers else [*pass_fds]
        try:
            return launch(
                argv, ours=ours, guards_fd=guards_fd, pass_fds=passed, stdin=stdin, stdout=stdout, stderr=stderr
            )
        except EngineError:
            self.expect_programs()
            raise

    def expect_programs(self) -> None:
        """Do nothing where the programs that the sandbox is made of are there, as when it was tried out.

        Raises:
            SandboxError: one is gone; the message says which, and how to go on.
        """
        if self.tier is Tier.BUBBLEWRAP and shutil.which("bwrap") is None:
            raise SandboxError(program_gone("bwrap", f"install it again: {INSTALL_BUBBLEWRAP}"))
        if not self.launcher.is_file():
            raise SandboxError(program_gone(str(self.launcher), "the next start builds it anew"))

    def run(self, confined: Confined, *, pass_fds: Sequence[int] | Mapping[int, int] = ()) -> tuple[ExitStatus, str]:
        """Run `confined` to its end and return how it ended with what it printed on stdout and stderr."""
        with (
            tempfile.TemporaryFile() as output,
            self.start(confined, pass_fds=pass_fds, stdout=output, stderr=output) as process,
        ):
            ended = process.wait()
            output.seek(0)
            return ended, output.read().decode(errors="replace")

    def reason_against_own_network(self) -> str:
        """Return "" where a command's processes can talk to each other and to nobody else, else why not."""
        return _reason_against_own_network(self.tier, self.launcher)


@lru_cache(maxsize=8)
def _reason_against_own_network(tier: Tier, launcher: Path) -> str:
    """Try it out: a program calls itself, over the loopback interface and under an abstract name."""
    if tier is Tier.NONE:
        return "needs a sandbox"
    talk = Confined(command=(str(launcher), "talk"), readable=(launcher,), own_network=True, allow_processes=True)
    try:
        ended, said = Sandbox(tier, launcher=launcher).run(talk)
    except (EngineError, SandboxError) as error:
        said = str(error)
    else:
        if ended.is_success and said == "talked\n":
            return ""
        said = said.strip() or ended.message
    return f"needs sockets of its own, which sandbox tier {tier} cannot give it here ({said}): {own_network_advice()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxReport:
    """The tier that works here and the reasons against better tiers; `advice` has the remedies in one line."""

    tier: Tier
    tiers_tried: tuple[tuple[Tier, str], ...]  # "" where it works
    advice: str = ""


def _resolved(confined: Confined) -> Confined:
    """Return `confined` with the program's path in full."""
    program = confined.command[0]
    path = confined.env.get("PATH", "/usr/local/bin:/usr/bin:/bin")
    found = program if "/" in program else shutil.which(program, path=path)
    if found is None:
        raise EngineError(f"sandbox: {program} not found in {path}")
    workdir = None if confined.workdir is None else confined.workdir.resolve()
    return replace(confined, command=(os.path.abspath(found), *confined.command[1:]), workdir=workdir)


def probe_sandbox(*, allow_unsafe: bool = False) -> SandboxReport:
    """Return the best tier that this machine offers, tried out for real: a command runs, and a connection fails.

    Raises:
        SandboxError: no tier works, and `allow_unsafe` is not given.
        StorageError: the cache folder, which holds the sandbox's launcher, cannot be written.
    """
    report = _probe()
    if report.tier is Tier.NONE and not allow_unsafe:
        raise SandboxError(f"no sandbox works here: {report.advice}")
    return report


@lru_cache(maxsize=1)
def _probe() -> SandboxReport:
    if not sys.platform.startswith("linux"):
        reason = f"{platform.system()} is not Linux"
        return SandboxReport(tier=Tier.NONE, tiers_tried=((Tier.NONE, reason),), advice="Ridgeline runs on Linux only.")
    tried: list[tuple[Tier, str]] = []
    for tier in (Tier.BUBBLEWRAP, Tier.LANDLOCK):
        tried.append((tier, reason_against(tier)))
        if not tried[-1][1]:
            break
    best = tried[-1][0] if not tried[-1][1] else Tier.NONE
    tiers: dict[str, list[str]] = {}  # by the reason against them, which a full disk gives to both
    for tier, reason in tried:
        if reason:
            tiers.setdefault(reason, []).append(tier)
    advice = "; ".join(f"for tier {' and '.join(names)}: {reason}" for reason, names in tiers.items())
    return SandboxReport(tier=best, tiers_tried=tuple(tried), advice=advice)


def limit_too_low() -> str:
    """Return which limit of this process lets it start no sandbox, and the command that shows it; "" for none."""
    for name, flags, number, which, least in _LEAST_OF_ITS_OWN:
        found = resource.getrlimit(number)[which]
        if found != resource.RLIM_INFINITY and found < least:
            return f"the limit of {name} is {found}, below {least}: raise it (`ulimit {flags}`)"
    return ""


def reason_against(tier: Tier) -> str:
    """Return "" when a command runs in `tier` and reaches neither a listener nor a file of ours, else why not."""
    if tier is Tier.BUBBLEWRAP and shutil.which("bwrap") is None:
        return no_bubblewrap()
    too_low = limit_too_low()
    if too_low:
        return too_low
    try:
        launcher = build_launcher()
    except SandboxError as error:
        return str(error)  # nothing that bubblewrap or Landlock lacks
    try:
        with socket.create_server(("127.0.0.1", 0)) as listener, tempfile.NamedTemporaryFile() as secret:
            command = (str(launcher), "probe", str(listener.getsockname()[1]), secret.name)
            confined = Confined(command=command, readable=(launcher,))
            with Sandbox(tier, launcher=launcher).start(
                confined, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            ) as process:
                said = process.stdout.read().decode() if process.stdout else ""
                ended = process.wait(20)
    except (EngineError, SandboxError) as error:
        advice = bubblewrap_advice("bwrap") if tier is Tier.BUBBLEWRAP else landlock_advice()
        return f"{error}{advice}"
    except OSError as error:
        return f"cannot be tried: {error}"
    return "" if said == "inside\n" else f"it does not hold: {said.strip() or ended.message}"
