"""The status of a search whose process removes its folder between two looks at it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ridgeline.graph.mcp.watching import Watching
from ridgeline.tools.errors import RunError


def children(later: Callable[[Path], Any]) -> Any:
    """Return the searches of a server: at the first look at the one that was refused its folder was still there."""
    looks: list[Path] = []

    def refused(run: Path) -> Any:
        looks.append(run)
        return later(run) if len(looks) > 1 else None

    return SimpleNamespace(starting=lambda _: None, refused=refused, failure=lambda _: None)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "mine").mkdir()
    return tmp_path / "mine"


async def test_a_search_that_was_refused_meanwhile_is_found_and_told_so(run: Path) -> None:
    child = SimpleNamespace(run_dir=run, pid=1, exit_code=2, failure=lambda: "reference.py: raised")
    status = await Watching(run.parent, children(lambda _: child)).status_of("mine")
    assert (status.state, status.is_running, status.error) == ("refused", False, "reference.py: raised")
    status = await Watching(run.parent, children(lambda _: child)).status(run)
    assert status.state == "refused"


async def test_a_folder_that_holds_no_run_stays_a_mistake(run: Path) -> None:
    with pytest.raises(RunError, match="holds no run"):
        await Watching(run.parent, children(lambda _: None)).status_of("mine")
