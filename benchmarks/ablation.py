"""What each part of a search is worth: its best kernel so far by tokens, with all parts, without each, and as revision.

    PYTHONPATH=src python benchmarks/ablation.py RECORDING … [--only full,memory,revision] [--else MODEL] [--name ablation]

Each recording (a run folder, or a file of `ridgeline export --replay`) is searched again once for each variant, by its
recorded answers and times: nothing is built or run, and the recorded device need not be there. All variants may use as many
tokens as the search with all parts does; of a call whose recording states none they are characters / 3.6. The figures are
functions of the archive, in the order of the calls' ids, so they are the same in every run.

A recording that breaks off inside a round, as where its last repairs were never asked for, is searched in the rounds before
it: which of the missing calls ends a search is chance. A variant asks other questions than the recorded search. One that
asks a call that was not recorded ends there, which its row says, unless `--else` names a model for such calls, whose kernels
then need recorded times too, or `--measure`, which builds and times kernels here. `asked alike` says which share of its calls
asked what the recorded ones did; the answers to the others were made with the part that is left out.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from prompt_sizes import CHARACTERS_PER_TOKEN
from result import write_result

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.calls.journal import Call, Journal
from ridgeline.checkpoints.calls.kept_texts import KeptTexts
from ridgeline.checkpoints.recording.file import read_recording
from ridgeline.checkpoints.recording.recording import Recording
from ridgeline.graph.session.options import SearchRequest
from ridgeline.graph.session.session import run_search
from ridgeline.problems.spec import Budget, SearchPart
from ridgeline.tools.errors import RidgelineError
from ridgeline.tools.records.keys import CallId, attempt_id
from ridgeline.tools.records.vocabulary import Origin, Purpose

FULL, REVISION = "full", "revision"
VARIANTS = (FULL, *get_args(SearchPart), REVISION)
SHARES = (0.25, 0.5, 0.75, 1.0)
AS_MANY = 1.01
"""Times as many tokens as the search with all parts count as equal: prompts that tell a part less are filled with others."""
_MISSING = "not recorded: "
_NOT_RECORDED = re.compile(r"holds no answer to (\S+)|\b(the .+?) was not recorded")
_TUNED = re.compile(r"the build of (\w+)t\d+")

Curve = list[tuple[int, float]]
"""Tokens used and the best speedup so far, wherever one of the two changed."""


def main() -> None:
    """Search each recording in each variant, print the table and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("recordings", nargs="+", type=Path)
    parser.add_argument("--only", help="variants with commas between (default all)")
    parser.add_argument("--else", dest="otherwise", default="", metavar="MODEL", help="answers what was not recorded")
    parser.add_argument("--measure", action="store_true", help="build and time kernels here; recorded times otherwise")
    parser.add_argument("--name", default="ablation", help="writes benchmarks/results/NAME.json")
    arguments = parser.parse_args()
    variants = arguments.only.split(",") if arguments.only else list(VARIANTS)
    if unknown := [variant for variant in variants if variant not in VARIANTS]:
        parser.error(f"--only: there is no variant {unknown[0]}; known are {', '.join(VARIANTS)}")
    figures = {}
    for path in arguments.recordings:
        entry = measure(path, variants, otherwise=arguments.otherwise, is_measured=arguments.measure)
        figures[path.stem] = entry
        print(told(entry))
        print(table(entry["variants"]), flush=True)
    device = read_recording(arguments.recordings[0]).run.device
    print(write_result(arguments.name, figures, device=None if arguments.measure else device))


def measure(path: Path, variants: Sequence[str], *, otherwise: str = "", is_measured: bool = False) -> dict[str, Any]:
    """Return the entry of one recording: what it is, and each variant's figures."""
    recording = read_recording(path)

    def searched(variant: str, rounds: int | None, tokens: int | None = None) -> dict[str, Any]:
        with tempfile.TemporaryDirectory(prefix="ablation-") as folder:
            request = SearchRequest(
                replay=path,
                replay_timings=not is_measured,
                replay_else=otherwise,
                replay_strict=True,
                run_dir=Path(folder) / "run",
                settings=settings_of(variant, rounds),
                budget=Budget(tokens=tokens) if variant == REVISION and tokens else None,
            )
            return search(request)

    rounds: int | None = None
    full = searched(FULL, rounds)
    if full["ended"].startswith(_MISSING) and (begun := rounds_begun(recording)) > 1:
        rounds = begun - 1
        full = searched(FULL, rounds)
    tokens = full["tokens"]
    run = recording.run
    return {
        "run": run.name,
        "problem": run.problem["name"],
        "models": list(run.models),
        "measured_on": "this machine" if is_measured else run.device.name,
        "measured_at": None if is_measured else run.started_at,
        "rounds": rounds or rounds_begun(recording),
        "rounds_begun": rounds_begun(recording),
        "tokens": tokens,
        "variants": {
            variant: _at_equal(full if variant == FULL else searched(variant, rounds, tokens), tokens)
            for variant in variants
        },
    }


def rounds_begun(recording: Recording) -> int:
    """Return the last round of which a call was recorded."""
    return max((asked.round for call in recording.calls if (asked := CallId.read(call.call_id))), default=0)


def _at_equal(entry: dict[str, Any], tokens: int) -> dict[str, Any]:
    """Return a variant's figures up to the tokens that all may use."""
    curve = [point for point in entry["curve"] if point[0] <= AS_MANY * tokens]
    return entry | {
        "tokens": curve[-1][0] if curve else 0,
        "best_at": [best_at(curve, share * tokens * (AS_MANY if share == 1.0 else 1.0)) for share in SHARES],
        "curve": curve,
    }


def settings_of(variant: str, rounds: int | None = None) -> dict[str, Any]:
    """Return the settings by which a variant differs from the recorded search."""
    if variant == REVISION:
        return {"strategy": "revision"}
    without = {} if variant == FULL else {"without": [variant]}
    return without | ({"rounds": rounds} if rounds else {})


def search(request: SearchRequest) -> dict[str, Any]:
    """Return the figures of one variant, and how its search ended."""
    run_dir = request.run_dir
    assert run_dir is not None
    try:
        ended = str(asyncio.run(run_search(request)).state)
    except RidgelineError as error:  # what was not recorded ends a variant; what was found until then counts
        ended = _end_words(str(error).replace(f"{request.replay}: ", ""))
    if not (run_dir / "archive.sqlite").is_file():
        return {"ended": ended, "tokens": 0, "asked_alike": None, "curve": []}
    with Archive.open_read_only(run_dir) as archive:
        curve = best_by_tokens(archive)
        replay = archive.run().replay or {}
    calls, other = replay.get("calls", 0), replay.get("other_questions", 0) + replay.get("not_recorded", 0)
    return {
        "ended": ended,
        "tokens": curve[-1][0] if curve else 0,
        "asked_alike": (calls - other) / calls if calls else None,
        "curve": curve,
    }


def _end_words(reason: str) -> str:
    """Return why a variant ended, in brief where something was not recorded."""
    found = _NOT_RECORDED.search(reason)
    if found is None:
        return reason
    return _MISSING + (
        found[1] or _TUNED.sub(r"the sweep of \1", found[2])
    )  # which of its points comes first is chance


def best_by_tokens(archive: Archive) -> Curve:
    """Return the best speedup so far by tokens: seeds cost none, a round's tuning comes after its calls.

    What was made of a kernel without a call, by fix-its or a sibling's edit, comes with the kernel's own call.

    Calls count in the order of their ids, so that branches side by side have one order.
    """
    candidates = archive.candidates()
    speedups = {
        e.candidate_id: e.speedup
        for purpose in (Purpose.SEARCH, Purpose.TUNE)
        for e in archive.evaluations(purpose=purpose)
    }
    tuned: dict[int, list[float | None]] = {}
    written: dict[str, list[float | None]] = {}
    for candidate in candidates:
        if candidate.origin is Origin.MODEL and candidate.idea_id:
            attempt = attempt_id(candidate.idea_id, candidate.variation, candidate.attempt)
            written.setdefault(attempt, []).append(speedups.get(candidate.id))
        if candidate.origin is Origin.TUNE or (candidate.origin is Origin.SEED and candidate.round):
            tuned.setdefault(candidate.round, []).append(speedups.get(candidate.id))
    given = [speedups.get(c.id) for c in candidates if c.round == 0]
    curve = _grown([], 0, given)
    read = ((CallId.read(call.call_id), call) for call in Journal(archive).calls())
    calls = sorted(((call_id, call) for call_id, call in read if call_id), key=lambda each: each[0].order)
    used = 0
    for number, (call_id, call) in enumerate(calls):
        used += _tokens(archive, call)
        kernels = [] if call_id.asks_for_ideas else written.get(call_id.candidate_id, [])
        is_last = number + 1 == len(calls) or calls[number + 1][0].round != call_id.round
        after = tuned.get(call_id.round, []) if is_last else []
        curve = _grown(curve, used, [*kernels, *after])
    return curve


def _tokens(archive: Archive, call: Call) -> int:
    """Return the tokens of a call; of an answer that states none, those of its prompt and its text by their length."""
    stated = int(call.input_tokens) + int(call.output_tokens)
    reply = None if stated else Journal(archive).stored(call.call_id)
    if reply is None:
        return stated
    prompt = KeptTexts(archive).prompt(call.prompt_sha256) or ""
    return round((len(prompt) + len(str(reply.get("text") or ""))) / CHARACTERS_PER_TOKEN)


def _grown(curve: Curve, tokens: int, speedups: Iterable[float | None]) -> Curve:
    """Return the curve with its next point."""
    best = max([speedup for speedup in speedups if speedup], default=0.0)
    return [*curve, (tokens, max(best, curve[-1][1] if curve else 0.0))]


def best_at(curve: Sequence[tuple[int, float]], tokens: float) -> float | None:
    """Return the best speedup that a search had for so many tokens; None before its first kernel passed."""
    return max((best for used, best in curve if used <= tokens), default=0.0) or None


def told(entry: Mapping[str, Any]) -> str:
    """Return what a recording is in one line."""
    rounds, begun = entry["rounds"], entry["rounds_begun"]
    cut = f" of {begun} (the last was recorded in part)" if rounds < begun else ""
    return f"{entry['problem']}: {rounds} rounds{cut}, {entry['tokens']:,} tokens, {entry['measured_on']}"


def table(variants: Mapping[str, Mapping[str, Any]]) -> str:
    """Return one row a variant: its best so far at shares of the recorded tokens."""
    rows = [["variant", "tokens", "asked alike", *(f"{share:.0%}" for share in SHARES), "ended"]]
    for name, entry in variants.items():
        label = name if name in (FULL, REVISION) else f"without {name}"
        alike = "-" if entry["asked_alike"] is None else f"{entry['asked_alike']:.0%}"
        best = ["-" if speedup is None else f"{speedup:.2f}x" for speedup in entry["best_at"]]
        rows.append([label, f"{entry['tokens']:,}", alike, *best, entry["ended"]])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


if __name__ == "__main__":
    main()
