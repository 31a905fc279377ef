"""`ridgeline mailbox`: the requests of a search that wait for an answer, and their answers.

A search may live beside it, in another process; every change is one transaction of the journal.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

from ridgeline.checkpoints.runs.folders import find_run
from ridgeline.graph.models.mailbox.answers import MOST_BYTES, too_large
from ridgeline.graph.models.mailbox.document import document_of
from ridgeline.graph.models.mailbox.mailbox import Mailbox
from ridgeline.graph.models.waiting_request import WaitingRequest
from ridgeline.graph.session.answering import give_answer, mailbox_to_read
from ridgeline.graph.session.options import RUNS
from ridgeline.tools.errors import InputError, RunError
from ridgeline.tools.machine.os_errors import is_users_to_mend
from ridgeline.tools.records.printable import printable
from ridgeline.tools.wording import counted, said_by


def execute(args: argparse.Namespace) -> int:
    """List, show or answer; a refusal is an InputError of one line."""
    _ACTIONS[args.action](args, find_run(RUNS, args.run))
    return 0


def _list(args: argparse.Namespace, run: Path) -> None:
    with mailbox_to_read(run) as mailbox:
        waiting, is_asked = mailbox.waiting(), mailbox.is_asked
    if args.json:
        _print(json.dumps([_entry(request) for request in waiting], indent=2))
        return
    for request in waiting:
        refused = f"  refused: {request.refused}" if request.refused else ""
        _print(f"{request.id}  {request.purpose}  {request.model}  asked {request.asked_at}{refused}")
    if not is_asked and not waiting:
        _print("no request waits: this search has no mailbox (ridgeline run --model mailbox begins one that has)")
        return
    where = f" in {mailbox.path}; ridgeline mailbox show {run} ID prints one" if waiting else ""
    _print(f"{counted(len(waiting), 'request')} waiting{where}")


def _show(args: argparse.Namespace, run: Path) -> None:
    with mailbox_to_read(run) as mailbox:
        request = _named(mailbox, args.id, run)
    _print(json.dumps(request.to_json(), indent=2) if args.json else document_of(request).rstrip())


def _answer(args: argparse.Namespace, run: Path) -> None:
    with mailbox_to_read(run) as mailbox:  # nobody types an answer to a request that is none
        mailbox.find(args.id)
    suffix = Path(args.file).suffix[1:] if args.file != "-" else ""
    request_id, left = give_answer(run, args.id, _content(args.file), suffix)
    if args.json:
        _print(json.dumps({"id": request_id, "waiting": left}))
    else:
        _print(f"{request_id} is answered; {counted(left, 'request')} waiting")


_ACTIONS: dict[str, Callable[[argparse.Namespace, Path], None]] = {"list": _list, "show": _show, "answer": _answer}


def _named(mailbox: Mailbox, name: str | None, run: Path) -> WaitingRequest:
    if name is not None:
        return mailbox.find(name)
    if waiting := mailbox.waiting():
        return waiting[0]
    raise RunError(f"{run}: no request waits for an answer")


def _entry(request: WaitingRequest) -> dict[str, object]:
    """Return what a list says of a request: all but its prompt and its schema."""
    return {name: value for name, value in request.to_json().items() if name not in ("prompt", "schema")}


def _content(file: str) -> bytes:
    """Return an answer's bytes, of which one too many is read at most.

    Raises:
        InputError: the file is missing, no file, or too large.
    """
    try:
        if file == "-":
            content = sys.stdin.buffer.read(MOST_BYTES + 1)
        else:
            with open(file, "rb") as opened:
                size = os.fstat(opened.fileno()).st_size
                content = opened.read(MOST_BYTES + 1)
                if size > MOST_BYTES:
                    raise InputError(f"{file}: refused: {too_large(size)}")
    except OSError as error:
        if not is_users_to_mend(error, names_paths=True):
            raise
        raise InputError(f"{file}: {said_by(error)}; name the answer's file, or - for stdin") from None
    if len(content) > MOST_BYTES:
        raise InputError(f"{file}: refused: {too_large(len(content))}")
    return content


def _print(text: str) -> None:
    sys.stdout.write(printable(text, keeps="\n\t") + "\n")
