"""The console shows texts from outside, and no text commands it."""

from __future__ import annotations

import pytest
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ridgeline.graph.cli.console import make_console

HOSTILE = "a\x1b]0;x\x07\x1b[31mb\x9bc"


def test_no_text_commands_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    console = make_console()
    table = Table("name")
    table.add_row(Text(HOSTILE))
    console.print(HOSTILE, markup=False)
    console.print(table)
    with Live(Text(HOSTILE), console=console, auto_refresh=False):
        pass
    shown = capsys.readouterr().out
    assert "[31mb" in shown
    assert all(char.isprintable() or char == "\n" for char in shown)


def test_colours_of_the_consoles_own_stay(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    make_console().print(Text("word", style="bold"))
    assert "\x1b[1mword" in capsys.readouterr().out


@pytest.mark.parametrize("columns", [None, "0", "wide"])
def test_what_is_piped_is_neither_wrapped_nor_filled_with_blanks(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: str | None
) -> None:
    if columns is None:
        monkeypatch.delenv("COLUMNS", raising=False)
    else:
        monkeypatch.setenv("COLUMNS", columns)
    table = Table("name", "words", box=None, pad_edge=False)
    table.add_row("a", "word " * 40)
    table.add_row("long name", "few")
    make_console().print(table)
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["name       words", f"a          {'word ' * 40}".rstrip(), "long name  few"]
