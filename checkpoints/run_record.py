"""The record of a whole search: the request, the progress, the best kernel."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from urllib.parse import unquote_to_bytes

from ridgeline.tools.records.baselines import Baselines
from ridgeline.tools.records.codec import Record
from ridgeline.tools.records.printable import encodable
from ridgeline.tools.records.problem import Device, DeviceFact
from ridgeline.tools.records.search import BuildingBlock
from ridgeline.tools.records.vocabulary import RunState, SearchOutcome

OFFLINE = "offline"
"""Name of the model that needs no key and composes kernels itself."""
_URI = "file://"


def path_text(path: Path) -> str:
    """Return an absolute path as a record holds it: as a URI where its bytes are no text, which no database takes."""
    text = str(path)
    return text if encodable(text) == text else path.as_uri()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord(Record):
    """One search; a field of None was never stored.

    The same class is a change: `Archive.save_run` stores the fields that are not None and leaves the others as they are.
    """

    search_id: str | None = None

    # The request, stored when the search begins.
    problem: Mapping[str, Any] | None = None  # problem.yaml, every default filled in
    problem_path: str | None = None  # as `path_text` gives it
    device: Device | None = None
    device_name: str | None = None  # as given: "cpu", "cuda:1"
    settings: Mapping[str, Any] | None = None  # of the search: rounds, ideas, implementations, …
    strategy: str | None = None
    rng_seed: int | None = None
    models: tuple[str, ...] | None = None
    reference_source: str | None = None  # with the target's sizes
    reference_source_sha256: str | None = None
    versions: Mapping[str, str] | None = None
    graph_version: int | str | None = None
    started_at: str | None = None  # UTC, ISO 8601

    replay: Mapping[str, Any] | None = None  # what it replays, as result.json has it

    # The progress.
    budget: Mapping[str, Any] | None = None  # of the latest session
    state: RunState | None = None
    ended_by: str | None = None  # the error that ended its latest session in the middle, in one line; "": none did
    max_rounds: int | None = None  # of an extended search: the rounds that it goes on to
    stop_reason: str | None = None  # the stop rule that ended the rounds, in words; "": they go on
    rounds_outcome: SearchOutcome | None = None  # of the rounds alone, also where no kernel was certified then
    rounds_reason: str | None = None  # that of the same stop
    wall_s: float | None = None  # over all sessions
    finding_s: float | None = None  # the part that a budget counts; an older archive has none
    bank_read: bool | None = None
    facts: tuple[DeviceFact, ...] | None = None  # the device's table that models are shown
    blocks: tuple[BuildingBlock, ...] | None = None  # kernels of other operations that ideation is shown
    sandbox_tier: str | None = None

    # The certificate's part.
    baselines_again: Baselines | None = None  # PyTorch's times as the certificate measured them
    best_id: str | None = None  # "": the search ended and no kernel stood up

    # The copy's origin, in an exported archive.
    exported_at: str | None = None
    exported_from: str | None = None

    @property
    def problem_name(self) -> str:
        """Return the problem's name; empty before the search has begun."""
        return str((self.problem or {}).get("name", ""))

    @property
    def problem_file(self) -> Path | None:
        """Return where the problem's file lay when the search began; None where the record does not say."""
        stored = self.problem_path or None
        if stored and stored.startswith(_URI):
            return Path(os.fsdecode(unquote_to_bytes(stored.removeprefix(_URI))))
        return Path(stored) if stored else None

    @property
    def is_offline(self) -> bool:
        """Say whether the offline model searches alone."""
        return self.models == (OFFLINE,)

    @property
    def has_begun(self) -> bool:
        """Say whether the search stored its request."""
        return self.settings is not None

    @property
    def is_blank(self) -> bool:
        """Say whether neither a request nor any progress of a search is stored."""
        return all(part is None for part in (self.problem, self.settings, self.state))

    def to_json(self) -> dict[str, Any]:
        """Return the fields that are not None; a `best_id` of "" becomes null."""
        values = {name: value for name, value in Record.to_json(self).items() if value is not None}
        return values | ({"best_id": None} if self.best_id == "" else {})

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return the record of a stored object; keys that the class does not have are ignored.

        A state of "" is an older archive's, of a search that is not over.

        Raises:
            KeyError, TypeError, ValueError: a field is not what `to_json` wrote.
        """
        best = {"best_id": data["best_id"] or ""} if "best_id" in data else {}
        return super(RunRecord, cls).from_json({**data, **best, "state": data.get("state") or None})
