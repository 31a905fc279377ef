"""The pages that are served of a run: its page and its state, rendered from the archive as it is.

The search measures times on the same machine meanwhile. So nothing is read again while the archive's files are the same,
and rendering takes a tenth of one core at most: after it the last page stands for ten times as long as it took.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.report.run_page import RunPage, run_page
from ridgeline.checkpoints.runs.folders import stored_state
from ridgeline.checkpoints.stored_certificate import certifies

REST = 10.0
"""How often as long as a page took to render it stands before the next one is rendered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One state of a run as it is served."""

    page: bytes
    status: bytes  # JSON


class RunPages:
    """The page and the state of one run folder; its methods may be called from many threads."""

    def __init__(self, run_dir: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._run_dir = run_dir
        self._clock = clock
        self._lock = threading.Lock()
        self._signature: tuple[object, ...] | None = None
        self._shown: Shown | None = None
        self._not_before = 0.0

    def shown(self) -> Shown:
        """Return the run as it is, or as it was when it was read last.

        Raises:
            InputError: the archive is damaged, or gone.
        """
        with self._lock:
            signature = stored_state(self._run_dir)
            if self._shown is not None and (signature == self._signature or self._clock() < self._not_before):
                return self._shown
            began = self._clock()
            self._shown = _read(self._run_dir, _version(signature))
            self._signature = signature  # of before the reading: what is stored during it is read next time
            ended = self._clock()
            self._not_before = ended + REST * (ended - began)
            return self._shown


def _version(signature: tuple[object, ...]) -> str:
    return hashlib.sha256(repr(signature).encode()).hexdigest()[:16]


def _read(run_dir: Path, version: str) -> Shown:
    with Archive.open_read_only(run_dir) as archive:
        page = run_page(archive, version=version)
    status = _status(page) | {"version": version, "run": run_dir.name}
    return Shown(page=page.html.encode(), status=json.dumps(status, allow_nan=False).encode())


def _status(page: RunPage) -> dict[str, Any]:
    result, now = page.result, page.progress
    best = result["best"]
    return {
        "problem": result["problem"],
        "state": str(page.state),
        "round": now.round,
        "rounds": now.rounds,
        "candidates": now.candidates,
        "unjudged": len(now.unjudged),
        "open_calls": len(now.calls),
        "best": {name: best[name] for name in ("id", "idea", "speedup", "speedup_ci95")} if best else None,
        "certified": certifies(page.certificate, best["id"] if best else None),
        "tokens": result["tokens"],
        "usd": result["usd"],
    }
