"""The words of a `ridgeline show` that tests ask for, and what it prints."""

from __future__ import annotations

import argparse

import pytest
from tests.graph.conftest import Search

from ridgeline.graph.cli.commands.show import execute


def asked_for(**words: object) -> argparse.Namespace:
    """Return the parsed words of a `show` that serves no page."""
    return argparse.Namespace(**{"web": False, "port": None, "counters": False} | words)


def shown(search: Search, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int) -> str:
    """Return what `show` prints of the search on a terminal of this width."""
    monkeypatch.setenv("COLUMNS", str(width))
    capsys.readouterr()
    assert execute(asked_for(run=str(search.archive.path.parent), json=False, profile=None)) == 0
    return capsys.readouterr().out
