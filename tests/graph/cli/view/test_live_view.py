"""The live view and a terminal: its keys and its state."""

from __future__ import annotations

import io
import os
import pty
import termios
from collections.abc import Iterator

import pytest
from rich.console import Console
from tests.graph.cli.view.boards import make_board

from ridgeline.graph.cli.view.progress import LiveView, quiet_terminal


@pytest.fixture
def terminal() -> Iterator[io.TextIOWrapper]:
    """Return a stream on a terminal that echoes; what is drawn is thrown away."""
    master, slave = pty.openpty()
    with os.fdopen(slave, "w") as stream, os.fdopen(master, "rb"):
        yield stream


def echoes(stream: io.TextIOWrapper) -> bool:
    return bool(termios.tcgetattr(stream.fileno())[3] & termios.ECHO)


def test_live_view_echoes_no_keys_and_restores_the_terminal(
    terminal: io.TextIOWrapper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "tcgetpgrp", lambda _: os.getpgrp())  # as for the terminal that a shell gave us
    before = termios.tcgetattr(terminal.fileno())
    view = LiveView(make_board(), Console(file=terminal, force_terminal=True, width=80, height=24))
    assert not echoes(terminal)
    view.close()
    view.close()
    assert termios.tcgetattr(terminal.fileno()) == before
    with pytest.raises(ZeroDivisionError), quiet_terminal(terminal):
        raise ZeroDivisionError
    assert termios.tcgetattr(terminal.fileno()) == before


def test_live_view_in_the_background_leaves_the_terminal_alone(
    terminal: io.TextIOWrapper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "tcgetpgrp", lambda _: os.getpgrp() + 1)
    with quiet_terminal(terminal):
        assert echoes(terminal)
