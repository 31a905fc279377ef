"""suite.json: several searches, the end of each, and their common scores; see docs/contracts.md."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from enum import StrEnum
from pathlib import Path
from types import NoneType
from typing import Any, TypeVar

from ridgeline.checkpoints.runs.folders import is_locked
from ridgeline.checkpoints.storage.errors import storage_errors
from ridgeline.checkpoints.storage.own_files import replace_file
from ridgeline.checkpoints.storage.strict_json import finite, pretty
from ridgeline.tools.errors import RunError
from ridgeline.tools.records.vocabulary import RunState, SearchOutcome

FILE_NAME = "suite.json"
SCHEMA_VERSION = 1
FAST_P = (0.0, 1.0, 1.5, 2.0)
"""Speedups p for which fast_p is told, KernelBench's measure (Ouyang et al., 2025, arXiv:2502.10517)."""

_IN_WORDS: dict[type, str] = {
    int: "a whole number",
    list: "a list",
    dict: "an object",
    str: "text",
    bool: "true or false",
}
_OPTIONAL: dict[str, type] = {"state": str, "reason": str, "correct": bool, "certified": bool}

S = TypeVar("S", bound=StrEnum)


class RowState(StrEnum):
    """The state of one problem of a suite: its run's, or why it has no run."""

    PLANNED = "planned"
    REFUSED = "refused"  # by the reference, the device or the offline model
    FAILED = "failed"  # by a fault of the machine or of Ridgeline
    RUNNING = RunState.RUNNING.value
    STOPPED = RunState.STOPPED.value
    WAITING = RunState.WAITING.value
    FINISHED = RunState.FINISHED.value
    BUDGET = RunState.BUDGET.value
    AT_FLOOR = RunState.AT_FLOOR.value
    STALLED = RunState.STALLED.value
    NO_GAIN = RunState.NO_GAIN.value


class SuiteState(StrEnum):
    """The state of a suite."""

    RUNNING = "running"
    STOPPED = "stopped"
    FINISHED = "finished"


DONE = frozenset(RowState(outcome) for outcome in SearchOutcome)
"""States of rows that a resumed suite leaves alone."""
ENDED = DONE | {RowState.REFUSED, RowState.FAILED}
"""States of rows that a suite has tried. A resumed suite tries refused and failed rows again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One problem of a suite and the end of its search."""

    name: str
    problem: str  # its problem.yaml
    run: str  # the search's folder, relative to the suite's
    state: RowState = RowState.PLANNED
    reason: str = ""  # why it was refused or failed
    correct: bool = False  # it has a kernel that passed verification and was timed
    speedup: float | None = None  # eager PyTorch of the kernel's precision class / kernel
    speedup_ci95: tuple[float, float] | None = None
    speedup_vs_best: float | None = None  # the fastest baseline, torch.compile included / kernel
    certified: bool = False
    precision_class: str | None = None

    def ended(self, report: dict[str, Any], *, state: RunState, certified: bool) -> Row:
        """Return the row of a search that ended, given its result.json."""
        best = report.get("best") or {}
        ends = best.get("speedup_ci95") or ()
        return replace(
            self,
            state=RowState(state),
            reason="",
            correct=best.get("speedup") is not None,
            speedup=best.get("speedup"),
            speedup_ci95=(ends[0], ends[1]) if ends and None not in ends else None,
            speedup_vs_best=best.get("speedup_vs_best"),
            certified=certified,
            precision_class=best.get("precision_class"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """The request and the progress of a suite."""

    options: dict[str, Any] = field(default_factory=dict)  # of `ridgeline run`, for every search
    rows: tuple[Row, ...] = ()
    state: SuiteState = SuiteState.RUNNING

    def with_row(self, index: int, row: Row) -> Suite:
        """Return the suite with the row at `index` replaced."""
        return replace(self, rows=(*self.rows[:index], row, *self.rows[index + 1 :]))

    def to_json(self) -> dict[str, Any]:
        """Return the content of suite.json."""
        content: dict[str, Any] = finite(
            {
                "schema_version": SCHEMA_VERSION,
                "state": self.state,
                "options": self.options,
                "problems": [asdict(row) for row in self.rows],
                "scores": scores(self.rows),
            }
        )
        return content


def scores(rows: Sequence[Row]) -> dict[str, Any]:
    """Return fast_p and the geometric mean over both baselines.

    fast_p = problems with a correct kernel of speedup > p / all problems. A problem that was refused, failed or has no
    kernel yet counts as a problem without a kernel. The geometric mean is over the correct kernels alone.
    """
    correct = [row for row in rows if row.correct]
    return {
        "problems": len(rows),
        "ended": sum(row.state in DONE for row in rows),
        "correct": len(correct),
        "certified": sum(row.certified for row in rows),
        "over_eager": _score([row.speedup for row in correct], len(rows)),
        "over_best_baseline": _score([row.speedup_vs_best for row in correct], len(rows)),
    }


def _score(speedups: list[float | None], problems: int) -> dict[str, Any]:
    known = [s for s in speedups if s is not None and s > 0]
    mean = math.exp(math.fsum(map(math.log, known)) / len(known)) if known else None
    shares = {f"{p:g}": sum(s > p for s in known) / problems if problems else 0.0 for p in FAST_P}
    return {"fast_p": shares, "geometric_mean": mean, "kernels": len(known)}


def write_suite(folder: Path, suite: Suite) -> None:
    """Put suite.json into the suite's folder in one step.

    Raises:
        StorageError: the folder cannot be written or the disk is full.
    """
    replace_file(folder / FILE_NAME, pretty(suite.to_json()))


def read_suite(folder: Path) -> Suite:
    """Return the suite of a folder.

    Raises:
        RunError: there is none, or of another version.
    """
    path = folder / FILE_NAME
    if not path.is_file():
        raise RunError(f"{folder}: holds no {FILE_NAME}; name a suite's folder, or begin one without --resume")
    with storage_errors(path):
        stored = path.read_bytes()
    try:
        content = json.loads(stored)
        _expect(content, {"schema_version": int}, "it")
        if content["schema_version"] != SCHEMA_VERSION:
            raise RunError(
                f"{path}: is of version {content['schema_version']}; resume it with the Ridgeline of its own"
            )
        _expect(content, {"problems": list, "options": dict, "state": str}, "it")
        rows = tuple(_row(number, row) for number, row in enumerate(content["problems"], start=1))
        state = _state(SuiteState, content["state"], "it")
    except RecursionError:
        raise RunError(f"{path}: is damaged: it is nested too deep; restore it or begin a new suite") from None
    except (TypeError, ValueError) as error:
        raise RunError(f"{path}: is damaged: {error}; restore it or begin a new suite") from None
    for row in rows:
        _expect_inside(path, folder, row)
    return Suite(options=content["options"], rows=rows, state=state)


def _state(kind: type[S], stored: str, where: str) -> S:
    """Return the state that a text names; ValueError, in words, when it names none."""
    try:
        return kind(stored)
    except ValueError:
        raise ValueError(f"{where}: {stored!r} is no state") from None


def _row(number: int, value: Any) -> Row:
    """Return a problem's row; TypeError or ValueError, in words, for a value that is no row."""
    where = f"problem {number}"
    _expect(value, {"name": str, "problem": str, "run": str}, where)
    if unknown := sorted(value.keys() - {each.name for each in fields(Row)}):
        raise ValueError(f"{where} has a field {unknown[0]!r}, which none has")
    _expect({"state": "planned", "reason": "", "correct": False, "certified": False} | value, _OPTIONAL, where)
    read = {
        "state": _state(RowState, value.get("state", RowState.PLANNED), where),
        "speedup_ci95": _interval(value.get("speedup_ci95"), where),
    }
    row = Row(**value | read)
    for name in ("speedup", "speedup_vs_best"):
        if type(getattr(row, name)) not in (int, float, NoneType):
            raise TypeError(f"{where}: its {name} is no number")
    if not isinstance(row.precision_class, str | None):
        raise TypeError(f"{where}: its precision_class is no text")
    if "\0" in row.run + row.problem:
        raise ValueError(f"{where}: no path holds a null character")
    return row


def _interval(value: Any, where: str) -> tuple[float, float] | None:
    """Return an interval of two numbers, or None; TypeError, in words, for anything else."""
    if value is None:
        return None
    if not isinstance(value, list | tuple) or len(value) != 2 or not all(type(end) in (int, float) for end in value):
        raise TypeError(f"{where}: its speedup_ci95 is no pair of numbers")
    return (value[0], value[1])


def _expect(value: Any, wanted: dict[str, type], where: str) -> None:
    """Raise TypeError or ValueError, in words, when `value` is no object with these fields."""
    if not isinstance(value, dict):
        raise TypeError(f"{where} holds {json.dumps(value)[:40]} in the place of an object with fields")
    for name, kind in wanted.items():
        if name not in value:
            raise ValueError(f"{where} has no {name}")
        if not isinstance(value[name], kind) or (kind is int and isinstance(value[name], bool)):
            raise TypeError(f"{where}: {name} is {json.dumps(value[name])[:40]}, not {_IN_WORDS[kind]}")


def _expect_inside(path: Path, folder: Path, row: Row) -> None:
    """Refuse a run folder outside of the suite's folder, because its search would write there.

    Raises:
        RunError: the run folder leads out of the suite's folder, by its name or through a link.
    """
    real, place = folder.resolve(), (folder / row.run).resolve()
    if place == real or not place.is_relative_to(real):
        raise RunError(
            f"{path}: the run folder {row.run!r} of {row.name} does not lie in the suite; restore it or begin a new suite"
        )


def find_suite(runs_dir: Path, wanted: str) -> Path:
    """Return the suite folder that a user names by path or by name below `runs_dir`; "" is the newest unfinished one.

    Raises:
        RunError: there is none; when one of several cannot be read, the message is about that one.
    """
    for folder in (Path(wanted), runs_dir / wanted) if wanted else ():
        if (folder / FILE_NAME).is_file():
            return folder
    if wanted:
        raise RunError(f"{wanted}: no such suite; name its folder, which holds {FILE_NAME}")
    files = [path for path in runs_dir.glob(f"*/{FILE_NAME}") if path.is_file()]
    damage: RunError | None = None
    for path in sorted(files, key=lambda path: path.stat().st_mtime, reverse=True):
        try:
            if not is_locked(path.parent) and read_suite(path.parent).state is not SuiteState.FINISHED:
                return path.parent
        except RunError as error:  # an older one may go on
            damage = damage or error
    if damage:
        raise damage
    raise RunError(f"{runs_dir}: no unfinished suite; leave --resume out to begin one, or name its folder")
