"""A recording's reference: run as the user after a warning, and not at all where its times are replayed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.graph.cli.command_line import ridgeline
from tests.graph.memory_engine import MemoryEngine
from tests.graph.scripted_model import ScriptedModel
from tests.graph.session.test_session import options

from ridgeline.checkpoints.recording.file import write_recording
from ridgeline.graph.cli.request import reference_warning
from ridgeline.graph.session.options import SearchRequest
from ridgeline.graph.session.session import run_search
from ridgeline.problems.spec import load_problem, shipped_problems

pytestmark = pytest.mark.long

WARNING = "warning: {}: its reference is none that ships: it is run as you, outside of any sandbox"


@pytest.fixture
async def file(tmp_path: Path) -> Path:
    """The recording of a search whose reference leaves a mark wherever it is run."""
    await run_search(options(tmp_path), engine=MemoryEngine(), models=[ScriptedModel()])
    write_recording(tmp_path / "run", tmp_path / "got.jsonl")
    marks = f"open({str(tmp_path / 'mark')!r}, 'w').close()\nraise RuntimeError('I was here')\n"
    return with_reference(tmp_path / "got.jsonl", marks)


def with_reference(file: Path, added: str, *, replaces: bool = False) -> Path:
    """Add to the reference of a recording, or replace it."""
    first, *rest = file.read_text().splitlines()
    line = json.loads(first)
    line["record"]["reference_source"] = added + ("" if replaces else line["record"]["reference_source"])
    file.write_text("\n".join([json.dumps(line), *rest]))
    return file


@pytest.mark.any_tier
def test_a_reference_that_is_run_is_named_first(file: Path, tmp_path: Path) -> None:
    done = ridgeline("run", "--replay", str(file), "--run-dir", str(tmp_path / "again"), "--plain")
    assert (tmp_path / "mark").exists(), done.stderr
    assert done.returncode == 2
    assert "I was here" in done.stderr
    assert " ".join(done.stdout.split()).count(WARNING.format(file)) == 1


def test_replayed_times_run_no_reference_and_need_no_warning(file: Path, tmp_path: Path) -> None:
    words = ["run", "--replay", str(file), "--replay-timings", "--run-dir", str(tmp_path / "again"), "--plain"]
    done = ridgeline(*words)
    assert done.returncode == 0, done.stderr
    assert "run as you" not in done.stdout
    assert not (tmp_path / "mark").exists()


def test_a_reference_that_ships_and_one_that_the_user_names_need_no_warning(file: Path, tmp_path: Path) -> None:
    def warnings(**given: object) -> list[str]:
        search = SearchRequest(replay=file, run_dir=tmp_path / "again", **given)  # type: ignore[arg-type]
        return reference_warning(search.resolve(is_local=False))

    assert warnings() == [WARNING.format(file)]
    named = tmp_path / "problem" / "reference.py"
    named.write_text(json.loads(file.read_text().splitlines()[0])["record"]["reference_source"])
    assert warnings(problem=tmp_path / "problem") == []
    softmax = load_problem(shipped_problems()["softmax"]).reference_source("cpu")
    with_reference(file, softmax, replaces=True)
    assert warnings() == []
    with_reference(file, "# ", replaces=False)
    assert warnings() == [WARNING.format(file)]
