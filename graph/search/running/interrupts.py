"""Waits of a search as LangGraph's interrupt: for a mailbox's reply, which a host may give, and for a device elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langgraph.types import interrupt

from ridgeline.tools.machine.threads import run_whole

if TYPE_CHECKING:
    from ridgeline.graph.models.mailbox.mailbox import Mailbox
    from ridgeline.graph.models.waiting_request import WaitingRequest


async def put_to_host(mailbox: Mailbox, pending: WaitingRequest, task: str) -> None:
    """Interrupt the graph with a request, and store the value that its host resumes with.

    Returns when the node is to begin anew: with the answer in the journal, with the reason for which the value was refused,
    or because the request was answered in another way meanwhile. One run of a node, a task, puts one request.

    Raises:
        GraphInterrupt: the host has given no value yet.
    """
    request = await run_whole(mailbox.marked, pending, task)
    if request is None:
        return
    value = interrupt(request.to_json())
    await run_whole(mailbox.answer_value, request, value)


def wait_for_device(name: str) -> None:
    """Interrupt the graph until the search is resumed where its device is; no value is asked for.

    Raises:
        GraphInterrupt: always, unless a host resumes with a value nevertheless.
    """
    interrupt({"device": name})
