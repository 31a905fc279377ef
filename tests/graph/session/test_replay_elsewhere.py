"""A replay away from where it was recorded: another machine, and nothing beside the recording."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.graph.conftest import write_problem
from tests.graph.memory_engine import MemoryEngine
from tests.graph.scripted_model import ScriptedModel, distinct_ideas
from tests.graph.session.test_session import SETTINGS

from ridgeline.checkpoints.recording.file import read_recording, write_recording
from ridgeline.graph.models import journalled
from ridgeline.graph.search import device_table
from ridgeline.graph.session.options import SearchRequest
from ridgeline.graph.session.session import run_search
from ridgeline.tools.records.problem import DeviceFact

pytestmark = pytest.mark.long


def with_block(request: Any) -> Any:
    """Return ideas that take from the building block."""
    return {"ideas": [{**idea, "block": "gemm.cpp"} for idea in distinct_ideas(request)["ideas"]]}


@pytest.fixture
async def file(tmp_path: Path) -> Path:
    """The recording of a search whose problem names a kernel of another operation; the problem is gone."""
    (tmp_path / "problem").mkdir()
    (tmp_path / "problem" / "gemm.cpp").write_text("// a product's own source\n")
    problem = write_problem(
        tmp_path / "problem", search=SETTINGS, references=[{"file": "gemm.cpp", "words": "product"}]
    )
    asked = SearchRequest(problem=problem, run_dir=tmp_path / "run")
    await run_search(asked, engine=MemoryEngine(), models=[ScriptedModel(ideas=with_block)])
    write_recording(tmp_path / "run", tmp_path / "moved.jsonl")
    shutil.rmtree(tmp_path / "problem")
    shutil.rmtree(tmp_path / "run")
    return tmp_path / "moved.jsonl"


def as_of_an_older_version(file: Path) -> None:
    """Take out what older versions did not record."""
    first, *rest = file.read_text().splitlines()
    line = json.loads(first)
    for name in ("blocks", "facts"):
        assert line["record"].pop(name)
    file.write_text("\n".join([json.dumps(line), *rest]))


def prompts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that fills with every prompt."""
    shown: list[str] = []
    worded = journalled.render_request

    def kept(request: Any) -> str:
        shown.append(worded(request))
        return shown[-1]

    monkeypatch.setattr(journalled, "render_request", kept)
    return shown


async def test_a_replay_shows_the_recorded_blocks_and_device_and_needs_no_file(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = prompts(monkeypatch)
    other = (DeviceFact(name="vector width", value="of another machine"),)
    monkeypatch.setattr(device_table, "device_facts", lambda *_, **__: other)
    result = await run_search(SearchRequest(replay=file, replay_timings=True, run_dir=tmp_path / "again"))
    counts = result.report["replay"]
    assert (result.state, counts["other_prompts"], counts["not_recorded"]) == ("finished", 0, 0)
    assert all("// a product's own source" in prompt for prompt in shown)
    assert not any("of another machine" in prompt for prompt in shown)


@pytest.mark.parametrize("is_older", [False, True])
async def test_a_replay_reads_no_file_that_its_recording_names(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_older: bool
) -> None:
    if is_older:
        as_of_an_older_version(file)
    (tmp_path / "seeds").mkdir()
    for name in ("gemm.cpp", "reference.py", "seeds/naive.cpp", "seeds/more.cpp"):  # what its problem names
        (tmp_path / name).write_text("// TOPSECRET\n")
    shown = prompts(monkeypatch)
    asked = SearchRequest(replay=file, replay_timings=True, run_dir=tmp_path / "again")
    problem = asked.resolve(is_local=False).problem
    assert problem.references and problem.seeds == ["seeds/*.cpp"] and problem.seed_paths() == []
    assert (await run_search(asked)).state == "finished"
    assert shown and not any("TOPSECRET" in prompt for prompt in shown)
    assert not any(b"TOPSECRET" in path.read_bytes() for path in (tmp_path / "again").iterdir() if path.is_file())


async def test_an_older_recording_has_no_blocks_and_this_machines_table(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_of_an_older_version(file)
    assert (read_recording(file).run.blocks, read_recording(file).run.facts) == ((), ())
    shown = prompts(monkeypatch)
    facts = (DeviceFact(name="vector width", value="as found here"),)
    monkeypatch.setattr(device_table, "device_facts", lambda *_, **__: facts)
    result = await run_search(SearchRequest(replay=file, replay_timings=True, run_dir=tmp_path / "again"))
    assert result.state == "finished"
    assert not any("// a product's own source" in prompt for prompt in shown)
    assert all("as found here" in prompt for prompt in shown)
