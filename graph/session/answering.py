"""The mailbox of a run for another process than its search's: requests that wait, and an answer to one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.calls.journal import Journal
from ridgeline.checkpoints.runs.folders import refuse_other_version
from ridgeline.checkpoints.storage.own_files import refuse_links
from ridgeline.graph.models.mailbox.answers import RefusedAnswer
from ridgeline.graph.models.mailbox.mailbox import Mailbox
from ridgeline.graph.state import GRAPH_VERSION
from ridgeline.tools.errors import InputError

SOURCE = "source"
"""Stands for the ending of a kernel's source, whatever its language is."""


@contextlib.contextmanager
def mailbox_to_read(run: Path) -> Iterator[Mailbox]:
    """Give a run's mailbox; the run is not changed.

    Raises:
        RunError: the run is of another version of the graph, or its archive cannot be read.
    """
    with Archive.open_read_only(run) as archive:
        refuse_other_version(archive, GRAPH_VERSION)
        yield Mailbox(Journal(archive))


def give_answer(run: Path, named: str, content: bytes, suffix: str) -> tuple[str, int]:
    """Store the answer to a request, durably; return the request's id, and how many wait still.

    Args:
        run: its folder.
        named: the request's id, or the stem of its file.
        content: of the answer's file.
        suffix: the ending of that file; "" for a reply's text, SOURCE for a kernel.

    Raises:
        InputError: it is no answer to this request; the line says what to mend, and the request waits on.
        RunError: the request does not wait, or the run is of another version.
    """
    with mailbox_to_read(run) as mailbox:  # before anything is written: an older run is refused as it is
        request = mailbox.find(named)
    refuse_links(run)
    with Archive.open(run, create=False) as archive:
        mailbox = Mailbox(Journal(archive))
        try:
            mailbox.answer(request, content, request.language if suffix == SOURCE else suffix)
        except RefusedAnswer as error:
            raise InputError(f"{request.id}: refused: {error}") from None
        return request.id, len(mailbox.waiting())
