"""The model of one's own in docs/models.md, run as it stands there, with the engine in memory."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from ridgeline import SearchOptions, SearchResult, open_run, run_search
from ridgeline.tools.records.vocabulary import Category
from tests.graph.conftest import write_problem
from tests.graph.memory_engine import MemoryEngine
from tests.graph.memory_machine import in_memory
from tests.graph.scripted_model import ScriptedModel

PAGE = (Path(__file__).parents[1] / "docs" / "models.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("## A model of your own")[2].partition("\n## ")[0]


def test_a_model_of_ones_own_runs_and_resumes_as_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_memory(monkeypatch, MemoryEngine, ScriptedModel)
    monkeypatch.chdir(tmp_path)
    write_problem(tmp_path, search={"rounds": 1, "ideas": 1, "implementations": 1, "tune_trials": 0})
    (tmp_path / "mine.cpp").write_text("// speed 2.0\n")
    (example,) = re.findall(r"^```python\n(.*?)^```", SECTION, re.MULTILINE | re.DOTALL)
    names: dict[str, object] = {"print": lambda *_: None}
    eval(compile(example, "models.md", "exec"), names)
    result = names["result"]
    assert isinstance(result, SearchResult) and (result.state, result.certified) == ("finished", True)
    run = open_run(tmp_path / "runs" / "by-mine")
    assert [(idea.title, idea.author) for idea in run.ideas] == [("One pass over each row", "mine")]
    assert run.best_source == "// speed 2.0\n"
    mine = names["Mine"]
    assert isinstance(mine, type)
    again = SearchOptions(resume=True, run_dir=tmp_path / "runs" / "by-mine", max_rounds=2)
    assert asyncio.run(run_search(again, models=[mine()])).state == "stalled", "its one idea was tried"


def test_the_section_names_each_category() -> None:
    assert [category for category in Category if f"`{category}`" not in SECTION] == []
