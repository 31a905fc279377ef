"""`ridgeline mailbox`, and a run that is parked, as a user types them."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from tests.environments import child_environment
from tests.graph.cli.command_line import LINE_OF, assert_one_line, in_memory, ridgeline
from tests.graph.requests_made import kernel

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.calls.journal import Journal
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.graph.models.mailbox.mailbox import Mailbox
from ridgeline.graph.models.mailbox.model import LaterModel
from ridgeline.graph.state import GRAPH_VERSION
from ridgeline.tools.records.vocabulary import RunState

ID = "r1i0v0a0:write"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A parked run with two requests."""
    folder = tmp_path / "run"
    with Archive.open(folder / "archive.sqlite") as archive:
        record = RunRecord(graph_version=GRAPH_VERSION, state=RunState.WAITING, problem={"name": "toy"}, settings={})
        archive.save_run(record)
        for call_id in (ID, "r1i1v0a0:write"):
            Mailbox(Journal(archive)).post(
                call_id, LaterModel(name="mailbox"), kernel(), prompt=f"write {call_id}", sha256=call_id
            )
    return folder


def test_the_list_of_a_run_without_a_mailbox_says_that_it_has_none(tmp_path: Path) -> None:
    with Archive.open(tmp_path / "run" / "archive.sqlite") as archive:
        record = RunRecord(graph_version=GRAPH_VERSION, state=RunState.FINISHED, problem={"name": "toy"}, settings={})
        archive.save_run(record)
        archive.save_run(RunRecord(models=("offline",)))
    told = ridgeline("mailbox", "list", str(tmp_path / "run")).stdout
    assert told == "no request waits: this search has no mailbox (ridgeline run --model mailbox begins one that has)\n"
    assert ridgeline("mailbox", "list", str(tmp_path / "run"), "--json").stdout == "[]\n"


def test_requests_are_listed_shown_and_answered(run: Path, tmp_path: Path) -> None:
    listed = json.loads(ridgeline("mailbox", "list", str(run), "--json").stdout)
    assert [entry["id"] for entry in listed] == [ID, "r1i1v0a0:write"]
    assert listed[0]["answer_files"] == [f"r1i0v0a0_write.answer.{end}" for end in ("md", "json", "cpp")]
    assert "2 requests waiting" in ridgeline("mailbox", "list", str(run)).stdout
    shown = json.loads(ridgeline("mailbox", "show", str(run), "--json").stdout)
    assert (shown["id"], shown["prompt"]) == (ID, f"write {ID}")
    assert shown["schema"]["required"] == ["source", "edits", "notes"]
    assert ridgeline("mailbox", "show", str(run), "r1i1v0a0:write").stdout.endswith("write r1i1v0a0:write\n")
    (tmp_path / "mine.cpp").write_text("int a;")
    done = ridgeline("mailbox", "answer", str(run), ID, str(tmp_path / "mine.cpp"), "--json")
    assert json.loads(done.stdout) == {"id": ID, "waiting": 1}
    assert not (run / "mailbox" / "r1i0v0a0_write.request.md").exists()
    assert_one_line(ridgeline("mailbox", "answer", str(run), ID, str(tmp_path / "mine.cpp")), "answered already")


def test_an_answer_may_come_from_standard_input(run: Path) -> None:
    done = subprocess.run(
        [*LINE_OF, "mailbox", "answer", str(run), ID],
        input=b"```cpp\nint a;\n```\n",
        capture_output=True,
        env=child_environment(),
        check=True,
    )
    assert b"1 request waiting" in done.stdout


def test_what_is_no_answer_gets_one_line_and_the_request_waits(run: Path, tmp_path: Path) -> None:
    (tmp_path / "kernel.so").write_bytes(b"\x7fELF\xff")
    assert_one_line(ridgeline("mailbox", "answer", str(run), ID, str(tmp_path / "kernel.so")), "refused", "UTF-8")
    (tmp_path / "large.cpp").write_bytes(b"x" * (50 * 2**20))
    assert_one_line(ridgeline("mailbox", "answer", str(run), ID, str(tmp_path / "large.cpp")), "50.0 MiB")
    (tmp_path / "larger.cpp").write_bytes(b"x" * (2 * 2**20 + 1))
    assert_one_line(ridgeline("mailbox", "answer", str(run), ID, str(tmp_path / "larger.cpp")), "has more than 2 MiB")
    assert_one_line(ridgeline("mailbox", "answer", str(run), ID, str(tmp_path)), "is a directory")
    assert_one_line(ridgeline("mailbox", "answer", str(run), ID, str(tmp_path / "none.cpp")), "no such file")
    assert_one_line(ridgeline("mailbox", "answer", str(run), "../x", os.devnull), "no request '../x'", ID)
    assert "2 requests waiting" in ridgeline("mailbox", "list", str(run)).stdout


def test_a_run_of_another_version_is_refused_as_it_is(run: Path) -> None:
    with Archive.open(run, create=False) as archive:
        archive.save_run(RunRecord(graph_version="ancient"))
    before = (run / "archive.sqlite").read_bytes()
    assert_one_line(ridgeline("mailbox", "answer", str(run), ID, os.devnull), "ancient", "continue it with")
    assert_one_line(ridgeline("mailbox", "list", str(run)), "ancient")
    assert (run / "archive.sqlite").read_bytes() == before


def test_a_mailbox_that_is_a_link_out_of_the_run_is_refused(run: Path, tmp_path: Path) -> None:
    (run / "mailbox").rename(tmp_path / "elsewhere")
    (run / "mailbox").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "mine.cpp").write_text("int a;")
    assert_one_line(ridgeline("mailbox", "answer", str(run), ID, str(tmp_path / "mine.cpp")), "is a link")


def test_show_tells_for_how_many_answers_a_run_waits_and_how_it_goes_on(run: Path) -> None:
    told = ridgeline("show", str(run)).stdout
    assert "waiting for answers to its requests or for its device, and can be resumed" in told
    assert f"mailbox: 2 requests waiting in {run / 'mailbox'}" in told
    assert f"--resume {run} --park" in told


@pytest.mark.parametrize("words", [("mailbox",), ("mailbox", "list"), ("mailbox", "answer", "x"), ("mailbox", "no")])
def test_words_that_say_too_little_get_one_line(words: tuple[str, ...]) -> None:
    assert_one_line(ridgeline(*words))


def test_a_parked_run_ends_with_75_and_says_how_it_goes_on(problem: Path, tmp_path: Path) -> None:
    words = ["run", str(problem), "--model", "mailbox", "--park", "--plain", "--bank", "none", "--run-dir", "parked"]
    done = in_memory(*words, cwd=tmp_path)
    assert done.returncode == 75, done.stderr + done.stdout
    assert "parked:  1 request waiting in parked/mailbox (ridgeline mailbox list parked); go on: " in done.stdout
    assert f"--resume {tmp_path}/parked --park" in done.stdout


def test_a_parked_run_and_show_say_which_answer_was_refused_and_why(problem: Path, tmp_path: Path) -> None:
    words = ("run", str(problem), "--model", "mailbox", "--park", "--plain", "--bank", "none")
    parked = in_memory(*words, "--run-dir", "parked", cwd=tmp_path)
    assert "refused" not in parked.stdout
    answer = tmp_path / "parked" / "mailbox" / "r1_ideate_0.answer.json"
    answer.write_text('{"ideas": 7}')
    os.utime(answer, (0, 0))  # it is whole
    resumed = in_memory("run", "--resume", "parked", "--park", "--plain", "--bank", "none", cwd=tmp_path)
    assert resumed.returncode == 75, resumed.stderr
    [line] = [line for line in resumed.stdout.splitlines() if line.startswith("refused: ")]
    assert line.startswith("refused: the answer to r1:ideate:0: ") and "ideas" in line
    assert line.endswith("; mend its file, or ridgeline mailbox answer parked r1:ideate:0 FILE")
    shown = ridgeline("show", "parked", cwd=tmp_path).stdout.splitlines()
    assert line in shown
