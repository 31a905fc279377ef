"""The recorded searches of language models that ship: each is replayed whole, twice, from its file alone."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import pytest
from tests.graph.session.test_replay import decisions

from ridgeline import search
from ridgeline.checkpoints.recording.file import read_recording
from ridgeline.checkpoints.recording.recording import Recording
from ridgeline.tools.records.keys import CallId

pytestmark = pytest.mark.long

FOLDER = Path(__file__).parents[2] / "benchmarks" / "recordings"
RECORDINGS = sorted(FOLDER.glob("*.jsonl"))


def test_there_are_recordings_and_make_shows_one() -> None:
    assert RECORDINGS
    shown = (FOLDER.parents[1] / "Makefile").read_text().partition("\ndemo-replay:")[2].partition("\n\n")[0]
    assert any(f"--replay benchmarks/recordings/{path.name}" in shown for path in RECORDINGS)


def whole_rounds(recording: Recording) -> int:
    """Return how many rounds were recorded to their end: one that is the last, or that another followed."""
    begun = max(asked.round for call in recording.calls if (asked := CallId.read(call.call_id)))
    return begun if begun == recording.run.settings["rounds"] else begun - 1


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_a_recorded_search_is_replayed_alike_each_time(path: Path, tmp_path: Path) -> None:
    """Answers and times are the recorded ones: every answer is asked for, none is missing, about the same things."""
    recording = read_recording(path)
    rounds = whole_rounds(recording)
    runs = [tmp_path / name for name in ("first", "second")]
    results = [search(replay=path, replay_timings=True, run_dir=run, rounds=rounds) for run in runs]
    first, second = (decisions(run) for run in runs)
    assert first == second
    assert [result.state for result in results] == ["finished", "finished"]
    counts = json.loads((runs[0] / "result.json").read_text())["replay"]
    asked = {call.call_id for call in recording.calls if (named := CallId.read(call.call_id)) and named.round <= rounds}
    assert {call[0] for call in first["calls"]} == asked
    assert (counts["other_questions"], counts["not_recorded"]) == (0, 0)
    assert first["best"] is not None
    sizes = import_module("prompt_sizes")
    found = sizes.sizes_of(sizes.run_prompts(runs[0]))
    assert max(found.ideation.values()) <= 0.95 * 5500
