"""What each part of a search is worth, over a recording."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from tests.graph.memory_engine import MemoryEngine
from tests.graph.scripted_model import ScriptedModel, faster_each_round
from tests.graph.session.test_session import options

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.recording.file import read_recording, write_recording
from ridgeline.graph.session.session import run_search

pytestmark = pytest.mark.long


def kernel(request: Any) -> Any:
    tunable = "#define N 1  // tune: N = 1 | 2 | 4\n// factor N 4 1.3\n"
    return {"source": f"{tunable}{faster_each_round(request)['source']}"}


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recorded")
    asked = options(folder, search={"tune_trials": 8})
    with ThreadPoolExecutor(1) as executor:
        work = run_search(asked, engine=MemoryEngine(), models=[ScriptedModel(kernel=kernel)])
        executor.submit(asyncio.run, work).result()
    write_recording(folder / "run", folder / "toy.jsonl")
    return folder / "toy.jsonl"


@pytest.mark.thorough
def test_variants_are_compared_at_equal_tokens_and_alike_in_every_run(recording: Path) -> None:
    ablation = import_module("ablation")
    variants = ["full", "memory", "tuning", "revision"]
    entry = ablation.measure(recording, variants)
    assert entry == ablation.measure(recording, variants)
    full, without_memory, without_tuning, revision = (entry["variants"][name] for name in variants)
    assert (full["ended"], full["tokens"], full["asked_alike"]) == ("finished", entry["tokens"], 1.0)
    best = [speedup for _, speedup in full["curve"]]
    assert best == sorted(best)
    assert best[0] == 1.2  # the seed, before a token was used
    assert full["best_at"][-1] == best[-1]
    assert without_tuning["best_at"][-1] < full["best_at"][-1]
    assert without_memory["asked_alike"] < 1
    assert revision["tokens"] <= 1.01 * entry["tokens"]
    assert revision["ended"] != "finished"  # its rounds do not end it: tokens do, or the recording


def changed(recording: Path, to: Path, change: Callable[[dict[str, Any]], dict[str, Any] | None]) -> Path:
    """Write a recording with its calls as `change` makes them; None leaves one out."""
    lines = [json.loads(line) for line in recording.read_text().splitlines()]
    records = [(line, change(line["record"]) if line["what"] == "call" else line["record"]) for line in lines]
    to.write_text("".join(json.dumps(line | {"record": record}) + "\n" for line, record in records if record))
    return to


@pytest.mark.thorough
def test_a_recording_that_breaks_off_inside_a_round_is_searched_in_the_rounds_before_it(
    recording: Path, tmp_path: Path
) -> None:
    def without_one_of_the_last_round(call: dict[str, Any]) -> dict[str, Any] | None:
        return None if call["call_id"] == "r2i0v0a0:write" else call

    ablation = import_module("ablation")
    entry = ablation.measure(changed(recording, tmp_path / "cut.jsonl", without_one_of_the_last_round), ["full"])
    assert (entry["rounds"], entry["rounds_begun"]) == (1, 2)
    assert (entry["variants"]["full"]["ended"], entry["variants"]["full"]["asked_alike"]) == ("finished", 1.0)
    assert "1 rounds of 2 (the last was recorded in part)" in ablation.told(entry)
    whole = ablation.measure(recording, ["full"])
    assert (whole["rounds"], whole["rounds_begun"]) == (2, 2) and "of 2" not in ablation.told(whole)
    assert 0 < entry["tokens"] < whole["tokens"]


def test_a_search_that_asks_what_was_not_recorded_says_so_in_brief(recording: Path, tmp_path: Path) -> None:
    def without_one(call: dict[str, Any]) -> dict[str, Any] | None:
        return None if call["call_id"] == "r1i0v0a0:write" else call

    ablation = import_module("ablation")
    entry = ablation.measure(changed(recording, tmp_path / "cut.jsonl", without_one), ["full"])
    assert entry["variants"]["full"]["ended"] == "not recorded: r1i0v0a0:write"


def test_answers_without_stated_tokens_count_by_their_length_and_that_of_their_prompts(
    recording: Path, tmp_path: Path
) -> None:
    """So a mailbox records them that was not told otherwise."""

    def unstated(call: dict[str, Any]) -> dict[str, Any]:
        return call | {"usage": call["usage"] | {"input_tokens": 0, "output_tokens": 0}}

    ablation = import_module("ablation")
    entry = ablation.measure(changed(recording, tmp_path / "unstated.jsonl", unstated), ["full"])
    replies = sum(len(call.reply["text"]) for call in read_recording(recording).calls if call.reply)
    assert entry["tokens"] > replies / 3.6 + 1000 * 3
    assert entry["variants"]["full"]["best_at"][0] != entry["variants"]["full"]["best_at"][-1]


def test_a_call_that_takes_a_few_tokens_more_than_the_search_with_all_parts_still_counts() -> None:
    ablation = import_module("ablation")
    entry = {"curve": [(0, 1.0), (60, 1.5), (100, 2.0), (101, 2.5), (110, 3.0)]}
    found = ablation._at_equal(entry, 100)
    assert (found["tokens"], found["best_at"]) == (101, [1.0, 1.0, 1.5, 2.5])


def test_the_table_has_a_row_for_each_variant(recording: Path) -> None:
    ablation = import_module("ablation")
    rows = ablation.table(ablation.measure(recording, ["full", "novelty"])["variants"]).splitlines()
    assert [row.split("  ")[0] for row in rows] == ["variant", "full", "without novelty"]
    assert rows[1].endswith("finished")


def test_figures_are_written_with_what_is_needed_to_repeat_them(
    recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ablation = import_module("ablation")
    monkeypatch.setattr(import_module("result"), "RESULTS", tmp_path)
    monkeypatch.setattr("sys.argv", ["ablation.py", str(recording), "--only", "full"])
    ablation.main()
    written = json.loads((tmp_path / "ablation.json").read_text())
    assert list(written["figures"]) == ["toy"]
    assert written["command"].startswith("python ablation.py")
    assert "full" in capsys.readouterr().out
    monkeypatch.setattr("sys.argv", ["ablation.py", str(recording), "--only", "memry"])
    with pytest.raises(SystemExit):
        ablation.main()


def test_kernels_that_a_compilers_fix_it_made_right_enter_the_curve(tmp_path: Path) -> None:
    def needs_a_header(request: Any) -> Any:
        return {"source": f"// needs cmath\n{faster_each_round(request)['source']}"}

    ablation = import_module("ablation")
    asked = options(tmp_path, search={"rounds": 1})
    asyncio.run(run_search(asked, engine=MemoryEngine(), models=[ScriptedModel(kernel=needs_a_header)]))
    with Archive.open_read_only(tmp_path / "run") as archive:
        best = archive.run().best_id
        curve = ablation.best_by_tokens(archive)
    assert best is not None and best.endswith("f1")
    assert curve[0][1] == 1.2  # the seed's
    assert curve[-1][1] > 1.2


def test_the_best_so_far_counts_calls_in_the_order_of_their_ids(tmp_path: Path) -> None:
    from ridgeline.checkpoints.calls.journal import Journal

    ablation = import_module("ablation")
    with Archive.open(tmp_path / "archive.sqlite") as archive:
        journal = Journal(archive)
        for call_id in ("r10:ideate:0", "r2:ideate:0", "r2i0v0a0:write", "r1i0v1a0:write", "r1:ideate:0"):
            journal.begin(call_id, model="m", prompt_sha256="0", request={})
            journal.finish(call_id, {"text": "", "input_tokens": len(call_id), "output_tokens": 0, "usd": 0.0})
        assert [tokens for tokens, _ in ablation.best_by_tokens(archive)] == [0, 11, 25, 36, 50, 62]
    assert ablation.best_at([(0, 0.0), (10, 1.5), (20, 2.0)], 15) == 1.5
    assert ablation.best_at([(0, 0.0), (10, 1.5)], 5) is None
