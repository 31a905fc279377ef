"""What the views make of a search's events."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from ridgeline.graph.progress import Board, PlainView, draw

from .conftest import Search
from .scripted_model import ScriptedModel


def tunable(request: Any) -> dict[str, Any]:
    """Return a kernel with one value to tune."""
    speed = (request.parent.speedup if request.parent else 1.0) * 1.1
    source = "constexpr int UNROLL = 1;  // tune: UNROLL = 1 | 2\n// factor UNROLL 2 1.5\n"
    return {"source": f"// {request.idea.title}{request.variation}\n// speed {speed:.3f}\n{source}", "notes": ""}


@pytest.mark.parametrize("tune_trials", [0, 4])
async def test_a_round_ends_once_whether_it_is_tuned_or_not(search: Search, tune_trials: int) -> None:
    search.model = ScriptedModel(kernel=tunable)
    await search.run(search.context(rounds=3, tune_trials=tune_trials))
    text = io.StringIO()
    board = Board(problem="toy", device="cpu", models=("scripted",))
    view = PlainView(board, Console(file=text, width=200))
    for event in search.events:
        view.show(event)
    assert [line.count(" done: best") for line in text.getvalue().splitlines()].count(1) == 3
    assert board.rounds_seen == len(board.history) == 3
    names = [event["event"] for event in search.events]
    last_tuned = max((n for n, name in enumerate(names) if name == "tune"), default=0)
    assert last_tuned < max(n for n, name in enumerate(names) if name == "round_done")


async def test_board_names_the_idea_of_each_branch_and_of_the_best(search: Search) -> None:
    search.model = ScriptedModel(kernel=tunable)
    output = await search.run(search.context(rounds=1, tune_trials=4))
    board = Board(problem="toy", device="cpu", models=("scripted",))
    for event in search.events:
        board.apply(event)
    console = Console(file=io.StringIO(), width=200)
    console.print(draw(board))
    shown = console.file.getvalue()  # type: ignore[attr-defined]  # a StringIO
    best = search.archive.candidate(output["best_id"])
    assert best.idea_id is not None
    assert f"{best.id}: {search.archive.idea(best.idea_id).title}" in shown
    assert all(branch.outcome.startswith("ok") for branch in board.branches.values())
