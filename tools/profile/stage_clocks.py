"""The time of the stages that a kernel's source names, taken by the clocks of a profile's build.

The build runs alone in the sandbox, over inputs of the host's own, and prints one line of numbers for each stage. It is
the candidate's process that prints, so a candidate can make its own stages wrong. They are advice and decide nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ridgeline.tools.build.stages import SLOTS, slot_of
from ridgeline.tools.errors import EngineError
from ridgeline.tools.judge.set_count import count_sets
from ridgeline.tools.profile.under_tool import alone_setup
from ridgeline.tools.records.dtypes import element_bytes, spanned_elements
from ridgeline.tools.records.problem import Device, Signature
from ridgeline.tools.records.results import StageTime
from ridgeline.tools.records.vocabulary import ArgKind
from ridgeline.tools.sandbox.rules import Confined, temporary_workdir
from ridgeline.tools.sandbox.sandbox import Sandbox

MOST_SET_BYTES = 1 << 30
_WALL_S = 60.0
_MOST_TEXT = 64 << 10  # of the process's output, at its end: every stage's line has some 30 bytes
_NUMBER = r"\d{1,15}(?:\.\d{1,12})?"
_CALLS = re.compile(r"^calls (\d{1,6}) (\d{1,15})$", re.MULTILINE)
_LINE = re.compile(rf"^(stage|cycles) (\d{{1,4}}) ({_NUMBER})$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageClocks:
    """The stages in the order of the source; `missing` says why there are none."""

    stages: tuple[StageTime, ...] = ()
    call_ms: float | None = None  # of the build with clocks
    missing: str = ""


def clock_stages(
    runner: Confined,
    names: Sequence[str],
    *,
    signature: Signature,
    library: Path,
    device: Device,
    sandbox: Sandbox,
) -> StageClocks:
    """Run a profile's build for half a second and return what its stages took; `runner` is how its host is confined."""
    set_bytes = sum(
        max(spanned_elements(a.shape, a.strides), 1) * element_bytes(a.dtype)
        for a in signature.args
        if a.kind is ArgKind.TENSOR
    )
    n_sets = _count(set_bytes, device)
    with temporary_workdir("ridgeline-stages-") as folder:
        setup = folder / "setup.txt"
        setup.write_text(alone_setup(signature, library, n_sets=n_sets), encoding="utf-8")
        setup.chmod(0o644)
        limits = replace(runner.limits, wall_s=_WALL_S, memory_bytes=runner.limits.memory_bytes + n_sets * set_bytes)
        confined = replace(
            runner,
            command=(*runner.command, "--stages", str(setup)),
            workdir=folder,
            readable=(*runner.readable, library.parent),
            limits=limits,
        )
        try:
            ended, output = sandbox.run(confined)
        except EngineError as error:
            return StageClocks(missing=f"the build with clocks could not be run: {error}")
    if not ended.is_success:
        return StageClocks(missing=f"the build with clocks did not finish: {ended.message or 'it failed'}")
    return read_stages(output[-_MOST_TEXT:], names)


def _count(set_bytes: int, device: Device) -> int:
    """Return over how many sets the calls rotate: as many as in a timing, where they fit into MOST_SET_BYTES."""
    wanted = count_sets(set_bytes, kind=device.kind, cache_bytes=device.cache_bytes, memory_bytes=device.memory_bytes)
    return max(1, min(wanted, MOST_SET_BYTES // max(set_bytes, 1)))


def read_stages(output: str, names: Sequence[str]) -> StageClocks:
    """Return the stages of these names in a program's output; a line that is out of bounds is passed over."""
    calls = _CALLS.search(output)
    count, total_ns = (int(calls[1]), int(calls[2])) if calls else (0, 0)
    if count == 0 or total_ns == 0:
        return StageClocks(missing="the build with clocks told no times")
    taken: dict[str, dict[int, float]] = {"stage": {}, "cycles": {}}
    for kind, slot, number in _LINE.findall(output):
        if int(slot) < SLOTS:
            taken[kind][int(slot)] = float(number)
    call_ms = total_ns / count / 1e6
    of_kernels, of_run = (_by_name(taken[kind], names) for kind in ("cycles", "stage"))
    whole = math.fsum(of_kernels.values())
    # Cycles of warps have no share in a call by themselves: the call is what they are shares of.
    found = {name: call_ms * cycles / whole for name, cycles in of_kernels.items()} if whole else of_run
    total = math.fsum(found.values())
    if not total:
        return StageClocks(call_ms=call_ms, missing="no stage of the source was reached")
    stages = tuple(StageTime(name=name, ms=ms, share=ms / total) for name, ms in found.items())
    return StageClocks(stages=stages, call_ms=call_ms)


def _by_name(taken: Mapping[int, float], names: Sequence[str]) -> dict[str, float]:
    """Return the times by name, in the names' order; names that share a slot share a line."""
    sharing: dict[int, list[str]] = {}
    for name in names:
        sharing.setdefault(slot_of(name), []).append(name)
    return {" or ".join(these): taken[slot] for slot, these in sharing.items() if taken.get(slot, 0.0) > 0}
