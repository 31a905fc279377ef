"""The examples of docs/embedding.md that leave nothing out, run as they stand there, with the engine in memory."""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

import ridgeline
from ridgeline.graph.search import events
from ridgeline.graph.session import machine
from tests.graph.conftest import write_problem
from tests.graph.memory_engine import MemoryEngine
from tests.graph.memory_machine import in_memory
from tests.graph.scripted_model import ScriptedModel

PAGE = Path(__file__).parents[1] / "docs" / "embedding.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
IN_ORDER = (
    *(
        "import EngineError",
        "import evaluate, search",
        "from_dict",
        "from_module",
        "import aevaluate",
        "import open_run",
        "BaseCallbackHandler",
    ),
    "run_search(options",
    "HostState(HostedOutput",
)


@pytest.mark.thorough
async def test_the_calls_of_the_page_run_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_memory(monkeypatch, MemoryEngine, ScriptedModel)
    monkeypatch.chdir(tmp_path)
    write_problem(tmp_path, search={"rounds": 2, "ideas": 1, "implementations": 1, "tune_trials": 0})
    (tmp_path / "mine.cpp").write_text("// speed 2.0\n")
    told: list[tuple[object, ...]] = []
    names: dict[str, object] = {"print": lambda *words: told.append(words)}
    for block in (block for key in IN_ORDER for block in BLOCKS if key in block):
        code = compile(block, str(PAGE), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        running = eval(code, names)
        if inspect.iscoroutine(running):
            await running
    assert {run.name for run in (tmp_path / "runs").iterdir()} >= {"mine", "heard", "own", "toy.nightly"}
    said = [words[0] for words in told]
    assert "finished" in said and "ok" in said and "certify" in said, (
        "the search, the kernel, a node that a callback saw"
    )
    assert isinstance(names["judged"], ridgeline.Evaluation) and names["judged"].speedup == 2.0


def test_every_example_of_the_page_parses_and_takes_public_names_that_are_there() -> None:
    for block in BLOCKS:
        tree = compile(block, str(PAGE), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | ast.PyCF_ONLY_AST)
        taken = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == "ridgeline"]
        assert {alias.name for node in taken for alias in node.names} <= set(ridgeline.__all__)


def test_the_table_of_stable_names_has_every_one() -> None:
    table = PAGE.read_text(encoding="utf-8").partition("## Stable names")[2].partition("\n## ")[0]
    listed = {name for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}
    assert listed == set(ridgeline.__all__) - {"__version__"}
    assert all(getattr(ridgeline, name) is not None for name in listed)


def test_the_table_of_events_has_every_one_with_every_key() -> None:
    table = PAGE.read_text(encoding="utf-8").partition("## Events")[2].partition("\n## ")[0]
    rows = {
        name: set(re.findall(r"`(\w+)`", keys))
        for name, keys in re.findall(r"^\| `(\w+)` \|.*\|(.*)\|$", table, re.MULTILINE)
    }
    hints = [get_type_hints(kind) for kind in get_args(events.SearchEvent)]
    wanted = {get_args(keys.pop("event"))[0]: set(keys) for keys in hints}
    assert rows.keys() == wanted.keys()
    assert {name: keys - rows[name] for name, keys in wanted.items() if keys - rows[name]} == {}


def test_toolbox_of_an_agent_runs_as_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @asynccontextmanager
    async def open_engine(device: str) -> AsyncIterator[MemoryEngine]:
        assert device == "cpu"
        yield MemoryEngine()

    monkeypatch.setattr(machine, "open_engine", open_engine)
    monkeypatch.chdir(tmp_path)
    (example,) = [block for block in BLOCKS if "open_toolbox" in block]
    exec(compile(example, str(PAGE), "exec"), {"__name__": "__main__"})
    answer = json.loads(capsys.readouterr().out)
    assert answer["candidate_id"] and (tmp_path / "kernels.sqlite").is_file()
