"""The recorded searches, each replayed twice: whether both decide alike, how large their prompts are, what ideas named.

    PYTHONPATH=src python benchmarks/replays.py [RECORDING …] [--name replays]

Answers and times are the recorded ones: nothing is asked, built or run, and the recorded device need not be there. Calls that
were not recorded, as the last repairs of a search whose time was over, are left out, and so is a last round whose sweep was
not recorded. Prompts are those of the templates at hand.
`ideas that name the largest stage` is result.json's `largest_stage` (docs/contracts.md).
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ablation import rounds_begun
from decisions import decisions
from prompt_sizes import run_prompts, sizes_of
from result import write_result

from ridgeline import search
from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.recording.file import read_recording
from ridgeline.checkpoints.result import build_result
from ridgeline.tools.errors import NotRecorded

RECORDINGS = Path(__file__).parent / "recordings"


def main() -> None:
    """Replay each recording twice, print a line for each and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("recordings", nargs="*", type=Path, help="default: those that ship")
    parser.add_argument("--name", default="replays", help="writes benchmarks/results/NAME.json")
    arguments = parser.parse_args()
    paths = arguments.recordings or sorted(RECORDINGS.glob("*.jsonl"))
    figures = {}
    for path in paths:
        with tempfile.TemporaryDirectory(prefix="replays-") as folder:
            figures[path.stem] = measure(path, Path(folder))
        print(told(path.stem, figures[path.stem]), flush=True)
    print(write_result(arguments.name, figures, device=read_recording(paths[0]).run.device))


def measure(path: Path, folder: Path, *, replays: int = 2) -> dict[str, Any]:
    """Return the figures of one recording, replayed into so many runs below `folder`."""
    runs = [folder / str(i) for i in range(replays)]
    try:
        rounds = rounds_begun(read_recording(path))
        states = [_replayed(path, run, rounds) for run in runs]
    except NotRecorded:  # the last round broke off: what it goes on with, as a sweep, is missing
        rounds, runs = rounds - 1, [folder / f"shorter_{i}" for i in range(replays)]
        states = [_replayed(path, run, rounds) for run in runs]
    first, *others = (decisions(run) for run in runs)
    with Archive.open_read_only(runs[0]) as archive:
        result = build_result(archive)
    sizes = sizes_of(run_prompts(runs[0]))
    return {
        "measured_on": result["replay"]["measured_on"],
        "rounds": rounds,
        "states": states,
        "are_alike": all(other == first for other in others),
        "decided": {what: len(first[what]) for what in ("ideas", "kernels", "measured", "calls", "rounds")},
        "other_questions": result["replay"]["other_questions"],
        "not_recorded": result["replay"]["not_recorded"],
        "best": first["best"],
        "largest_stage": result["largest_stage"],
        "prompts": {
            "ideas": sizes.ideation,
            "first_kernel": sizes.first_write,
            "kernel": sizes.write,
            "all": sizes.total,
            "cacheable": sizes.cacheable,
            "repairs": repairs_of(runs[0]),
        },
    }


def _replayed(path: Path, run: Path, rounds: int) -> str:
    return str(search(replay=path, replay_timings=True, run_dir=run, rounds=rounds).state)


def repairs_of(run: Path) -> float:
    """Return the share of a run's input that repairs of kernels took, by the length of its prompts."""
    lengths = [(":write" in call and "a0:" not in call, len(text)) for call, text in run_prompts(run)]
    return sum(length for is_repair, length in lengths if is_repair) / sum(length for _, length in lengths)


def told(name: str, entry: Mapping[str, Any]) -> str:
    """Return the figures of one recording in lines."""
    stage, prompts, counts = entry["largest_stage"], entry["prompts"], entry["decided"]
    ideas = ", ".join(f"{size:,.0f}" for size in prompts["ideas"].values())
    return (
        f"{name}: two replays {'alike' if entry['are_alike'] else 'DIFFER'} ({counts['rounds']} rounds, "
        f"{counts['ideas']} ideas, {counts['kernels']} kernels, {counts['measured']} evaluations, "
        f"{counts['calls']} calls, of which {entry['not_recorded']} not recorded), best {entry['best']}\n"
        f"  ideas that name the largest stage: {stage['named']} of {stage['ideas']}\n"
        f"  prompts: ideas {ideas}; first kernel {prompts['first_kernel']:,.0f}; largest {prompts['kernel']:,.0f}; all "
        f"{prompts['all']:,.0f}, cacheable {prompts['cacheable']:.1%}, repairs {prompts['repairs']:.1%}"
    )


if __name__ == "__main__":
    main()
