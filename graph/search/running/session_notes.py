"""The notes of one session of a search: what it has told already, and whose thread it runs in."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ridgeline.tools.errors import RunError


@dataclass(slots=True, kw_only=True)
class SessionNotes:
    """The memory of a session while it lasts; a resumed search begins with none."""

    ideas_not_tried: set[str] = field(default_factory=set)  # the user's, of which this session was warned
    thread_id: str | None = None  # of the host's thread that runs the search, once one has begun

    def keep_to_thread(self, thread_id: str | None, run_dir: Path) -> None:
        """Refuse a second thread of a host: it would be given what the first one's search found.

        Raises:
            RunError: another thread runs this session's search; None is a graph without a checkpointer.
        """
        self.thread_id = self.thread_id or thread_id
        if thread_id is not None and thread_id != self.thread_id:
            raise RunError(
                f"{run_dir}: this context is the search of thread {self.thread_id}, not of {thread_id}; "
                "open a context for each thread, or let search_node do so"
            )
