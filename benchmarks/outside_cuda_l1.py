"""Three of CUDA-L1's published kernels that do not compute what they were asked for.

    PYTHONPATH=src python benchmarks/outside_cuda_l1.py PATH [NAME …]

PATH is a copy of deepreinforce-ai/CUDA-L1. `optimized_cuda_code/GPU.json` holds a line of JSON a problem: `level_id`,
`task_id`, `ref_code`, `custom_code`, `score_default` (the published speedup). The H100's are taken, or those of the
first GPU whose file is there.

- level 1, problem 9: a matrix product that returns an object which computes when it is looked at
- level 2, problem 80: the reference subtracts a mean over one element, so its output is zero everywhere
- level 2, problem 83: a minimum with zero, then a clamp from zero on: zero everywhere again
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from outside_suite import REJECTED, Published, run, text_of

PROBLEMS = ((1, 9), (2, 80), (2, 83))
FOLDER = "optimized_cuda_code"
GPUS = ("h100", "a100", "h20", "l40", "3090")


def read(suite: Path) -> list[Published]:
    """Return the three kernels; a problem without a published kernel is left out."""
    path = next((p for gpu in GPUS if (p := suite / FOLDER / f"{gpu}.json").is_file()), suite / FOLDER / "h100.json")
    entries = [json.loads(line) for line in text_of(path).splitlines() if line.strip()]
    chosen = [e for e in entries if (e["level_id"], e["task_id"]) in PROBLEMS and e["custom_code"]]
    return [_published(entry) for entry in chosen]


def _published(entry: dict[str, Any]) -> Published:
    return Published(
        name=f"level{entry['level_id']}-{entry['task_id']}",
        reference=entry["ref_code"],
        source=entry["custom_code"],
        expected=REJECTED,
        known={"published speedup": entry["score_default"]},
    )


if __name__ == "__main__":
    run("cuda-l1", "CUDA-L1's kernels for level 1 problem 9 and level 2 problems 80 and 83", read)
