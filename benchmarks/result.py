"""One JSON result of a benchmark: the figures with what anyone needs to repeat them."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ridgeline.tools.build.toolchain import installed_version
from ridgeline.tools.machine.devices import detect_device
from ridgeline.tools.records.keys import JUDGE_VERSION
from ridgeline.tools.records.problem import Device
from ridgeline.tools.records.vocabulary import DeviceKind

if TYPE_CHECKING:
    from ridgeline import SearchResult

RESULTS = Path(__file__).parent / "results"
SCHEMA_VERSION = 1
ARCHIVED = "commit.txt"
"""Beside this file: `git archive` writes the commit into it (`.gitattributes`, export-subst)."""
KEPT = (
    "idea",
    "speedup",
    "speedup_ci95",
    "speedup_vs_best",
    "speedup_vs_seed",
    "median_ms",
    "precision_class",
    "labels",
)
"""Fields of a search's winner that a table keeps."""


def write_result(name: str, figures: Mapping[str, Any], *, device: Device | None = None) -> Path:
    """Write `benchmarks/results/NAME.json` with device, command, date and commit, and return its path."""
    content = {
        "schema_version": SCHEMA_VERSION,
        "benchmark": name,
        **provenance(),
        "device": (device or detect_device("cpu")).to_json(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "compiler": installed_version(DeviceKind.CPU),
        "figures": dict(figures),
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(content, indent=2) + "\n")
    return path


def merge_result(name: str, entries: Mapping[str, Any], *, device: Device | None = None) -> Path:
    """Write `entries` beside those that `benchmarks/results/NAME.json` holds already, and return its path.

    Each entry says when and on which device it was measured: what took minutes is kept also where the file has another
    device's figures. A table that has no column for the device takes those of one alone.
    """
    device = device or detect_device("cpu")
    known = RESULTS / f"{name}.json"
    before = json.loads(known.read_text()) if known.exists() else {"figures": {}}
    kept = {
        key: _measured(e, before, {"device_name": before["device"]["name"]}) for key, e in before["figures"].items()
    }
    on = {"device": device.uuid, "device_name": device.name, "driver": device.driver}
    added = {key: {**e, "measured": e.get("measured", provenance()) | on} for key, e in entries.items()}
    return write_result(name, kept | added, device=device)


def _measured(entry: Mapping[str, Any], file: Mapping[str, Any], on: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry that says how it was measured, by its file where it does not itself."""
    told = {key: file[key] for key in ("date", "command", "commit", "judge_version") if key in file}
    return {**entry, "measured": {**on, **entry.get("measured", told)}}


def write_sizes(name: str, found: Sequence[Mapping[str, Any]], device: Device) -> Path:
    """Write the sizes measured so far, beside the machine's load: a run that is cut short keeps what it has."""
    figures = {"load_average": os.getloadavg()[1], "sizes": list(found)}
    return write_result(f"{name}-{device.kind.value}", figures, device=device)


def best_of(report: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what is kept of the winner of a search's report, None when it has none."""
    best = report["best"]
    return {key: best.get(key) for key in KEPT} if best else None


def end_of(result: SearchResult) -> dict[str, Any]:
    """Return how a search ended: what is kept of its result."""
    report = result.report
    counts = {key: report[key] for key in ("rounds", "candidates", "tuned", "wall_s")}
    return {"state": result.state, "certified": result.certified, "best": best_of(report), **counts}


def provenance() -> dict[str, Any]:
    """Return date, command, commit and judge of a measurement: of a file, or of one entry that several runs fill."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": " ".join(["python", *map(_told, sys.argv)]),
        "commit": commit_of(Path(__file__).parent),
        "judge_version": JUDGE_VERSION,
    }


def _told(argument: str) -> str:
    """Return an argument as a result tells it: where a copy of another repository lies on a machine is no part of it."""
    place, checkout = Path(argument).resolve(), Path(__file__).resolve().parents[1]
    return "PATH" if place.is_dir() and not place.is_relative_to(checkout) else argument


def commit_of(folder: Path) -> str:
    """Return the commit of a tree by its benchmarks folder, with "+changes" when it differs; "" where nothing tells.

    A tree of `git archive` has its commit in a file, and is not asked for changes: git would answer for a repository
    around it, and later changes to such a tree are not seen. Results and the pages that show them are no part of what
    is measured.
    """
    archived = folder / ARCHIVED
    if archived.is_file() and re.fullmatch("[0-9a-f]{40}", text := archived.read_text().strip()):
        return text
    commit = _git(folder, "rev-parse", "HEAD")
    code = ("--", ":/", ":(top,exclude)benchmarks/results", ":(top,exclude)docs")
    return commit + (
        "+changes" if commit and _git(folder, "status", "--porcelain", "--untracked-files=no", *code) else ""
    )


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""
