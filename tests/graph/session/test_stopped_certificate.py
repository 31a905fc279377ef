"""A search that is told to stop while its winner is certified: at the end of the measurement under way, resumably."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from langgraph.runtime import RunControl
from tests.graph.certificate.test_other_shapes import REFERENCE, Shaped
from tests.graph.conftest import write_problem
from tests.graph.scripted_model import ScriptedModel
from tests.graph.session.test_session import SETTINGS

from ridgeline.checkpoints.archive import Archive
from ridgeline.graph.session.options import SearchRequest
from ridgeline.graph.session.session import run_search
from ridgeline.tools.engine import DescribeTask, NextBaselineTask, PyTorchTask, Task
from ridgeline.tools.records.vocabulary import Purpose

pytestmark = pytest.mark.long

KEPT = ["verify", "sanitize", "time 0", "time 1", "time 2", "eager", "compile", "audit verify", "audit time 0"]
KEPT += ["CompareTask", "own work", "other shape"]
"""What a certificate measures and stores, in order; its descriptions of other shapes come between the last two."""


class Certifying(Shaped):
    """An engine that notes what a certificate has measured, and has the search stopped in one of its measurements."""

    def __init__(self, stop: RunControl | None = None, at: str = "") -> None:
        super().__init__()
        self.stop, self.at = stop, at
        self.measured: list[str] = []

    async def submit(self, task: Task[Any]) -> Any:
        measured = await super().submit(task)
        if (step := self._step(task)) is not None:
            self.measured.append(step)
            if step == self.at and self.stop is not None:
                self.stop.request_drain("test")
        return measured

    def _step(self, task: Task[Any]) -> str | None:
        """Return which of a certificate's measurements a task is; None for a build, and for one of the search."""
        if isinstance(task, PyTorchTask):
            mode = "compile" if isinstance(task, NextBaselineTask) else "eager"
            return mode if task.purpose is Purpose.CERTIFY else None
        if isinstance(task, DescribeTask):
            return task.name if self.measured else None
        is_certificates = getattr(task, "purpose", None) is Purpose.CERTIFY
        return (getattr(task, "step", "") or task.name) if is_certificates else None


def audited(request: Any) -> dict[str, str]:
    """Return a kernel whose gain is audited."""
    return {"source": f"// {request.idea.title} {request.variation}\n// speed 5\n"}


def of_three_shapes(tmp_path: Path, **fields: Any) -> SearchRequest:
    """Return a search for a reference that has other shapes."""
    (tmp_path / "problem").mkdir(exist_ok=True)
    (tmp_path / "problem" / "shaped.py").write_text(f"{REFERENCE}def get_init_inputs(): ...\n")
    search = SETTINGS | {"rounds": 1, "ideas": 1, "implementations": 1}
    problem = write_problem(tmp_path / "problem", reference="shaped.py", search=search)
    return SearchRequest(problem=problem, run_dir=tmp_path / "run", **fields)


@pytest.mark.parametrize("at", [*KEPT, "DescribeTask"])
async def test_nothing_further_is_measured_after_a_stop_and_a_resume_takes_up_the_rest(tmp_path: Path, at: str) -> None:
    stop = RunControl()
    first = Certifying(stop, at)
    model = ScriptedModel(kernel=audited)
    stopped = await run_search(of_three_shapes(tmp_path), engine=first, models=[model], stop=stop)
    assert (stopped.state, stopped.certified, first.measured[-1]) == ("stopped", False, at)
    assert first.measured.count(at) == 1
    assert not (tmp_path / "run" / "certificate.json").exists()
    second = Certifying()
    resumed = await run_search(of_three_shapes(tmp_path, resume=True), engine=second, models=[model])
    assert (resumed.state, resumed.certified) == ("finished", True)
    again = [step for step in second.measured if step in first.measured]
    assert set(again) <= {"DescribeTask", "other shape"}
    both = [*first.measured, *second.measured]
    assert both.count("other shape") == 3
    assert list(dict.fromkeys(step for step in both if step != "DescribeTask")) == KEPT
    certificate = json.loads((tmp_path / "run" / "certificate.json").read_text())
    assert (certificate["passed"], len(certificate["timings"]), certificate["not_done"]) == (True, 3, {})
    assert [entry["name"] for entry in certificate["baselines"]] == ["eager", "compile"]
    with Archive.open_read_only(tmp_path / "run") as archive:
        assert archive.engine_failures() == []


async def test_a_stop_ends_the_comparison_of_leaders(tmp_path: Path) -> None:
    stop = RunControl()
    search = SETTINGS | {"rounds": 1, "ideas": 1, "implementations": 3, "without": []}
    problem = write_problem(tmp_path / "problem", search=search)
    first, model = Certifying(stop, "CompareTask"), ScriptedModel(kernel=audited)
    asked = {"problem": problem, "run_dir": tmp_path / "run"}
    stopped = await run_search(SearchRequest(**asked), engine=first, models=[model], stop=stop)
    assert (stopped.state, first.measured) == ("stopped", ["CompareTask"])
    second = Certifying()
    resumed = await run_search(SearchRequest(**asked, resume=True), engine=second, models=[model])
    assert (resumed.state, resumed.certified, second.measured[0]) == ("finished", True, "CompareTask")
