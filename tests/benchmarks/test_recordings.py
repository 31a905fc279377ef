"""The recorded searches of language models that ship: each is replayed whole from its file alone, one of them twice.

The one that `make demo-replay` shows every time, all in `make soak`.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from ridgeline.checkpoints.recording.file import read_recording
from ridgeline.tools.records.keys import CallId

pytestmark = pytest.mark.long

FOLDER = Path(__file__).parents[2] / "benchmarks" / "recordings"
RECORDINGS = sorted(FOLDER.glob("*.jsonl"))
IN_SOAK = ("attention_fp16", "conv2d_bias_silu")
"""Replayed in `make soak` alone: each takes a core for ten seconds and more."""


def test_there_are_recordings_and_make_shows_one() -> None:
    assert RECORDINGS
    shown = (FOLDER.parents[1] / "Makefile").read_text().partition("\ndemo-replay:")[2].partition("\n\n")[0]
    assert any(f"--replay benchmarks/recordings/{path.name}" in shown for path in RECORDINGS)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "path",
    [pytest.param(p, id=p.stem, marks=[pytest.mark.slow] if p.stem in IN_SOAK else []) for p in RECORDINGS],
)
def test_a_recorded_search_is_replayed_whole(path: Path, tmp_path: Path) -> None:
    """Answers and times are the recorded ones: every answer is asked for, about the same things."""
    recording = read_recording(path)
    replays = 2 if path == RECORDINGS[0] else 1
    found = import_module("replays").measure(path, tmp_path, replays=replays)
    assert found["are_alike"]
    assert found["states"] == ["finished"] * replays
    asked = [CallId.read(call.call_id) for call in recording.calls]
    recorded = sum(call is not None and call.round <= found["rounds"] for call in asked)
    assert found["decided"]["calls"] - found["not_recorded"] == recorded
    assert found["rounds"] >= recording.run.settings["rounds"] - 2
    assert found["other_questions"] == 0
    assert found["best"] is not None
    assert max(found["prompts"]["ideas"].values()) <= 0.95 * 5500
    assert found["prompts"]["cacheable"] > 0.7
    assert 0 <= found["largest_stage"]["named"] <= found["largest_stage"]["ideas"]
