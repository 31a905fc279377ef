"""KernelBench's files as problems: how many parse, how many run on a CPU and on an H200, and the reasons of the rest.

    PYTHONPATH=src python benchmarks/kernelbench_files.py PATH [--level N] [--judge]

PATH is a copy of KernelBench's repository; none of its files is kept. Memory is estimated from each reference's outline
(`tools/judge/outline.py`), for this machine's CPU and for a GPU of an H200's memory. `--judge` also loads each problem into
the real judge with its top-level sizes made small: it makes secret inputs, runs every trial in float64 and the probes.
What is there already is not done again.
"""

from __future__ import annotations

import argparse
import ast
import json
import secrets
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from result import RESULTS, write_result

from ridgeline.problems.kernelbench import Imported, import_file, kernelbench_files
from ridgeline.problems.spec import load_problem
from ridgeline.problems.syntax import assigned_values, substitute_sizes
from ridgeline.tools.judge.outline import Outline
from ridgeline.tools.judge.outline_process import OutlineProcess
from ridgeline.tools.machine.devices import detect_device
from ridgeline.tools.records.problem import Device
from ridgeline.tools.records.vocabulary import DeviceKind, PrecisionClass

NAME = "kernelbench"
H200_BYTES = 143_771 << 20  # nvidia-smi's total of an H200 SXM
SMALL_BYTES = 4 << 20
"""Bytes that live at once in one forward of a problem made small."""
LARGEST_BYTES = 3 << 29
"""The most bytes that judging may take of a machine that others use: a problem that stays larger is not loaded."""
FACTORS = (16, 64, 8, 256, 1024)
Entry = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--level", type=int, action="append")
    parser.add_argument("--judge", action="store_true")
    args = parser.parse_args()
    files = kernelbench_files(args.path, tuple(args.level or (1, 2, 3)))
    entries: dict[str, Entry] = _known()
    cpu = detect_device("cpu")
    gpu = replace(cpu, kind=DeviceKind.CUDA, name="NVIDIA H200", memory_bytes=H200_BYTES, cache_bytes=50 << 20)
    command = [sys.executable, str(Path(__file__).with_name("kernelbench_judge.py")), str(cpu.cores)]
    with (
        tempfile.TemporaryDirectory() as out,
        OutlineProcess() as outlines,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as judge,
    ):
        for file in files:
            imported = import_file(file, Path(out))
            entry = entries.get(file.id, {}) | {"name": file.problem_name, "parsed": imported.problem is not None}
            entries[file.id] = entry | (_outlined(imported, outlines, cpu, gpu) if imported.problem else {})
            if args.judge and imported.problem and "judged" not in entry:
                entries[file.id]["judged"] = _judged(imported, outlines, cpu, judge)
            print(file.id, json.dumps(entries[file.id]), flush=True)
            _write(entries, cpu)


def _known() -> dict[str, Entry]:
    path = RESULTS / f"{NAME}.json"
    known: dict[str, Entry] = json.loads(path.read_text())["figures"]["problems"] if path.exists() else {}
    return known


def _write(entries: dict[str, Entry], cpu: Device) -> None:
    levels = sorted({key.partition("/")[0] for key in entries}, key=int)
    counts = {
        f"level{level}": _counts([e for k, e in entries.items() if k.startswith(f"{level}/")]) for level in levels
    }
    write_result(NAME, {"counts": counts, "problems": entries}, device=cpu)


def _counts(entries: list[Entry]) -> Entry:
    judged = [entry["judged"] for entry in entries if "judged" in entry and entry["judged"]["tried"]]
    return {
        "files": len(entries),
        "parsed": sum(entry["parsed"] for entry in entries),
        **{
            place: {
                "runs": sum(entry.get(place, {}).get("code") == "" for entry in entries),
                "not": dict(Counter(e[place]["code"] for e in entries if place in e and e[place]["code"])),
            }
            for place in ("cpu", "h200")
        },
        "judged_small": {
            "tried": len(judged),
            "loaded": sum(j["reason"] == "" for j in judged),
            "degenerate": sum(j["degenerate"] != "" for j in judged),
        },
    }


def _outlined(imported: Imported, outlines: OutlineProcess, cpu: Device, gpu: Device) -> Entry:
    assert imported.problem is not None
    spec = load_problem(imported.problem)
    outline = outlines.outline(spec.reference_source("cpu"), PrecisionClass(spec.tolerance))
    return {
        "set_gb": round(outline.set_bytes / 1e9, 3),
        "parameter_gb": round(outline.parameter_bytes / 1e9, 3),
        "cpu": _fit(outline, cpu),
        "h200": _fit(outline, gpu),
    }


def _fit(outline: Outline, device: Device) -> Entry:
    found = outline.on(device)
    return {"code": found.code, "reason": found.reason, "judge_gb": round(outline.judge_bytes(device) / 1e9, 2)}


def _judged(imported: Imported, outlines: OutlineProcess, cpu: Device, judge: subprocess.Popen[str]) -> Entry:
    assert imported.problem is not None
    source = load_problem(imported.problem).reference_source("cpu")
    sizes, small, needed = _made_small(source, outlines, cpu)
    entry: Entry = {"sizes": sizes, "tried": needed <= LARGEST_BYTES, "reason": "", "degenerate": ""}
    if not entry["tried"]:
        return entry | {"reason": "its top-level numbers do not make it small"}
    request = {
        "reference_source": small,
        "interface": "c",
        "tolerance": "fp32",
        "device": "cpu",
        "call_limit_s": 60.0,
        "secret": secrets.token_hex(16),
        "cache_bytes": cpu.cache_bytes,
        "memory_bytes": cpu.memory_bytes,
    }
    assert judge.stdin is not None
    assert judge.stdout is not None
    began = time.monotonic()
    judge.stdin.write(json.dumps(request) + "\n")
    judge.stdin.flush()
    told: Entry = json.loads(judge.stdout.readline())
    return entry | told | {"load_s": round(time.monotonic() - began, 1)}


def _made_small(source: str, outlines: OutlineProcess, cpu: Device) -> tuple[dict[str, Any], str, int]:
    """Return the smallest sizes found with which the reference still runs, its text with them, and what judging takes."""
    best: tuple[int, dict[str, Any], str, int] | None = None
    for sizes in _attempts(source):
        text = substitute_sizes(source, sizes, "sizes")
        found = outlines.outline(text)
        if found.code:
            continue
        moved = found.forward_bytes
        if best is None or moved < best[0]:
            best = (moved, sizes, text, found.judge_bytes(cpu))
        if moved <= SMALL_BYTES:
            break
    return (best[1], best[2], best[3]) if best else ({}, source, 0)


def _attempts(source: str) -> Iterator[dict[str, Any]]:
    values = _numbers(ast.parse(source))
    batch = {name: 2 for name, n in values.items() if name == "batch_size" and n > 2}
    for least in (32, 256):
        for factor in FACTORS:
            smaller = {name: _smaller(value, least, factor) for name, value in values.items()}
            changed = {name: value for name, value in smaller.items() if value != values[name]}
            yield changed | batch
            yield changed
    yield batch
    yield {}


def _smaller(value: Any, least: int, factor: int) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(_smaller(v, least, factor) for v in value)
    return max(16, value // factor // 8 * 8) if isinstance(value, int) and value >= least else value


def _numbers(tree: ast.Module) -> dict[str, Any]:
    """Return the top-level names given a number, a product of numbers, or a list or tuple of these, and that once."""
    allowed = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.Tuple, ast.List, ast.operator, ast.unaryop, ast.expr_context)
    found = {}
    for name, (node, *further) in assigned_values(tree).items():
        if node is None or further:
            continue
        is_plain = all(isinstance(part, allowed) for part in ast.walk(node))
        value = eval(compile(ast.Expression(node), "sizes", "eval"), {}) if is_plain else None
        if isinstance(value, int | list | tuple) and not isinstance(value, bool):
            found[name] = value
    return found


if __name__ == "__main__":
    main()
