"""`ridgeline show`: what a run found."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ridgeline.checkpoints.archive import FILE_NAME, Archive
from ridgeline.checkpoints.calls.journal import Journal
from ridgeline.checkpoints.history.chosen import chosen_words
from ridgeline.checkpoints.history.lineage import certificate_of, figures, finding
from ridgeline.checkpoints.history.measured_again import measured_again_words
from ridgeline.checkpoints.history.progress import unjudged
from ridgeline.checkpoints.history.repeated_sources import repeat_words
from ridgeline.checkpoints.report.floors import below_words, floors_words
from ridgeline.checkpoints.report.wording import (
    EAGER_TIMES,
    IDEAS_BEST,
    IDEAS_GAIN,
    OVER_BEST,
    author_words,
    figure_words,
    stage_words,
)
from ridgeline.checkpoints.result import BestKernel, show_run
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.checkpoints.runs.folders import begun, find_run, matching_runs, run_folders, state_now
from ridgeline.checkpoints.steering import Steering, SteerKind
from ridgeline.checkpoints.storage.database_kind import Kind, kind_of
from ridgeline.checkpoints.storage.errors import record_errors
from ridgeline.checkpoints.stored_certificate import StoredCertificate, certifies, failures_of
from ridgeline.graph.cli.console import make_console
from ridgeline.graph.cli.failed_given import failed_given
from ridgeline.graph.cli.listed_runs import print_runs
from ridgeline.graph.cli.merged_searches import is_merged, list_searches
from ridgeline.graph.cli.profile_lines import origin_words, profile_lines, stored_profile
from ridgeline.graph.cli.run_state import state_lines
from ridgeline.graph.cli.summary import refused_lines, resume_lines, round_lines, winner_lines
from ridgeline.graph.search.ideas.not_taken_up import not_taken_up
from ridgeline.graph.session.options import RUNS
from ridgeline.problems.spec import Budget
from ridgeline.tools.errors import InputError, RunError
from ridgeline.tools.records.baselines import Baseline, Floor
from ridgeline.tools.records.reference_mode import mode_words
from ridgeline.tools.records.results import Profile
from ridgeline.tools.records.vocabulary import RunState
from ridgeline.tools.wording import baseline_note, counted, in_brackets, ratio_words, usd_words

WIDE = 100
"""Columns from which on a row holds a title of some 40 letters beside category, model and an error."""
WIDER = 120
"""Columns from which on a row holds the predicted gain and the measured one too."""


def execute(args: argparse.Namespace) -> int:
    """Print rounds, ideas, the lineage of the best and the cost, or without a run the list of runs; JSON with `--json`."""
    console = make_console()
    _refuse_options_alone(args)
    if args.web:
        return _serve(console, args)
    if args.run is None:
        return print_runs(console, as_json=args.json)
    run, matches = _chosen(args.run)
    with Archive.open_read_only(run) as archive:
        if run.is_file() and is_merged(archive):
            return _list_merged(console, run, archive, args)
        if args.profile:
            return _profile_of(console, archive, args)
        shown = _shown(archive, run)
        best_id = shown["best"]["id"] if shown["best"] else None
        record, baselines, certificate = archive.run(), archive.baselines(), archive.certificate()
        described = archive.description()
        why: dict[str, Any] = {
            "chosen": chosen_words(archive, best_id),
            "measured_again": measured_again_words(archive, best_id),
            "written_input": described.signature.written_input if described else "",
            "is_certifying": bool(record.stop_reason),
        }
        of_best = certificate_of(archive, best_id) if best_id else None
        without_use = [*failed_given(archive), *not_taken_up(archive)]
        without_verdict = len(unjudged(archive))
        refused = Journal(archive).refused()
        is_told_to_stop = bool(Steering(archive).told(SteerKind.STOP))
    state = state_now(run, record)
    if args.json:
        sys.stdout.write(json.dumps(shown | {"state": state}, indent=2) + "\n")
        return 0
    told = f"the newest of the {len(matches)} runs called {args.run}…; ridgeline show lists all"
    _print_lines(console, [told] if len(matches) > 1 else [])
    lines = state_lines(shown, run, record, state, without_verdict=without_verdict, is_told_to_stop=is_told_to_stop)
    _print_lines(console, [*lines, *refused_lines(refused, run)])
    is_running = state == RunState.RUNNING
    _print_winner(console, shown, run, certificate, why, is_running=is_running)
    _print_baselines(console, shown, baselines.floor if baselines else None, of_best.baselines if of_best else ())
    _print_lines(console, round_lines(shown["rounds"], goes_on=is_running and not record.stop_reason))
    _print_ideas(console, shown, is_running=is_running)
    _print_lines(console, without_use)
    _print_lineage(console, shown["lineage"])
    _print_cost(console, shown["cost"], is_offline=record.is_offline, is_running=is_running)
    _print_lines(console, _resume_lines(run, record, state, shown["cost"]))
    return 0


def _print_lines(console: Console, lines: Iterable[str]) -> None:
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)


def _shown(archive: Archive, run: Path) -> dict[str, Any]:
    """Return what `show --json` prints of a run; an exported archive is named as its file."""
    return show_run(archive) | ({"run": run.name} if run.is_file() else {})


def _list_merged(console: Console, run: Path, archive: Archive, args: argparse.Namespace) -> int:
    if args.profile:
        raise InputError(f"{run}: a merged archive; --profile takes a run of one search")
    return list_searches(console, archive, as_json=args.json)


def _profile_of(console: Console, archive: Archive, args: argparse.Namespace) -> int:
    """Print the profile of one of a run's kernels."""
    evaluation, profile = stored_profile(archive, args.profile)
    found = figure_words(figures(finding(archive, args.profile)))
    above = [f"{args.profile}: in the search {found}", origin_words(archive, evaluation, profile)]
    return _print_profile(console, profile, above, args)


def _refuse_options_alone(args: argparse.Namespace) -> None:
    """Refuse an option without the one or the run that it is for.

    Raises:
        InputError: one line, with the whole command.
    """
    if args.profile and args.run is None:
        raise InputError("--profile needs the run: ridgeline show RUN --profile ID")
    if args.counters and not args.profile:
        raise InputError("--counters is for --profile: ridgeline show RUN --profile ID --counters")
    if args.port is not None and not args.web:
        raise InputError("--port is for --web: ridgeline show RUN --web --port N")
    if args.web and (args.run is None or args.json or args.profile):
        raise InputError("--web takes a run alone: ridgeline show RUN --web")


def _resume_lines(run: Path, record: RunRecord, state: str, cost: dict[str, Any]) -> list[str]:
    """Return how the search goes on, as its own last lines say it; nothing of an exported copy."""
    if record.exported_at is not None:
        return []
    with record_errors(run):
        budget = Budget.model_validate(record.budget or {})
    return resume_lines(state, run, budget, cost)


def _chosen(wanted: str) -> tuple[Path, list[Path]]:
    """Return the run that a user names, of several the newest, and all that its name means.

    Raises:
        RunError: none is meant; the message says how the runs are listed, where there are some.
    """
    if Path(wanted).is_file() and kind_of(Path(wanted)) is Kind.ARCHIVE:  # an export, or several merged into one file
        return Path(wanted), []
    matches = [] if (Path(wanted) / FILE_NAME).is_file() else matching_runs(RUNS, wanted)
    if matches:
        return begun(matches[-1]), matches
    try:
        return find_run(RUNS, wanted), matches
    except RunError as unknown:
        if not run_folders(RUNS):
            raise
        raise RunError(f"{unknown}; ridgeline show lists the runs") from None


def _serve(console: Console, args: argparse.Namespace) -> int:
    """Serve a run's page until a signal ends it."""
    from ridgeline.graph.cli.web.serve import serve_run

    run, _ = _chosen(args.run)
    if run.is_file():
        raise InputError(f"{run}: a file; --web takes a run's folder")
    serve_run(run, args.port or 0, lambda line: console.print(line, markup=False, soft_wrap=True))
    return 0


def _print_profile(console: Console, profile: Profile, above: list[str], args: argparse.Namespace) -> int:
    """Print a kernel's profile below its own lines; the profile alone with `--json`."""
    if args.json:
        told = {name: value for name, value in profile.to_json().items() if args.counters or name != "details"}
        sys.stdout.write(json.dumps(told, indent=2) + "\n")
        return 0
    _print_lines(console, [*above, *profile_lines(profile, with_counters=args.counters)])
    return 0


def _print_winner(
    console: Console,
    shown: dict[str, Any],
    run: Path,
    certificate: StoredCertificate | None,
    why: dict[str, Any],
    *,
    is_running: bool,
) -> None:
    """Print the kernel that the run stands for, why it is not certified, and where its source lies."""
    best = BestKernel.read(shown)
    lines = winner_lines(
        best,
        state=RunState.RUNNING if is_running else shown["state"],
        certified=certifies(certificate, best.id if best else None),
        run_dir=run,
        source_path=run / best.source_path if best and best.source_path else None,
        **why,
        failures=failures_of(certificate),
        replay=shown["replay"],
    )
    _print_lines(console, lines)


def _print_baselines(
    console: Console, shown: dict[str, Any], floor: Floor | None, again: Sequence[Baseline] = ()
) -> None:
    """Print PyTorch's own times, also those of the best kernel's certificate (`again`), on which its ratios rest."""
    times = _baseline_words(shown["baselines"])
    both = (floor.floor_ms, floor.compute_floor_ms) if floor else None
    floors = f"; {floors_words(*both)}" if both else ""
    when = ", in the search" if again else ""
    console.print(f"PyTorch by itself{when}: {times or 'not measured'}{floors}", markup=False, soft_wrap=True)
    if again:
        measured = _baseline_words([entry.to_json() for entry in again])
        console.print(f"PyTorch by itself, for the certificate: {measured}", markup=False, soft_wrap=True)
        console.print(f"  Over its best configuration: {OVER_BEST}.", markup=False, soft_wrap=True)
    best_ms = shown["best"]["median_ms"] if shown["best"] else None
    if both and (below := below_words(best_ms, *both)):
        console.print(f"  {below}", markup=False, soft_wrap=True)
    if times and shown["best"]:
        console.print(f"  {EAGER_TIMES}", markup=False, soft_wrap=True)


def _baseline_words(entries: Iterable[Mapping[str, Any]]) -> str:
    """Return PyTorch's times in one line, those of result.json or of certificate.json."""
    return ", ".join(
        f"{mode_words(b['name'])} {b['median_ms']:.3f} ms{in_brackets(baseline_note(b))}"
        for b in entries
        if b["median_ms"] is not None
    )


def _print_ideas(console: Console, shown: dict[str, Any], *, is_running: bool) -> None:
    """Print one row an idea; where the terminal is narrow its title has the place of category and gains."""
    is_wide, is_wider = console.width >= WIDE, console.width >= WIDER
    columns = ["by", *(("category",) if is_wide else ()), *(("predicted", "gain") if is_wider else ())]
    unjudged = "not judged yet" if is_running else "not judged"
    table = Table("idea", "title", *columns, "best", box=None, pad_edge=False)
    for idea in shown["ideas"]:
        failure = idea["failure"][:60] if is_wide else idea["failure"].partition(" ")[0]
        interval = idea["best_speedup_ci95"] if is_wide else None
        outcome = ratio_words(idea["best_speedup"], interval) if idea["best_speedup"] else failure or unjudged
        if repeat := repeat_words(idea["same_source_as"] or ""):
            outcome = f"{outcome}, {repeat}"
        about = (Text(author_words(idea["model"])), *((idea["category"],) if is_wide else ()))
        gains = (f"{idea['predicted_gain']:.2f}x", f"{idea['gain']:.2f}x" if idea["gain"] else "") if is_wider else ()
        table.add_row(idea["id"], Text(idea["title"]), *about, *gains, Text(outcome))
    console.print(table)
    if is_wider and any(idea["gain"] for idea in shown["ideas"]):
        console.print(IDEAS_GAIN, markup=False, soft_wrap=True)
    if any(idea["best_speedup"] for idea in shown["ideas"]):
        console.print(IDEAS_BEST, markup=False, soft_wrap=True)
    if words := stage_words(**shown["largest_stage"]):
        console.print(words, markup=False, soft_wrap=True)


def _print_lineage(console: Console, lineage: list[dict[str, Any]]) -> None:
    if not lineage:
        return
    console.print("lineage of the best, newest first, each with its figure in the search:")
    for step in lineage:
        console.print(f"  {step['id']:<16} {figure_words(step)}: {_source(step)}", markup=False, soft_wrap=True)


def _source(step: dict[str, Any]) -> str:
    """Return where a kernel comes from: its idea and by whom that came, or what else it is."""
    return f"{step['idea']} (by {author_words(step['model'] or '')})" if step.get("idea") else str(step["origin"])


def _print_cost(console: Console, cost: dict[str, Any], *, is_offline: bool, is_running: bool) -> None:
    asked_for = cost["model_calls"]
    calls, usd = asked_for["calls"], usd_words(cost["usd"], asked_for["unpriced"])
    answers = counted(calls - asked_for["in_flight"] - asked_for["failed"], "answer")
    asked = (
        f"no language model ({answers} of the offline one)"
        if is_offline
        else f"{counted(calls, 'model call')}, {counted(cost['tokens'], 'token')}{_repair_words(cost)}, {usd}"
    )
    on_gpu = f" and {cost['gpu_seconds']:.0f} s on the GPU" if cost["gpu_seconds"] else ""
    console.print(
        f"cost: {asked}; judging took {cost['cpu_seconds']:.0f} s on the CPU{on_gpu}; "
        f"{cost['wall_s'] or 0:.0f} s in {'rounds and sessions that are over' if is_running else 'all'}",
        markup=False,
        soft_wrap=True,
    )


def _repair_words(cost: dict[str, Any]) -> str:
    """Return " (repairs 12 % of the input)", "" where no repair took any."""
    return f" (repairs {100 * share:.0f} % of the input)" if (share := cost["repair_share"]) else ""
