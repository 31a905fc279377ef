"""A stand-in for the judge's process in tests of what the parent decides."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ridgeline.tools.judge.messages import Request, operation
from ridgeline.tools.records.vocabulary import DeviceKind


class Answering:
    """Answers each request by the method of its operation's name."""

    device_kind = DeviceKind.CPU
    pid = -1  # no process

    def __init__(self, n_sets: int) -> None:
        self.n_sets = n_sets
        self.problem = SimpleNamespace(n_sets=n_sets, timed_kinds=(), scalars={})

    def ask(self, request: Request[Any]) -> Any:
        return getattr(self, operation(type(request)))(request)

    def stop(self) -> None:
        """Take no core from anybody: there is no process."""
