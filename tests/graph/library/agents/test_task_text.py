"""What is read from the text of a sub-agent's task."""

from __future__ import annotations

from pathlib import Path

import pytest

from ridgeline.graph.library.agents.agent_search import Wish
from ridgeline.graph.library.agents.task_text import read_task
from ridgeline.problems.spec import shipped_problems
from ridgeline.tools.errors import InputError

NAMES = list(shipped_problems())


@pytest.mark.parametrize(
    ("text", "wish"),
    [
        ("Make softmax faster.", Wish(problem="softmax")),
        ("problem: softmax\nrounds: 2\n", Wish(problem="softmax", rounds=2)),
        ("Use `problem=matmul`, rounds=4.", Wish(problem="matmul", rounds=4)),
        ("the Matmul FP16 kernel, please", Wish(problem="matmul_fp16")),
        ("attention-fp16-d128", Wish(problem="attention_fp16_d128")),
        ("softmax, softmax and again softmax!", Wish(problem="softmax")),
        ("My softmax lies in 'work/mine.yaml'.", Wish(problem="work/mine.yaml")),
        ("problem: softmax, which is faster than matmul", Wish(problem="softmax")),
        ("resume: runs/softmax-1, rounds: 5", Wish(resume="runs/softmax-1", rounds=5)),
        ("a softmaxed layer, pre-softmax, and x/softmax.py", Wish()),
        ("make my model faster", Wish()),
        ("", Wish()),
    ],
)
def test_a_task_says_what_it_asks_for(text: str, wish: Wish) -> None:
    assert read_task(text, NAMES) == wish


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("softmax or matmul?", "several problems are named: matmul, softmax; name one, as `problem: matmul`"),
        ("a/problem.yaml and b/problem.yaml", "several problems are named: a/problem.yaml, b/problem.yaml"),
        ("problem: softmax rounds: few", "rounds: must be a whole number of 1 or more, got 'few'"),
        ("problem: softmax rounds: 0", "rounds: must be a whole number of 1 or more, got '0'"),
    ],
)
def test_a_task_that_leaves_open_what_is_meant_is_refused(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said.replace("?", r"\?")):
        read_task(text, NAMES)


@pytest.mark.parametrize("word", ["AAAA/" + "b" * 5000, "a/\0b", "/\ud800/x"])
def test_a_word_that_can_be_no_path_is_none(word: str) -> None:
    assert read_task(f"Make softmax faster: {word}", NAMES) == Wish(problem="softmax")


def test_a_folder_with_a_problem_is_one(tmp_path: Path) -> None:
    (tmp_path / "problem.yaml").touch()
    assert read_task(f"Search in {tmp_path}, now.", NAMES) == Wish(problem=str(tmp_path))
