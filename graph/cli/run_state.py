"""The lines of `ridgeline show` on the state of a run: how far it has come, whom it waits for and what it can be told."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ridgeline.checkpoints.report.wording import ending, replay_words
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.checkpoints.runs.folders import INTERRUPTED
from ridgeline.graph.cli.summary import device_name, waiting_words
from ridgeline.tools.records.printable import printable
from ridgeline.tools.records.vocabulary import RunState


def state_lines(
    shown: Mapping[str, Any],
    run: Path,
    record: RunRecord,
    state: str,
    *,
    without_verdict: int,
    is_told_to_stop: bool = False,
) -> list[str]:
    """Return what kind of search it is, how far it has come and whom it waits for."""
    lines = [f"{shown['problem']} ({shown['run']}): {ending(state, record.stop_reason)}"]
    if record.ended_by and state != RunState.RUNNING:
        what = "ended by" if state == INTERRUPTED else "its latest session failed"
        lines.append(f"{what}: {printable(record.ended_by)}")
    if state == RunState.RUNNING and record.exported_at is None:
        if is_told_to_stop:
            lines.append("it was told to stop, and ends after the steps in flight; it can be resumed")
        else:
            lines.append(
                f"it takes an idea or a kernel of yours meanwhile, and can be stopped, resumably: {_steering(run)}"
            )
    if shown["without"]:
        lines.append(f"without {', '.join(shown['without'])}")
    if words := replay_words(shown["replay"]):
        lines.append(words)
    calls = shown["cost"]["model_calls"]
    if state == RunState.WAITING or calls["waiting"]:
        where = "mailbox" if calls["waiting"] > calls["batched"] else "batch" if calls["batched"] else "parked"
        kernels = without_verdict if state == RunState.WAITING else 0
        words = waiting_words(
            calls["waiting"], run, batched=calls["batched"], unjudged=kernels, device=device_name(shown)
        )
        lines.append(f"{where}: {words}")
    return lines


def _steering(run: Path) -> str:
    """Return the commands that speak to a search that runs."""
    name = shlex.quote(str(run))
    return f'ridgeline idea {name} "…", ridgeline seed {name} FILE, ridgeline stop {name}'
