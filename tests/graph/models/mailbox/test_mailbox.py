"""A run's mailbox: what is posted, dropped into its folder, answered twice, refused."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.graph.requests_made import kernel

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.calls.journal import Journal
from ridgeline.checkpoints.calls.kept_texts import KeptTexts
from ridgeline.graph.models.mailbox import folder
from ridgeline.graph.models.mailbox.answers import RefusedAnswer
from ridgeline.graph.models.mailbox.folder import SETTLED_S, Folder
from ridgeline.graph.models.mailbox.mailbox import MOST_REFUSALS, Mailbox
from ridgeline.graph.models.mailbox.model import LaterModel
from ridgeline.graph.models.waiting_request import WaitingRequest
from ridgeline.problems.model_calls import PriceSettings
from ridgeline.tools.errors import RunError

ID = "r1i0v0a0:write"
STEM = "r1i0v0a0_write"


class Run:
    """A run folder with a journal, its mailbox and one waiting request."""

    def __init__(self, folder: Path, archive: Archive) -> None:
        self.folder, self.journal = folder / "mailbox", Journal(archive)
        self.mailbox = Mailbox(self.journal)
        self.request = self.post(ID)

    def post(self, call_id: str, price: PriceSettings | None = None) -> WaitingRequest:
        model = LaterModel(name="mailbox", price=price)
        posted = self.mailbox.post(call_id, model, kernel(), prompt=f"write {call_id}", sha256=f"hash of {call_id}")
        assert posted is not None
        return posted

    def drop(self, name: str, content: str | bytes, age_s: float = 10) -> Path:
        path = self.folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        os.utime(path, (time.time() - age_s, time.time() - age_s))
        return path

    def refusal(self) -> str:
        return (self.folder / f"{STEM}.refused.txt").read_text()


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    with Archive.open(tmp_path / "archive.sqlite") as archive:
        yield Run(tmp_path, archive)


def test_a_posted_request_waits_with_its_file_and_is_posted_once(run: Run) -> None:
    document = (run.folder / f"{STEM}.request.md").read_text()
    assert f"write {ID}" in document
    run.mailbox.post(ID, LaterModel(name="mailbox"), kernel(), prompt="another prompt", sha256="bb")
    (call,) = run.journal.calls("waiting")
    assert (run.mailbox.find(ID).prompt, call.sent) == (f"write {ID}", 1)


def test_a_prompt_is_kept_once_in_the_table_of_all_models_prompts(run: Run) -> None:
    (call,) = run.journal.calls("waiting")
    assert KeptTexts(run.journal.archive).prompt(call.prompt_sha256) == f"write {ID}"
    assert f"write {ID}" not in json.dumps(call.request)


@pytest.mark.parametrize(
    ("suffix", "content"),
    [("cpp", "int a;"), ("json", '{"source": "int a;"}'), ("md", "text\n```cpp\nint a;\n```\n")],
)
def test_a_dropped_answer_is_taken_up_and_the_request_goes(run: Run, suffix: str, content: str) -> None:
    path = run.drop(f"{STEM}.answer.{suffix}", content)
    assert run.mailbox.take_up().taken == (ID,)
    stored = run.journal.stored(ID)
    assert stored is not None and "int a;" in stored["text"] and stored["usd"] == 0
    assert [child.name for child in run.folder.iterdir()] == [path.name]
    assert run.mailbox.take_up().taken == ()


def test_a_file_that_changed_just_now_or_is_open_for_writing_is_left_alone(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = run.drop(f"{STEM}.answer.cpp", "int a", age_s=SETTLED_S / 4)
    changed_s = path.stat().st_mtime
    with monkeypatch.context() as patch:  # a busy machine would look later
        patch.setattr(folder, "time", SimpleNamespace(time=lambda: changed_s + SETTLED_S / 2))
        look = run.mailbox.take_up()
    assert (look.taken, look.is_unsettled) == ((), True)
    with path.open("a") as file:
        file.write(";")
        file.flush()
        os.utime(path, (time.time() - 10, time.time() - 10))
        assert run.mailbox.take_up().is_unsettled
    os.utime(path, (time.time() - 9, time.time() - 9))
    assert run.mailbox.take_up().taken == (ID,)
    stored = run.journal.stored(ID)
    assert stored is not None and json.loads(stored["text"])["source"] == "int a;"


@pytest.mark.parametrize("name", [f"{STEM}.answer.cpp~", f".{STEM}.answer.cpp.swp", f"{STEM}.cpp", "4913"])
def test_what_editors_leave_is_no_answer(run: Run, name: str) -> None:
    run.drop(name, "int a;")
    assert run.mailbox.take_up().taken == ()
    assert run.journal.ids("waiting") == [ID]


def test_a_refused_file_is_told_beside_it_and_may_be_mended(run: Run) -> None:
    path = run.drop(f"{STEM}.answer.md", "no kernel here")
    assert run.mailbox.take_up().taken == ()
    assert "neither a JSON object nor a fenced code block" in run.refusal()
    assert run.refusal().count("\n") == 1
    (waiting,) = run.mailbox.waiting()
    assert "fenced code block" in waiting.refused
    assert not run.mailbox.take_up().is_unsettled
    path.unlink()
    run.drop(path.name, "```cpp\nint a;\n```", age_s=5)
    assert run.mailbox.take_up().taken == (ID,)
    assert not (run.folder / f"{STEM}.refused.txt").exists()


def test_links_pipes_and_large_files_are_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("int secret;")
    (run.folder / f"{STEM}.answer.cpp").symlink_to(tmp_path / "secret")
    os.utime(run.folder / f"{STEM}.answer.cpp", (1, 1), follow_symlinks=False)
    run.mailbox.take_up()
    assert "is a link" in run.refusal()
    (run.folder / f"{STEM}.answer.cpp").unlink()
    os.mkfifo(run.folder / f"{STEM}.answer.cpp")
    os.utime(run.folder / f"{STEM}.answer.cpp", (1, 1))
    run.mailbox.take_up()
    assert "no regular file" in run.refusal()
    (run.folder / f"{STEM}.answer.cpp").unlink()
    run.drop(f"{STEM}.answer.cpp", b"x" * (3 * 2**20))
    run.mailbox.take_up()
    assert "2 MiB are the most" in run.refusal()
    assert run.journal.ids("waiting") == [ID]


def test_an_answer_to_no_request_of_the_run_says_so(run: Run) -> None:
    run.drop("r9i9_write.answer.cpp", "int a;")
    run.mailbox.take_up()
    assert "no request of this run" in (run.folder / "r9i9_write.refused.txt").read_text()


def test_the_first_of_many_answers_at_once_stays_and_the_others_are_told(run: Run, tmp_path: Path) -> None:
    told: list[str] = []

    def answer(number: int) -> None:
        with Archive.open(tmp_path / "archive.sqlite", create=False) as archive:
            try:
                Mailbox(Journal(archive)).answer(run.request, f"int a{number};".encode(), "cpp")
            except RunError as error:
                told.append(str(error))

    threads = [threading.Thread(target=answer, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(told) == 5
    assert all("was answered already" in line for line in told)


@pytest.mark.parametrize("name", ["r9i0v0a0:write", "../x", "/etc/passwd", "", "x" * 5000])
def test_an_unknown_id_gets_one_line_that_names_those_that_wait(run: Run, name: str) -> None:
    with pytest.raises(RunError) as refused:
        run.mailbox.find(name)
    assert ID in str(refused.value)
    assert len(str(refused.value)) < 400


def test_a_request_is_found_by_its_id_and_by_its_files_name_until_it_is_answered(run: Run) -> None:
    assert run.mailbox.find(STEM) == run.mailbox.find(ID) == run.request
    run.mailbox.answer(run.request, b"int a;", "cpp")
    with pytest.raises(RunError, match="was answered already, at 20"):
        run.mailbox.find(ID)


def test_a_refused_answer_leaves_the_request_waiting_with_the_reason(run: Run) -> None:
    with pytest.raises(RefusedAnswer):
        run.mailbox.answer(run.request, b"\xff\xfe", "cpp")
    assert "UTF-8" in run.mailbox.find(ID).refused


def test_tokens_that_an_answer_states_cost_what_the_problem_says(run: Run) -> None:
    request = run.post("r1i1v0a0:write", PriceSettings(input=1.0, output=10.0))
    answer = {"source": "int a;", "usage": {"input_tokens": 1000, "output_tokens": 100}}
    run.mailbox.answer(request, json.dumps(answer).encode(), "json")
    assert run.journal.totals().usd == pytest.approx(0.002)
    assert run.journal.totals().input_tokens == 1000


def test_files_of_requests_that_wait_no_more_are_removed_and_missing_ones_written(run: Run) -> None:
    (run.folder / f"{STEM}.request.md").unlink()
    (run.folder / "r0_old.request.md").write_text("stale")
    run.mailbox.publish()
    assert [child.name for child in run.folder.iterdir()] == [f"{STEM}.request.md"]


@pytest.mark.parametrize("name", [f"{STEM}.answer.md", "foo.request.md", "r9_x.answer.cpp", f"{STEM}.request.md"])
def test_a_folder_in_the_place_of_a_file_is_left_alone(run: Run, name: str) -> None:
    (run.folder / name).unlink(missing_ok=True)
    (run.folder / name / "inner").mkdir(parents=True)
    os.utime(run.folder / name, (1, 1))
    run.mailbox.publish()
    assert run.mailbox.take_up().taken == ()
    run.drop(f"{STEM}.answer.cpp", "int a;")
    assert run.mailbox.take_up().taken == (ID,)
    assert (run.folder / name / "inner").is_dir()


def test_a_refusal_that_no_file_can_hold_is_left_out(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    run.drop(f"{'x' * 240}.answer.md", "text")
    run.drop("foo.answer.md", "text")
    (run.folder / "foo.refused.txt").mkdir()
    run.drop("bar.answer.md", "text")
    os.mkfifo(run.folder / "bar.refused.txt")
    run.drop(f"{STEM}.answer.cpp", "int a;")
    assert run.mailbox.take_up().taken == (ID,)
    assert caplog.text.count("left alone") == 3


def test_many_files_of_no_request_are_refused_once_and_not_all_beside_them(
    run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    written: list[str] = []
    monkeypatch.setattr(Folder, "refuse", lambda _, stem, why: written.append(stem))
    for number in range(MOST_REFUSALS + 7):
        run.drop(f"junk{number}.answer.md", "text")
    for _ in range(3):
        run.mailbox.take_up()
    assert len(written) == MOST_REFUSALS
    assert [line for line in caplog.messages if "7 answers more refused" in line] == caplog.messages


def test_many_unfit_answers_to_one_request_are_told_of_up_to_a_number_and_a_fit_one_is_taken(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr(run.journal, "refuse", lambda call_id, why: told.append(why))
    for number in range(MOST_REFUSALS + 7):
        run.drop(f"{STEM}.answer.a{number:03}", "text")
    run.mailbox.take_up()
    assert len(told) == MOST_REFUSALS
    run.drop(f"{STEM}.answer.cpp", "int a;")
    assert run.mailbox.take_up().taken == (ID,)


def test_an_answer_that_came_before_its_request_is_taken_once_it_is_asked(run: Run) -> None:
    run.drop("r2i0v0a0_write.answer.cpp", "int early;")
    assert run.mailbox.take_up().taken == ()
    run.post("r2i0v0a0:write")
    assert run.mailbox.take_up().taken == ("r2i0v0a0:write",)


def test_a_name_that_commands_a_terminal_is_told_without(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    run.drop(f"{STEM}.answer.\x1b[2J\n\udcff", "text")
    run.mailbox.take_up()
    assert "answer. [2J" in caplog.messages[0] and caplog.messages[0].isprintable()
    assert "ends in . [2J" in run.refusal()
