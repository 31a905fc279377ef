"""The lines that the command line prints when a search is resumed and when it ends."""

from __future__ import annotations

import math
import os
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ridgeline.checkpoints.calls.journal import Journal
from ridgeline.checkpoints.report.wording import (
    COMPARED,
    RANKING,
    best_configuration,
    best_of_torch_words,
    doubt,
    ending,
    interval_words,
    labels_in_words,
    name_of_place,
    others_tried,
    over_eager_words,
    replay_words,
    seed_words,
    unproven_words,
    why_uncertified,
)
from ridgeline.checkpoints.runs.folders import INTERRUPTED, RESUMABLE
from ridgeline.checkpoints.storage.own_files import MAILBOX
from ridgeline.problems.spec import Budget
from ridgeline.tools.records.printable import printable, printable_name
from ridgeline.tools.records.vocabulary import Origin, RunState
from ridgeline.tools.wording import counted, medians_words, ratio_words

if TYPE_CHECKING:
    from pathlib import Path

    from ridgeline.checkpoints.archive import Archive
    from ridgeline.checkpoints.result import BestKernel
    from ridgeline.graph.session.outputs import SearchResult


MOST_NAMED = 3
"""Kernels without a verdict that are named; the report lists them all."""
HOW_TO_CALL = "docs/use-the-kernel.md"


def resume_line(archive: Archive) -> str:
    """Return one line on the work that a resumed search finds stored and does not repeat."""
    calls = Journal(archive).totals()
    written = len(archive.candidates(origin=Origin.MODEL))
    judged = len(archive.evaluations())
    rounds = archive.rounds()
    again, waiting = calls.in_flight + calls.failed, calls.waiting
    whose, calls_again = ("offline model reply",) * 2 if archive.run().is_offline else ("model reply", "model call")
    line = (
        f"skipped, because it is stored: {counted(len(rounds), 'judged round')}, "
        f"{counted(calls.calls - again - waiting, whose)}, {counted(written, 'written kernel')}, "
        f"{counted(judged, 'evaluation')}"
    )
    line += f"; asked again, because the reply never came: {counted(again, calls_again)}" if again else ""
    return f"{line}; waiting for an answer: {counted(waiting, 'request')}" if waiting else line


def resume_command(run_dir: Path) -> str:
    """Return the command that resumes this run, from any folder, also when `ridgeline` is not on PATH."""
    program = ridgeline_program()
    words = [program, "run"] if program else [sys.executable, "-m", "ridgeline.graph.run"]
    return shlex.join([*words, "--resume", str(run_dir.absolute())])


def ridgeline_program() -> str | None:
    """Return the name or the path of `ridgeline`: on PATH, or beside the Python in use (.venv/bin); None without one."""
    if shutil.which("ridgeline"):
        return "ridgeline"
    beside = os.path.join(os.path.dirname(sys.executable), "ridgeline")
    return beside if os.access(beside, os.X_OK) else None


def closing_lines(result: SearchResult, budget: Budget | None = None) -> list[str]:
    """Return the last lines of a run: how it ended, the winner in words and figures, where everything lies.

    `budget` is the search's, which the command to go on makes larger.
    """
    report = result.report
    lines = ["", ending(result.state, result.reason)]
    if result.state == RunState.BUDGET and not result.certified:
        lines.append("no kernel was certified as faster than eager PyTorch yet")
    lines += [words] if (words := replay_words(report.get("replay"))) else []
    lines += round_lines(report.get("history", []))
    lines += winner_lines(
        result.best,
        state=result.state,
        certified=result.certified,
        run_dir=result.run_dir,
        source_path=result.best_source_path,
        chosen=result.chosen,
        measured_again=result.measured_again,
        written_input=result.written_input,
        failures=result.uncertified,
        replay=report.get("replay"),
    )
    if result.failed and not (report.get("replay") or {}).get("times"):
        lines.append(f"unjudged: {unjudged_words(result.failed, result.run_dir)}")
    lines.append(f"result:  {result.run_dir / 'result.json'}")
    lines.append(f"report:  {result.run_dir / 'report.html'}")
    if result.state == RunState.WAITING:
        lines += refused_lines(result.refused, result.run_dir)
        counts = {"batched": result.batched, "unjudged": result.unjudged}
        words = waiting_words(result.waiting, result.run_dir, **counts, device=device_name(report))
        lines.append(f"parked:  {words}")
    return [*lines, *resume_lines(result.state, result.run_dir, budget or Budget(), report)]


def unjudged_words(failed: Sequence[str], run_dir: Path) -> str:
    """Return which kernels have no verdict because the machine failed on them, and how they get one."""
    shown = ", ".join(failed[:MOST_NAMED]) + (", …" if len(failed) > MOST_NAMED else "")
    kernels = counted(len(failed), "kernel")
    return f"{kernels} that the machine failed on ({shown}; run.log says how); judge: {resume_command(run_dir)}"


def resume_lines(state: str, run_dir: Path, budget: Budget, used: Mapping[str, Any]) -> list[str]:
    """Return the line with the command that resumes a run which was stopped or killed, or whose budget is spent."""
    if state in (RunState.STOPPED, INTERRUPTED):
        return [f"resume:  {resume_command(run_dir)}"]
    if state == RunState.BUDGET:
        return [f"go on:   {resume_command(run_dir)}{larger_limits(budget, used)}"]
    return []


def larger_limits(budget: Budget, report: Mapping[str, Any]) -> str:
    """Return the options that let a search go on whose budget is spent: what it used, and each spent limit once more.

    Where none is quite spent, the next call of a model did not fit into one: each limit of these is told, twice as large.
    """
    used = {name: report.get(field) or 0 for name, field in _USED.items()}
    limits = {name: limit for name in _USED if (limit := getattr(budget, name)) is not None}
    spent = {name: limit for name, limit in limits.items() if used[name] >= limit} or limits
    return "".join(
        f" --max-{name.replace('_', '-')} {_rounded_up(limit + max(limit, used[name]))}"
        for name, limit in spent.items()
    )


_USED = {"usd": "usd", "tokens": "tokens", "wall_s": "finding_s", "gpu_s": "gpu_seconds"}
"""What result.json calls the use of each limit of a budget."""


def _rounded_up(amount: float) -> str:
    """Return an amount with two digits that count, none of them behind the point of a large one."""
    step = 10.0 ** (math.floor(math.log10(amount)) - 1)
    return f"{round(math.ceil(amount / step - 1e-9) * step, 10):.10g}"


def device_name(report: Mapping[str, Any]) -> str:
    """Return the name of the device that a run measures on, as its result.json has it."""
    return printable_name((report.get("device") or {}).get("name") or "its device")


def waiting_words(count: int, run_dir: Path, *, device: str, batched: int = 0, unjudged: int = 0) -> str:
    """Return for how many answers a search waits, where, and how it goes on; `batched` of them in batches.

    `unjudged` kernels wait for the device, which is on another machine; so does a search that waits for nothing else.
    """
    places = []
    if count > batched:
        folder, run = run_dir / MAILBOX, shlex.quote(str(run_dir))
        places.append(f"{counted(count - batched, 'request')} waiting in {folder} (ridgeline mailbox list {run})")
    if batched:
        places.append(f"{counted(batched, 'request')} waiting in a batch at the provider")
    if unjudged:
        places.append(f"{counted(unjudged, 'kernel')} waiting for {device}")
    return f"{', '.join(places) or f'the next step needs {device}'}; go on: {resume_command(run_dir)} --park"


def refused_lines(refused: Mapping[str, str], run_dir: Path) -> list[str]:
    """Return one line for each request whose last answer was refused: which, why, and how it gets another."""
    run = shlex.quote(str(run_dir))
    return [
        f"refused: the answer to {own}: {printable(why)}; mend its file, or ridgeline mailbox answer {run} {own} FILE"
        for own, why in refused.items()
    ]


def round_lines(rounds: Sequence[dict[str, Any]], *, goes_on: bool = False) -> list[str]:
    """Return one line for each round, its best kernel, and the rule by which that is the best.

    `goes_on`: the last round is not over.
    """
    lines = []
    for entry in rounds:
        yet = " yet" if goes_on and entry is rounds[-1] else ""
        speedup = entry.get("best_speedup")
        figure = ratio_words(speedup, entry.get("best_speedup_ci95"), unit="eager") if speedup else ""
        none = "no correct kernel" if entry.get("judged", 1) or entry.get("tuned") else "no kernel was judged"
        best = f"best {figure}: {entry.get('best_id')}" if speedup else f"{none}{yet}"
        lines.append(f"  round {entry['round']}: {best}")
    return [*lines, f"  {RANKING}", f"  {COMPARED}"] if any(entry.get("best_speedup") for entry in rounds) else lines


def winner_lines(
    best: BestKernel | None,
    *,
    state: str,
    certified: bool,
    run_dir: Path,
    source_path: Path | None,
    chosen: str = "",
    measured_again: str = "",
    written_input: str = "",
    failures: Mapping[str, str] | None = None,
    replay: Mapping[str, Any] | None = None,
    is_certifying: bool = False,
) -> list[str]:
    """Return the lines on a run's best kernel: its speedups, why it is not certified, and where its files lie.

    `chosen` says over which kernel it was chosen, `measured_again` how far its certificate is from the search; `written_input`
    is what its reference writes, `failures` are of the kernels whose certification was tried, `replay` is result.json's.
    `is_certifying`: the rounds are over.
    """
    failed = failures or {}
    others = others_tried(best.id if best else None, failed)
    tried = [f"others that were tried and not certified: {others}"] if others else []
    if not best:
        return ["fastest so far:  none yet" if state in RESUMABLE else "winner:  none", *tried]
    lines = [
        f"{name_of_place(state, certified=certified)}:  {best.id}: {_title(best)}{_doubt(best, certified=certified)}"
    ]
    if words := seed_words(best, state):
        lines.append(words)
    lines.append(_headline(best))
    is_replayed = bool(replay and replay["times"])  # which is said at the top: nothing is certified then
    times = medians_words(best.median_ms, best.reference_ms, best.speedup)
    lines.append(f"{times}, {best.precision_class}{_labels(best, is_replayed=is_replayed)}")
    lines += [words for words in (chosen, measured_again) if words]
    if not certified and not is_replayed:
        lines.append(f"not certified: {why_uncertified(best, state, failed, is_certifying=is_certifying)}")
    lines += tried
    where = source_path or "is written when the search ends"
    lines.append(f"{'certified; ' if certified else ''}source {where}")
    if (proof := run_dir / "certificate.md").exists():
        lines.append(f"what that rests on: {proof}")
    lines.append(f"how to call it: {HOW_TO_CALL} in Ridgeline's repository")
    if certified and written_input:
        lines.append(f"as a package: none, since its reference writes its input {written_input}")
    elif certified:
        lines.append(f"as a package: ridgeline ship {shlex.quote(str(run_dir))} --out DIR")
    return [lines[0], *(f"{' ' * 9}{line}" for line in lines[1:])]


def _title(best: BestKernel) -> str:
    return best.idea or ("a kernel of an earlier search" if best.origin == Origin.BANK else "a seed kernel")


def _doubt(best: BestKernel, *, certified: bool) -> str:
    words = doubt(best.speedup, best.speedup_ci95, certified=certified)
    return f" ({words})" if words else ""


def _headline(best: BestKernel) -> str:
    """Return the speedup over eager, beside it over what no gain is proven, then the other ratios."""
    eager = over_eager_words(best.speedup, best.speedup_ci95)
    if unproven := unproven_words(best):
        of_torch = _of_torch(best, "; ", "; ", whose="PyTorch's")
        return f"{eager}, but {unproven}{of_torch}{'' if 'seed kernel' in unproven else _of_seed(best)}"
    return f"{eager}{_of_torch(best, ', ', ', but ', whose='its')}{_of_seed(best)}"


def _of_torch(best: BestKernel, joint: str, contrast: str, *, whose: str) -> str:
    """Return the speedup over PyTorch's best behind what joins it; behind `contrast` where no gain over it is proven."""
    if (told := best_of_torch_words(best, f"{whose} {best_configuration(best.baselines_failed)}")) is None:
        return ""
    words, is_faster = told
    return f"{joint if is_faster else contrast}{words}"


def _of_seed(best: BestKernel) -> str:
    ratio = best.speedup_vs_seed
    return f", {interval_words(ratio, best.speedup_vs_seed_ci95)} the best seed kernel" if ratio else ""


def _labels(best: BestKernel, *, is_replayed: bool) -> str:
    then = "in the recorded run, " if is_replayed else ""
    return f" [{then}{labels_in_words(best.labels)}]" if best.labels else ""
