"""`ridgeline idea`, `seed` and `stop`: what a search that has begun is told, also while it runs in another process.

Each is one transaction of the run's archive. A search takes an idea or a seed up when its next round begins; one that is
stopped does so once it is resumed, and one whose last round has begun once it is extended.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

from pydantic import ValidationError

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.history.progress import progress
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.checkpoints.runs.folders import RESUMABLE, begun_record, find_running, is_locked
from ridgeline.checkpoints.steering import Steer, Steering
from ridgeline.checkpoints.storage.errors import record_errors
from ridgeline.checkpoints.storage.own_files import refuse_links
from ridgeline.graph.cli.summary import resume_command
from ridgeline.graph.library.judged_files import read_sources
from ridgeline.graph.search.ideas.offline_ideas import OfflineReading, reading_of_run
from ridgeline.graph.search.ideas.user_ideas import user_draft
from ridgeline.graph.search.shape.plan import make_plan
from ridgeline.graph.session.options import RUNS
from ridgeline.graph.session.stopping import ask_to_stop
from ridgeline.graph.state import GRAPH_VERSION
from ridgeline.problems.model_calls import CallSettings
from ridgeline.problems.spec import SearchSettings
from ridgeline.tools.errors import InputError, RunError
from ridgeline.tools.records.printable import printable
from ridgeline.tools.records.vocabulary import Interface

MOST_CHARS = 20_000
"""Of an idea: a model reads it in every later prompt."""


def execute(args: argparse.Namespace) -> int:
    """Tell the search; a refusal is an InputError of one line, and leaves the run as it is."""
    run, matches = find_running(RUNS, args.run)
    record = begun_record(run, GRAPH_VERSION)
    told, words = _TELLING[args.command](args, run, record)
    if args.json:
        said = {"run": str(run), "id": told.id, "name": told.name or None, "running": is_locked(run)}
        sys.stdout.write(f"{json.dumps(said)}\n")
    else:
        if matches > 1:
            chosen = f"{run.name} is the one that runs of the {matches} runs called {args.run}…"
            sys.stdout.write(f"{printable(chosen)}\n")
        sys.stdout.write(f"{printable(words)}\n")
    return 0


def _idea(args: argparse.Namespace, run: Path, record: RunRecord) -> tuple[Steer, str]:
    _refuse_ended(run, record)
    text = args.text.strip()
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError("idea: is no UTF-8 text; give its words in UTF-8") from None
    if len(text) > MOST_CHARS:
        raise InputError(f"idea: has {len(text):,} characters, {MOST_CHARS:,} at most; say it in fewer words")
    try:
        draft = user_draft(text)
    except ValidationError as error:
        raise InputError(f"idea: cannot be read as one: {error.errors()[0]['msg']}") from None
    with _opened(run) as archive:
        if any(idea.mechanism == draft.mechanism for idea in archive.ideas()):
            raise RunError(f"{run}: has tried this idea already")
        reading = reading_of_run(archive, text)
        if reading and reading.why_not_tried:
            raise InputError(f"idea: would not be tried: {reading.why_not_tried}")
        told = Steering(archive).add_idea(text)
        when = _when(run, archive)
    return told, f"{told.id} {when}{_reading_words(record, reading)}"


def _reading_words(record: RunRecord, reading: OfflineReading | None) -> str:
    """Return what the offline model will carry out of an idea, or that it may carry out nothing; "" of a language model."""
    if reading is not None:
        return f"; the offline model carries out of it: {', '.join(reading.named)}"
    if not record.is_offline:
        return ""
    return (
        "; the offline model carries out only structures that it knows by name, and knows those of this problem once its "
        "reference is described: ridgeline show says whether it tries the idea"
    )


def _seed(args: argparse.Namespace, run: Path, record: RunRecord) -> tuple[Steer, str]:
    _refuse_ended(run, record)
    if record.device is None or record.problem is None:
        raise RunError(f"{run}: does not say on which device it searches; start anew")
    with record_errors(run):
        language = Interface(record.problem["interface"]).language(record.device.kind)
        most_chars = CallSettings.model_validate(record.problem.get("model_calls", {})).max_reply_chars
    ((file, source),) = read_sources([Path(args.file)], language)
    _check_source(file, source, most_chars)
    with _opened(run) as archive:
        told = Steering(archive).add_seed(file.stem, source)
        return told, f"{told.name} {_when(run, archive)}"


def _check_source(file: Path, source: str, most_chars: int) -> None:
    """Refuse what is no kernel's source: a seed is shown to models, and is no longer than what they may write."""
    if not source.strip():
        raise InputError(f"{file}: is empty; name a kernel's source")
    if "\0" in source:
        raise InputError(f"{file}: holds a NUL character, so it is no text; name a kernel's source")
    if len(source) > most_chars:
        raise InputError(
            f"{file}: has {len(source):,} characters, {most_chars:,} at most (max_reply_chars of model_calls); "
            "name a kernel's source"
        )


def _stop(args: argparse.Namespace, run: Path, record: RunRecord) -> tuple[Steer, str]:
    return ask_to_stop(run), f"{run}: stops after the steps in flight; resume:  {resume_command(run)}"


_TELLING: dict[str, Callable[[argparse.Namespace, Path, RunRecord], tuple[Steer, str]]] = {
    "idea": _idea,
    "seed": _seed,
    "stop": _stop,
}


def _refuse_ended(run: Path, record: RunRecord) -> None:
    """Refuse to tell a search that is over."""
    if record.state not in RESUMABLE:
        raise RunError(f"{run}: its search is over; extend it first: {resume_command(run)} --rounds N")


def _opened(run: Path) -> Archive:
    """Return the run's archive, to write in it."""
    refuse_links(run)
    return Archive.open(run, create=False)


def _when(run: Path, archive: Archive) -> str:
    """Return in words when the search takes up what it is told."""
    if not is_locked(run):
        return f"enters once the search goes on:  {resume_command(run)}"
    record, now = archive.run(), progress(archive)
    if record.stop_reason:
        last = f"the rounds are over ({record.stop_reason})"
    elif now.round >= _planned_rounds(archive, record):
        last = f"round {now.round} is the last"
    else:
        return "enters with the next round"
    more = f"{resume_command(run)} --rounds {(now.rounds or now.round) + 1}"
    return f"is kept, but {last}: it enters once this search has ended and is extended:  {more}"


def _planned_rounds(archive: Archive, record: RunRecord) -> int:
    """Return the rounds that the search goes on to, of its strategy."""
    with record_errors(archive.path):
        settings = SearchSettings.model_validate(record.settings or {})
        is_token_limited = (record.budget or {}).get("tokens") is not None
    return make_plan(settings, record.max_rounds, is_token_limited=is_token_limited).rounds
