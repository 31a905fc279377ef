"""What the words of the command line ask for."""

from __future__ import annotations

from pathlib import Path

from ridgeline.checkpoints.runs.suite import Row, Suite
from ridgeline.graph.cli.arguments import make_parser
from ridgeline.graph.cli.commands.suite import _request
from ridgeline.graph.cli.request import request_of_words


def test_every_option_of_a_search_reaches_its_request() -> None:
    words = (
        "run softmax --rounds 3 --ideas 2 --implementations 4 --repairs 0 --tune-trials 0 --strategy revision --model a:b "
        "--model c:d --device cuda:1 --bank none --max-usd 1 --max-tokens 2 --max-wall-s 3 --max-gpu-s 4 --rng-seed 5 "
        "--unsafe-no-sandbox --model-timeout-s 90 --model-attempts 2"
    )
    args = make_parser().parse_args(words.split())
    asked = request_of_words(vars(args), problem=args.problem, run_dir=None, resume=False)
    assert asked.settings == {
        "rounds": 3, "ideas": 2, "implementations": 4, "repairs": 0, "tune_trials": 0, "strategy": "revision",
    }  # fmt: skip
    assert (asked.problem, asked.models, asked.device, asked.bank) == ("softmax", ("a:b", "c:d"), "cuda:1", None)
    assert asked.budget is not None
    assert (asked.budget.usd, asked.budget.tokens, asked.budget.wall_s, asked.budget.gpu_s) == (1, 2, 3, 4)
    assert asked.model_calls == {"timeout_s": 90, "attempts": 2}
    assert (asked.rng_seed, asked.max_rounds, asked.allow_unsafe) == (5, 3, True)


def test_a_suites_search_that_has_begun_is_not_extended_by_the_suites_rounds(tmp_path: Path) -> None:
    row = Row(name="toy", problem="toy/problem.yaml", run="01-toy")
    suite = Suite(options={"rounds": 3, "rng_seed": 7, "model": ["offline"], "max_usd": 2.0}, rows=(row,))
    new = _request(suite, row, tmp_path, is_begun=False)
    assert (new.settings, new.max_rounds, new.rng_seed, new.resume) == ({"rounds": 3}, 3, 7, False)
    begun = _request(suite, row, tmp_path, is_begun=True)
    assert (begun.settings, begun.max_rounds, begun.resume) == ({}, None, True)
    assert (begun.models, begun.budget) == (new.models, new.budget)
