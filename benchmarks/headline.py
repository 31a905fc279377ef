"""The headline table: PyTorch, the floor, the best seed and what the offline model finds, for each headline problem.

    PYTHONPATH=src python benchmarks/headline.py [PROBLEM …] [--search-s 180] [--device cuda]

Each problem's entry is written as it ends, so a run that is cut short keeps what it has; runs of single problems merge
into one table. On a GPU PyTorch's figures are also taken by Triton's timer in the same run, under sustained load
(`independent_ms`) and in short bursts (`independent_short_ms`): see independent.py.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from result import RESULTS, end_of, merge_result, provenance

import ridgeline
from ridgeline.problems.kernel_files import SOURCE_SUFFIX
from ridgeline.problems.spec import Budget, shipped_problems
from ridgeline.tools.errors import RidgelineError
from ridgeline.tools.machine.devices import detect_device
from ridgeline.tools.machine.locks import DeviceLock
from ridgeline.tools.records.problem import Device
from ridgeline.tools.records.vocabulary import DeviceKind

HEADLINE = (
    "matmul",
    "conv2d",
    "conv2d_relu_maxpool",
    "softmax",
    "layernorm",
    "matmul_fp16",
    "attention_fp16",
    "attention_fp16_d128",
)
INDEPENDENT = Path(__file__).parent / "independent.py"
INDEPENDENT_LIMIT_S = 300


def main() -> None:
    """Measure each problem and print its row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("problems", nargs="*", default=HEADLINE, help="shipped problems")
    parser.add_argument("--search-s", type=float, default=180.0, help="seconds of search each; 0 for none")
    parser.add_argument("--device", default="cuda")
    arguments = parser.parse_args()
    device = detect_device(arguments.device)
    name = f"headline-{device.kind.value}"
    for problem in arguments.problems:
        entry = measure(shipped_problems()[problem], arguments.device, device, arguments.search_s)
        merge_result(name, {problem: entry}, device=device)
        print(json.dumps({problem: entry}), flush=True)


def measure(path: Path, device_name: str, device: Device, search_s: float) -> dict[str, Any]:
    """Return a problem's entry."""
    seeds = sorted((path.parent / "seeds").glob(f"*{SOURCE_SUFFIX[device.kind.value]}"))
    lines = [judged.to_dict() for judged in ridgeline.evaluate(path, seeds, device=device_name)]
    timed = [line for line in lines if line["status"] == "ok"]
    best = min(timed, key=lambda line: float(line["median_ms"]), default=None)
    first: dict[str, Any] = next((line for line in lines if line["baselines"]), {"baselines": [], "floor_ms": None})
    entry: dict[str, Any] = {
        "measured": provenance(),
        "baselines_ms": {b["name"]: b["median_ms"] for b in first["baselines"]},
        "baseline_classes": {b["name"]: b["precision_class"] for b in first["baselines"]},
        "baseline_errors": {b["name"]: b["error"] for b in first["baselines"] if b["error"]},
        "floor_ms": first["floor_ms"],
        "seeds": {line["file"].rsplit("/", 1)[-1]: _seed(line) for line in lines},
        "best_seed_ms": best["median_ms"] if best else None,
    }
    if device.kind is DeviceKind.CUDA:
        entry |= independent(path, device.uuid)
    if search_s > 0:
        entry["search"] = search(path, device_name, search_s)
    return entry


def _seed(line: dict[str, Any]) -> dict[str, Any]:
    kept = ("status", "reason", "median_ms", "speedup", "speedup_vs_best", "precision_class", "build_s", "total_s")
    return {key: line[key] for key in kept}


def independent(path: Path, uuid: str) -> dict[str, Any]:
    """Return Triton's figures of the same reference, {mode: ms} for each way of loading the chip.

    A mode that PyTorch refuses has its words; where there are no figures at all, the entry says why.
    """
    found = asyncio.run(_alone(path, uuid))
    if isinstance(found, str):
        return {"independent_ms": found, "independent_short_ms": found}
    return {"independent_ms": found["sustained"], "independent_short_ms": found["short"]}


async def _alone(path: Path, uuid: str) -> dict[str, dict[str, float | str]] | str:
    async with DeviceLock(uuid).exclusive():
        return await asyncio.to_thread(_from_triton, path)


def _from_triton(path: Path) -> dict[str, dict[str, float | str]] | str:
    try:
        done = subprocess.run(
            [sys.executable, str(INDEPENDENT), str(path)],
            capture_output=True,
            text=True,
            timeout=INDEPENDENT_LIMIT_S,
            check=True,
        )
    except subprocess.CalledProcessError as error:
        said = str(error.stderr).strip().splitlines()
        return said[-1] if said else str(error)
    except subprocess.TimeoutExpired as error:
        return str(error)
    found: dict[str, dict[str, float | str]] = json.loads(done.stdout.splitlines()[-1])
    return found


def search(path: Path, device_name: str, seconds: float) -> dict[str, Any]:
    """Return how a search with the offline model ended."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            result = ridgeline.search(
                path,
                models=["offline"],
                device=device_name,
                rounds=20,
                budget=Budget(wall_s=seconds),
                run_dir=Path(folder) / "run",
            )
        except RidgelineError as error:
            return {"state": "refused", "reason": str(error)}
        report = result.report
        found = report["best"]
        source = Path(folder) / "run" / found["source_path"] if found else None
        if source is not None and source.exists():
            kept = RESULTS / "kernels" / f"{path.parent.name}-{report['device']['kind']}{source.suffix}"
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(source.read_text())
    return end_of(result)


if __name__ == "__main__":
    main()
