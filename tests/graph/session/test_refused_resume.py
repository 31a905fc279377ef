"""Searches that are not resumed: of another problem, other terms or another device."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from tests.graph.conftest import write_problem
from tests.graph.memory_engine import MemoryEngine
from tests.graph.scripted_model import ScriptedModel
from tests.graph.session.test_session import options

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.graph.session.options import SearchRequest
from ridgeline.graph.session.session import run_search
from ridgeline.tools.errors import RunError

pytestmark = pytest.mark.long


async def test_changed_reference_is_refused_on_resume(tmp_path: Path) -> None:
    given = options(tmp_path)
    await run_search(given, engine=MemoryEngine(), models=[ScriptedModel()])
    reference = tmp_path / "problem" / "reference.py"
    reference.write_text(reference.read_text().replace("dim=-1", "dim=0"))
    resumed = SearchRequest(problem=given.problem, run_dir=given.run_dir, resume=True)
    with pytest.raises(RunError, match="changed"):
        await run_search(resumed, engine=MemoryEngine(), models=[ScriptedModel()])


async def test_run_of_another_problem_is_refused_with_both_names(tmp_path: Path) -> None:
    given = options(tmp_path)
    await run_search(given, engine=MemoryEngine(), models=[ScriptedModel()])
    other = write_problem(tmp_path / "other", name="other")
    (tmp_path / "other" / "reference.py").write_text("# another\n" + (tmp_path / "other" / "reference.py").read_text())
    resumed = SearchRequest(problem=other, run_dir=given.run_dir, resume=True)
    with pytest.raises(RunError, match=f"{given.run_dir}: a search of toy, not of other; .* give a run of other"):
        await run_search(resumed, engine=MemoryEngine(), models=[ScriptedModel()])


@pytest.mark.parametrize(("field", "value"), [("tolerance", "bf16"), ("call_timeout_s", 5.0), ("interface", "torch")])
async def test_changed_terms_of_the_problem_are_refused_on_resume(tmp_path: Path, field: str, value: Any) -> None:
    given = options(tmp_path)
    await run_search(given, engine=MemoryEngine(), models=[ScriptedModel()])
    changed = dataclasses.replace(given, problem=given.problem.model_copy(update={field: value}), resume=True)
    with pytest.raises(RunError, match=f"begun with {field} .* now says {value}"):
        await run_search(changed, engine=MemoryEngine(), models=[ScriptedModel()])


async def test_search_of_another_device_is_refused_on_resume(tmp_path: Path) -> None:
    await run_search(options(tmp_path), engine=MemoryEngine(), models=[ScriptedModel()])
    with Archive.open(tmp_path / "run", create=False) as archive:
        archive.save_run(RunRecord(device=dataclasses.replace(archive.run().device, arch="another CPU")))
    with pytest.raises(RunError, match="begun on another CPU"):
        await run_search(options(tmp_path, resume=True), engine=MemoryEngine(), models=[ScriptedModel()])
