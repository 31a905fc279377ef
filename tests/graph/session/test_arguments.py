"""What the library's functions say of a value that is none of theirs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.graph.conftest import write_problem
from tests.graph.memory_engine import MemoryEngine

from ridgeline.graph.library.evaluation import evaluate
from ridgeline.graph.library.search import search
from ridgeline.graph.session.options import SearchRequest
from ridgeline.graph.session.session import run_search
from ridgeline.tools.errors import InputError

NAN = float("nan")
OF_A_SEARCH: list[tuple[str, Any]] = [
    *(("device", None), ("device", 5), ("models", [None]), ("models", 5), ("models", [b"x"]), ("models", b"offline")),
    *(("budget", {"usd": NAN}), ("budget", 5), ("run_dir", 5), ("run_dir", b"x"), ("run_dir", "a\0b")),
    *(("run_dir", "x" * 5000), ("bank", 5), ("bank", "a\0b"), ("on_event", 5)),
    *(("stop", 5), ("config", 5), ("config", [])),
    *(("rng_seed", "x"), ("rng_seed", NAN), ("rng_seed", True), ("resume", "yes"), ("resume", 1)),
]
PROBLEMS = [5, b"x", [], {}, NAN, "x" * 9999, "a\0b"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a problem in the folder that the calls run in, where nothing else may appear."""
    monkeypatch.chdir(tmp_path)
    return write_problem(tmp_path / "problem")


def assert_refused(call: Any, name: str) -> None:
    with pytest.raises(InputError) as error:
        call()
    assert str(error.value).startswith(f"{name}: must be ")
    assert "\n" not in str(error.value)
    assert [path.name for path in Path().iterdir()] == ["problem"]


@pytest.mark.parametrize(("name", "value"), OF_A_SEARCH)
def test_a_search_refuses_a_value_of_another_kind(folder: Path, name: str, value: Any) -> None:
    assert_refused(lambda: search(folder, **{name: value}), name)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_what_names_no_problem_is_refused(problem: Any) -> None:
    assert_refused(lambda: search(problem), "problem")
    assert_refused(lambda: evaluate(problem, ["k.cpp"]), "problem")


@pytest.mark.parametrize("as_list", [False, True])
def test_a_link_to_itself_is_told_of_the_file(folder: Path, as_list: bool) -> None:
    link = Path("loop.cpp")
    link.symlink_to(link)
    with pytest.raises(InputError, match=r"^loop.cpp: is a link that leads to itself; mend it$"):
        evaluate(folder, [link] if as_list else link)


@pytest.mark.parametrize("kernels", [None, [None], 5, b"x", [b"x"], ["a\0b"]])
def test_what_names_no_kernels_is_refused(folder: Path, kernels: Any) -> None:
    assert_refused(lambda: evaluate(folder, kernels), "kernels")


@pytest.mark.parametrize(("name", "value"), [("max_rounds", True), ("max_rounds", 0), ("settings", 5), ("runs_dir", 5)])
def test_a_request_refuses_a_value_of_another_kind(folder: Path, name: str, value: Any) -> None:
    assert_refused(lambda: SearchRequest(problem=folder, **{name: value}), name)


def test_a_request_takes_a_text_for_a_path(folder: Path) -> None:
    asked = SearchRequest(problem=folder, run_dir="run", bank="bank.sqlite", runs_dir="runs")  # type: ignore[arg-type]
    assert (asked.run_dir, asked.bank, asked.runs_dir) == (Path("run"), Path("bank.sqlite"), Path("runs"))


def test_a_listener_that_cannot_be_called_is_refused_before_a_folder_is_made(folder: Path) -> None:
    asked = SearchRequest(problem=folder, run_dir=Path("run"))
    ran = run_search(asked, engine=MemoryEngine(), on_event=5)  # type: ignore[arg-type]
    assert_refused(lambda: asyncio.run(ran), "on_event")
