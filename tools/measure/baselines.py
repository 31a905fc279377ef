"""PyTorch's own times for a problem: eager and torch.compile, each measured once and kept on disk.

Every mode runs in a judge of its own. A crash or a hang of the compiler ends that process and becomes an entry with an
`error`: a baseline that failed is a fact about PyTorch, not about the search. A judge that died or a compiler that was
killed is none: the mode is tried once more, and an entry that was killed again is not kept on disk. The modes are
minutes apart, so each is timed in alternation with eager in one process and put on one scale:

entry's time = eager entry's time x median of (mode / eager)
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ridgeline.tools.build.toolchain import installed_version
from ridgeline.tools.errors import EngineError, NoRoomError, RidgelineError
from ridgeline.tools.judge.messages import PrepareMode
from ridgeline.tools.judge.process import JudgeProcess
from ridgeline.tools.machine.kept_records import read_kept
from ridgeline.tools.machine.logs import logger_of
from ridgeline.tools.machine.places import is_older, replace_json
from ridgeline.tools.measure.benchmark import time_alone, time_relative
from ridgeline.tools.measure.ceilings import ceilings
from ridgeline.tools.measure.floor import floor_for
from ridgeline.tools.measure.refused_contents import within_domain
from ridgeline.tools.measure.sides import ReferenceInJudge
from ridgeline.tools.measure.statistics import StoppingRule, percentile
from ridgeline.tools.measure.timing_settings import LONG_BLOCK_S, TimingSettings
from ridgeline.tools.records.baselines import Baseline, Baselines
from ridgeline.tools.records.keys import JUDGE_VERSION
from ridgeline.tools.records.problem import DescribedTarget, Description, Device
from ridgeline.tools.records.reference_mode import (
    ATTENTION_MODES,
    COMPILED_MODES,
    EAGER_MODES,
    MODES_ON,
    WITH_TF32,
    ReferenceMode,
)
from ridgeline.tools.records.vocabulary import DeviceKind, PrecisionClass

logger = logger_of(__name__)

BASELINES_VERSION = 2
"""Part of the cached files' names: raise it when baselines are measured differently."""
EAGER_KEPT_S = 3600.0
"""Seconds for which eager's time on the disk holds (it takes about 5 s), another mode's failure, and a busy machine's time."""
COMPILE_LIMIT_S = 300.0
"""torch.compile takes 20 to 60 s a mode on 2 cores. A mode that needs longer than this limit counts as failed."""
PRODUCTS = ("mm", "bmm", "addmm", "baddbmm", "matmul", "linear", "convolution")
"""Operations that run in tf32 when a GPU's flags allow it."""
SETTINGS = TimingSettings(rule=StoppingRule(smallest=10, largest=60, time_s=3.0, patience_s=20.0), block_s=LONG_BLOCK_S)

StartJudge = Callable[[], JudgeProcess]


@dataclass(frozen=True, slots=True, kw_only=True)
class _KeptBaseline(Baseline):
    """A baseline as the cache folder keeps it: with eager's time, on whose scale it is."""

    eager_ms: float | None = None  # None: eager's own entry

    def is_sound(self, eager: Baseline | None) -> bool:
        """Say whether every time is one, and the scale is there where the entry needs it."""
        times = [ms for ms in (self.median_ms, self.p10_ms, self.p90_ms, self.eager_ms) if ms is not None]
        has_scale = eager is None or self.median_ms is None or self.eager_ms is not None
        return has_scale and all(0 < ms < math.inf for ms in times)


def measure_baselines(
    problem: DescribedTarget,
    *,
    start_judge: StartJudge,
    cache_dir: Path,
    compile_modes: tuple[ReferenceMode, ...] = COMPILED_MODES,
    settings: TimingSettings = SETTINGS,
    again: bool = False,
    eager_only: bool = False,
) -> Baselines:
    """Return PyTorch's times and the floor for a problem; `start_judge` starts a fresh judge with it loaded.

    Entries on disk for this reference, device, torch and host compiler are not measured again, with three exceptions after
    an hour: eager, since a machine's speed changes and every other mode is a ratio to it; a mode that failed, since what
    it lacked may be there by now; and one measured beside other programs, which slow eager and it unequally. `again`
    measures everything but what failed within the hour. `eager_only` leaves every other mode `pending`.

    Raises:
        ProblemError: the reference cannot be judged.
        EngineError: eager PyTorch itself cannot be timed.
    """
    floor = floor_for(problem.description, ceilings(problem.device), problem.tolerance)
    modes = modes_of(problem.device, compile_modes, problem.description)
    chosen = [mode for mode in modes if mode in EAGER_MODES or not eager_only]
    entries: list[Baseline] = []
    for mode in chosen:
        path = _path(cache_dir, problem, mode)
        eager = entries[0] if entries else None
        entries.append(_kept_or_measured(mode, path, start_judge, settings, eager=eager, again=again))
    pending = tuple(mode for mode in modes if mode not in chosen)
    return Baselines(device=problem.device, entries=tuple(entries), floor=floor, pending=pending)


def measure_next(
    problem: DescribedTarget,
    after: Baselines,
    *,
    start_judge: StartJudge,
    cache_dir: Path,
    settings: TimingSettings = SETTINGS,
    again: bool = False,
) -> Baselines:
    """Return `after` with its first pending mode measured, on the scale of its eager entry; a failure is an entry too.

    `again` measures also what is on the disk, but a failure within the hour.
    """
    if not after.pending:
        return after
    mode, *rest = after.pending
    path = _path(cache_dir, problem, mode)
    entry = _kept_or_measured(mode, path, start_judge, settings, eager=after.entries[0], again=again)
    return replace(after, entries=(*after.entries, entry), pending=tuple(rest))


def _path(cache_dir: Path, problem: DescribedTarget, mode: ReferenceMode) -> Path:
    return cache_dir / "baselines" / f"{baseline_key(problem, mode)}.json"


def _kept_or_measured(
    mode: ReferenceMode,
    path: Path,
    start_judge: StartJudge,
    settings: TimingSettings,
    *,
    eager: Baseline | None,
    again: bool = False,
) -> Baseline:
    known = _read(path, eager)
    if known is not None and not _is_due(known, path, eager) and not (again and known.median_ms is not None):
        return known
    entry = _measure(mode, start_judge, settings, eager=eager)
    if not entry.was_killed:
        _publish(path, entry, eager)
    return entry


def modes_of(
    device: Device, compile_modes: tuple[ReferenceMode, ...], description: Description | None = None
) -> tuple[ReferenceMode, ...]:
    """Return the modes to time that PyTorch has on the device, eager first.

    Each mode also with TF32 on where the reference has fp32 products or no graph tells, and each backend of attention
    where the reference has attention.
    """
    modes = (ReferenceMode.EAGER, *compile_modes)
    graph = description.reference_graph if description else None
    if graph is None or any(_is_fp32_product(node) for node in graph["nodes"]):
        modes = tuple(each for mode in modes for each in (mode, WITH_TF32[mode]))
    if graph is not None and any("scaled_dot_product" in node["op"] for node in graph["nodes"]):
        modes += ATTENTION_MODES
    return tuple(mode for mode in modes if mode in MODES_ON[device.kind])


def _is_fp32_product(node: dict[str, Any]) -> bool:
    return node["dtype"] == "float32" and any(f"aten.{name}." in node["op"] for name in PRODUCTS)


def baseline_key(problem: DescribedTarget, mode: ReferenceMode) -> str:
    """Return the hash of all that decides a baseline: reference with its sizes, device, torch, compiler, versions."""
    device = problem.device.to_json()
    torch_version = problem.description.torch_version
    parts = [BASELINES_VERSION, JUDGE_VERSION, mode, problem.reference_source, torch_version, device]
    if mode.compile_mode:
        parts.append(installed_version(DeviceKind.CPU))  # inductor's compiler; without one the mode fails
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _measure(
    mode: ReferenceMode, start_judge: StartJudge, settings: TimingSettings, *, eager: Baseline | None
) -> Baseline:
    started = time.perf_counter()
    if mode.compile_mode:
        logger.info("baseline %s: PyTorch compiles the reference, once (20 to 60 s on few cores)", mode)
    entry = _tried(mode, start_judge, settings, eager)
    if entry.was_killed:
        logger.warning("baseline %s: %s: trying again", mode, entry.error)
        entry = _tried(mode, start_judge, settings, eager)
    outcome = f"{entry.median_ms:.4g} ms" if entry.median_ms is not None else f"failed: {entry.error}"
    logger.info("baseline %s: %s (took %.0f s)", mode, outcome, time.perf_counter() - started)
    return entry


def _tried(mode: ReferenceMode, start_judge: StartJudge, settings: TimingSettings, eager: Baseline | None) -> Baseline:
    try:
        judge = start_judge()
        try:
            return _time_mode(judge, mode, settings, eager)
        finally:
            judge.close()
    except RidgelineError as error:
        if eager is None:
            raise
        text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        was_killed = error.was_killed or isinstance(error, NoRoomError)
        return Baseline(
            name=mode, precision_class=PrecisionClass.FP32, median_ms=None, error=text, was_killed=was_killed
        )


def _time_mode(judge: JudgeProcess, mode: ReferenceMode, settings: TimingSettings, eager: Baseline | None) -> Baseline:
    ready = judge.ask(PrepareMode(mode=mode), timeout_s=COMPILE_LIMIT_S)
    if ready.measured is None and eager is not None:
        raise EngineError(f"{mode}: its output fits no precision class (relative error {ready.rel_error:.3g})")
    side = ReferenceInJudge(judge, mode)
    if eager is None or eager.median_ms is None:
        timing, unit_ms = within_domain(judge, lambda: time_alone(side, judge, settings=settings)), 1e3
    else:
        other, unit_ms = ReferenceInJudge(judge), eager.median_ms
        timing = within_domain(judge, lambda: time_relative(side, other, judge, settings=settings))
    median_ms, p10_ms, p90_ms = (unit_ms * percentile(timing.values, p) for p in (50, 10, 90))
    return Baseline(
        name=mode,
        precision_class=ready.measured,
        median_ms=median_ms,
        p10_ms=p10_ms,
        p90_ms=p90_ms,
        samples=len(timing.values),
        rel_error=ready.rel_error,
        was_busy=timing.was_busy,
    )


def _is_due(known: Baseline, path: Path, eager: Baseline | None) -> bool:
    """Say whether a kept entry is to be measured anew: eager, failures and what a busy machine measured, after an hour."""
    return (eager is None or known.median_ms is None or known.was_busy) and is_older(path, EAGER_KEPT_S)


def _read(path: Path, eager: Baseline | None) -> Baseline | None:
    """Return a kept entry, its ratio to eager applied to `eager`'s time."""
    kept = read_kept(path, _KeptBaseline)
    if kept is None or not kept.is_sound(eager):
        return None
    fields = {f.name: getattr(kept, f.name) for f in dataclasses.fields(Baseline)}
    entry = Baseline(**fields | {"stored_on": _written_on(path)})
    return entry if eager is None else _rescaled(entry, kept.eager_ms, eager)


def _written_on(path: Path) -> str:
    """Return the local day and minute at which an entry was written; "" where the file has none."""
    try:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(path.stat().st_mtime))
    except (OSError, ValueError, OverflowError):
        return ""


def _rescaled(entry: Baseline, eager_ms: float | None, eager: Baseline) -> Baseline:
    if entry.median_ms is None or eager.median_ms is None or eager_ms is None:
        return entry
    by = eager.median_ms / eager_ms
    low, high = (None if ms is None else ms * by for ms in (entry.p10_ms, entry.p90_ms))
    return replace(entry, median_ms=entry.median_ms * by, p10_ms=low, p90_ms=high)


def _publish(path: Path, entry: Baseline, eager: Baseline | None) -> None:
    """Keep an entry; where the disk refuses, the next call measures again."""
    try:
        replace_json(path, entry.to_json() | {"eager_ms": eager.median_ms if eager else None})
    except OSError as error:
        logger.warning("baseline %s is not kept: %s: %s", entry.name, path.parent, error.strerror or error)
