from __future__ import annotations

import subprocess
import sys

import pytest

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.calls.journal import Journal
from ridgeline.checkpoints.history.lineage import history
from ridgeline.checkpoints.round_record import RoundRecord

REPLY = {"text": '{"ideas": []}', "input_tokens": 120, "output_tokens": 30, "usd": 0.004, "latency_s": 2.5, "raw": {}}


def _begin(journal: Journal, call_id: str = "r1:ideate:0", sha: str = "aa", **fields: bool) -> None:
    journal.begin(call_id, model="openai:o3", prompt_sha256=sha, request={"round": 1}, **fields)


def test_a_finished_reply_is_stored_and_replayed_whole(archive: Archive) -> None:
    journal = Journal(archive)
    assert journal.stored("r1:ideate:0") is None
    _begin(journal)
    assert journal.stored("r1:ideate:0") is None
    journal.finish("r1:ideate:0", REPLY)
    archive.close()
    with Archive.open(archive.path) as reopened:
        assert Journal(reopened).stored("r1:ideate:0", "aa") == REPLY
        assert Journal(reopened).mismatches == []


def test_a_replayed_prompt_that_differs_is_recorded_and_the_stored_reply_used(archive: Archive) -> None:
    journal = Journal(archive)
    _begin(journal)
    journal.finish("r1:ideate:0", REPLY)
    for _ in range(2):
        assert journal.stored("r1:ideate:0", "bb") == REPLY
    found = [(m["call_id"], m["stored_sha256"], m["replayed_sha256"]) for m in journal.mismatches]
    assert found == [("r1:ideate:0", "aa", "bb")]


def test_the_first_reply_of_a_call_stays(archive: Archive) -> None:
    journal = Journal(archive)
    _begin(journal)
    journal.finish("r1:ideate:0", REPLY)
    _begin(journal, sha="bb")
    journal.finish("r1:ideate:0", {"text": "other"})
    journal.fail("r1:ideate:0", "late")
    assert journal.stored("r1:ideate:0") == REPLY
    assert journal.totals().calls == 1


def test_totals_count_tokens_cost_and_states(archive: Archive) -> None:
    journal = Journal(archive)
    for n in range(4):
        _begin(journal, f"r1i{n}v0a0:write")
    journal.finish("r1i0v0a0:write", REPLY)
    journal.finish("r1i1v0a0:write", REPLY)
    journal.fail("r1i2v0a0:write", "429 Too Many Requests")
    _begin(journal, "r1i4v0a0:write", waiting=True)
    assert journal.totals().tokens == 300
    assert journal.totals().to_json() == {
        "calls": 5, "input_tokens": 240, "output_tokens": 60, "usd": pytest.approx(0.008), "in_flight": 1,
        "waiting": 1, "batched": 0, "failed": 1, "repeated": 0, "unpriced": 0, "repair_input_tokens": 0,
    }  # fmt: skip
    waiting = journal.calls("waiting")
    assert [(c.call_id, c.request) for c in waiting] == [("r1i4v0a0:write", {"round": 1})]
    assert journal.calls("failed")[0].error == "429 Too Many Requests"
    assert len(journal.calls()) == 5


def test_the_input_of_repairs_is_told_apart(archive: Archive) -> None:
    journal = Journal(archive)
    calls = ("r1:ideate:0", "r1i0v0a0:write", "r1i0v0a0:write:again", "r1i0v0a1:write", "r1i0v0a12:write:part2")
    for call in calls:
        _begin(journal, call)
        journal.finish(call, REPLY)
    totals = journal.totals()
    assert (totals.repair_input_tokens, totals.input_tokens) == (240, 600)


def test_a_call_in_flight_when_the_process_is_killed_is_recorded_and_counted_when_repeated(archive: Archive) -> None:
    code = """
import os, signal, sys
from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.calls.journal import Journal
journal = Journal(Archive.open(sys.argv[1]))
journal.begin("r1:ideate:0", model="openai:o3", prompt_sha256="aa", request={})
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", code, str(archive.path)], timeout=60).returncode == -9
    journal = Journal(archive)
    assert journal.totals().in_flight == 1
    _begin(journal)
    journal.finish("r1:ideate:0", REPLY)
    assert (journal.totals().in_flight, journal.totals().repeated) == (0, 1)


def test_a_failed_call_may_be_sent_again(archive: Archive) -> None:
    journal = Journal(archive)
    _begin(journal)
    journal.fail("r1:ideate:0", "timeout")
    assert journal.stored("r1:ideate:0") is None
    _begin(journal)
    assert journal.calls("in_flight")[0].error == ""


def test_what_a_failed_call_cost_is_counted_and_stays_counted_when_it_is_sent_again(archive: Archive) -> None:
    journal = Journal(archive)
    _begin(journal)
    for _ in range(2):
        journal.fail("r1:ideate:0", "no kernel in the reply", {"input_tokens": 700, "output_tokens": 50, "usd": 0.02})
    spent = {"input_tokens": 700, "output_tokens": 50, "usd": pytest.approx(0.02), "failed": 1}
    assert {name: getattr(journal.totals(), name) for name in spent} == spent
    _begin(journal)
    journal.fail("r1:ideate:0", "again", usage={"input_tokens": 5})
    _begin(journal)
    journal.finish("r1:ideate:0", REPLY)
    spent = {"input_tokens": 825, "output_tokens": 80, "usd": pytest.approx(0.024), "failed": 0, "repeated": 2}
    assert {name: getattr(journal.totals(), name) for name in spent} == spent
    archive.save_round(RoundRecord(round=1))
    assert history(archive)[0]["tokens"] == 905


def test_a_reply_to_a_call_that_was_never_begun_is_an_error(archive: Archive) -> None:
    with pytest.raises(KeyError, match="r7:ideate:0"):
        Journal(archive).finish("r7:ideate:0", REPLY)
