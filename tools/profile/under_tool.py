"""A candidate run alone under a watching tool: Nsight Compute, compute-sanitizer.

The native host's mode `--alone SETUP_FILE` fills inputs of its own with random numbers, calls the candidate three times
and exits with 0. Nothing is judged or timed there, and no memory of the judge is in reach. Tool and candidate are confined
together, as a runner is. They talk over sockets, which reach nobody but the two (docs/sandbox.md).
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from ridgeline.tools.judge.replies import Place
from ridgeline.tools.records.dtypes import element_bytes, spanned_elements
from ridgeline.tools.records.problem import ArgSpec, Signature
from ridgeline.tools.records.vocabulary import ArgKind, Role
from ridgeline.tools.runner.start import argument_lines
from ridgeline.tools.runner.wire import FIRST_REGION, RegionLine, Setup
from ridgeline.tools.sandbox.rules import Confined, Limits
from ridgeline.tools.sandbox.sandbox import Sandbox

CALLS = 3
"""Calls of the candidate in the alone mode."""
_ALIGNMENT = 256
_WORKSPACE_BYTES = 4 << 30
_SETUP = "setup.txt"
_INSTALLED = ("/opt/nvidia/nsight-compute", "/opt/nvidia/compute-sanitizer")


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchingTool:
    """A program that runs another program and watches it."""

    path: Path
    readable: tuple[Path, ...]  # folders that the tool needs beyond /usr


def find_tool(name: str) -> WatchingTool | None:
    """Return ncu or compute-sanitizer with the folders it needs, None where it is not installed.

    Looked for in PATH, in CUDA's folder, and among Nsight Compute's own versions, newest first.
    """
    versions = sorted(Path("/opt/nvidia/nsight-compute").glob(f"*/{name}"), key=lambda p: p.parent.name, reverse=True)
    on_path = shutil.which(name)
    found = [Path(on_path)] if on_path else []
    candidates = [*found, Path("/usr/local/cuda/bin", name), Path("/usr/local/cuda/compute-sanitizer", name), *versions]
    path = next((p for p in candidates if p.is_file()), None)
    if path is None:
        return None
    folders = (path.resolve().parent, *(Path(folder) for folder in _INSTALLED))
    outside = tuple(f for f in folders if f.is_dir() and not f.is_relative_to("/usr"))
    return WatchingTool(path=path, readable=outside)


def alone_setup(signature: Signature, library: Path, *, n_sets: int = 1) -> str:
    """Return the setup text of the runner's wire for sets of tensors, each a region of its own."""
    tensors = [arg for arg in signature.args if arg.kind is ArgKind.TENSOR]
    places = {arg.name: Place(spec=arg, region=i, offset=0, set_stride=0) for i, arg in enumerate(tensors)}
    regions = tuple(
        RegionLine(descriptor=FIRST_REGION + i, size_bytes=_region_bytes(arg), writable=arg.role is Role.OUTPUT)
        for i, arg in enumerate(tensors)
    )
    setup = Setup(
        library=str(library),
        n_sets=n_sets,
        regions=regions,
        arguments=argument_lines(signature, places),
        workspace_bytes=_WORKSPACE_BYTES,
    )
    return setup.text()


def watched(
    runner: Confined, tool: WatchingTool, options: Iterable[str], *, signature: Signature, library: Path, folder: Path
) -> Confined:
    """Return the confined command `TOOL OPTIONS… HOST --alone SETUP`.

    `runner` is how the candidate's runner is confined: its command is the native host. `folder` is an empty folder that
    confined code may write to; the setup file is written there.
    """
    setup = folder / _SETUP
    setup.write_text(alone_setup(signature, library), encoding="utf-8")
    setup.chmod(0o644)
    return replace(
        runner,
        command=(str(tool.path), *options, *runner.command, "--alone", str(setup)),
        workdir=folder,
        readable=(*runner.readable, *tool.readable, library.parent),
        limits=_with_room(runner.limits),
        allow_processes=True,
        own_network=True,
    )


def reason_against(sandbox: Sandbox, runner: Confined | None) -> str:
    """Return why no tool can watch a candidate here, or ""."""
    if runner is None:
        return "there is no way to run the candidate alone"
    return sandbox.reason_against_own_network()


def _with_room(limits: Limits) -> Limits:
    """Return a runner's limits with room for the tool: it keeps copies of the GPU's memory, tables and a report."""
    return replace(
        limits,
        wall_s=90.0,
        cpu_s=1200,
        processes=1024,
        open_files=4096,
        memory_bytes=24 << 30,
        file_bytes=1 << 30,
        disk_bytes=4 << 30,
    )


def _region_bytes(arg: ArgSpec) -> int:
    """Return how many bytes a tensor spans, in whole units of a device's alignment."""
    size_bytes = max(spanned_elements(arg.shape, arg.strides), 1) * element_bytes(arg.dtype)
    return -(-size_bytes // _ALIGNMENT) * _ALIGNMENT
