"""What run.log keeps of a run that a fault ended, and what the terminal gets."""

from __future__ import annotations

import errno
import logging
import os
from pathlib import Path

import pytest

from ridgeline.graph.session.run_log import log_to
from ridgeline.tools.errors import EngineError, ModelError, StorageError
from ridgeline.tools.machine.logs import logger_of


def test_log_ends_with_the_fault_and_its_traceback(tmp_path: Path) -> None:
    fault = EngineError("the judge died")
    with pytest.raises(EngineError) as caught, log_to(tmp_path / "run.log"):
        raise fault
    assert caught.value is fault
    text = (tmp_path / "run.log").read_text()
    assert "ended by EngineError: the judge died" in text
    assert "Traceback" in text


def test_unforeseen_exception_becomes_one_line_that_names_the_log(tmp_path: Path) -> None:
    with (
        pytest.raises(EngineError, match="KeyError: 'absent'; the traceback is in .*run.log"),
        log_to(tmp_path / "run.log"),
    ):
        {}["absent"]
    assert "Traceback" in (tmp_path / "run.log").read_text()


def test_unforeseen_exception_without_a_run_folder_stays_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(KeyError), log_to(tmp_path / "absent" / "run.log"):
        {}["absent"]
    assert not (tmp_path / "absent").exists()


@pytest.mark.parametrize(
    "error", [ModelError("no key"), OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), KeyboardInterrupt()]
)
def test_what_the_command_line_knows_how_to_say_passes_through(tmp_path: Path, error: BaseException) -> None:
    with pytest.raises(type(error)) as caught, log_to(tmp_path / "run.log"):
        raise error
    assert caught.value is error
    assert f"ended by {type(error).__name__}" in (tmp_path / "run.log").read_text()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_drops_lines_without_a_word_and_keeps_what_ended_the_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    fault = StorageError("archive.sqlite: the disk is full; free some space and try again")

    def search() -> None:
        logger_of("ridgeline.graph").info("round 1")
        raise fault

    with pytest.raises(StorageError) as caught, log_to(Path("/dev/full")):
        search()
    assert caught.value is fault
    assert capsys.readouterr().err == ""


def test_no_line_of_the_log_commands_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.getLogger("ridgeline"), "propagate", False)  # pytest cannot report half a character
    with log_to(tmp_path / "run.log"):
        logger_of("ridgeline.test").warning("%s", "a\x1b[2J\udcffb")
    assert (tmp_path / "run.log").read_text().endswith("a [2J b\n")
