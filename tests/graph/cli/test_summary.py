"""The lines that end a search on the command line."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.graph.conftest import Search

from ridgeline.checkpoints.result import BestKernel
from ridgeline.graph.cli.arguments import make_parser
from ridgeline.graph.cli.summary import closing_lines, resume_command, resume_line, round_lines, winner_lines
from ridgeline.graph.session.outputs import SearchResult
from ridgeline.problems.spec import Budget


def test_resume_command_works_in_any_folder_and_where_ridgeline_is_not_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ridgeline").write_text("#!/bin/sh\n")
    (tmp_path / "ridgeline").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert resume_command(Path("runs/a b")) == f"ridgeline run --resume '{tmp_path}/runs/a b'"
    monkeypatch.setenv("PATH", "")
    python = tmp_path / ".venv" / "bin" / "python"
    monkeypatch.setattr("sys.executable", str(python))
    assert resume_command(Path("runs/a")) == f"{python} -m ridgeline.graph.run --resume {tmp_path}/runs/a"
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))  # as in .venv/bin after `make demo`
    assert resume_command(Path("runs/a")) == f"{tmp_path}/ridgeline run --resume {tmp_path}/runs/a"


BEST = {
    "id": "r1i0v0a0", "idea": "Fuse the two passes", "origin": "model", "round": 1, "source_path": "best.cpp",
    "speedup": 2.0, "speedup_ci95": [1.9, 2.1], "speedup_vs_best": 1.5, "baselines_failed": [], "speedup_vs_seed": None,
    "speedup_vs_seed_ci95": None, "median_ms": 1.0, "reference_ms": None, "precision_class": "fp32", "labels": [],
}  # fmt: skip


def end_of(
    run_dir: Path,
    *,
    state: str = "finished",
    reason: str = "",
    certified: bool = True,
    history: Any = (),
    failed: Sequence[str] = (),
    written_input: str = "",
    **best: Any,
) -> list[str]:
    """Return the last lines of a run whose kernel is `BEST` but for `best`."""
    result = SearchResult(
        run_dir=run_dir,
        state=state,
        reason=reason,
        rounds=1,
        best_id="r1i0v0a0",
        best_source="",
        best_source_path=run_dir / "best.cpp",
        speedup=2.0,
        certified=certified,
        failed=failed,
        written_input=written_input,
        report={"best": BEST | best, "history": history},
    )
    return closing_lines(result)


def test_end_with_a_winner_says_its_figures_and_how_to_call_it(tmp_path: Path) -> None:
    lines = end_of(tmp_path)
    assert "winner:  r1i0v0a0: Fuse the two passes" in lines
    assert "         2.00x (95 % 1.90 to 2.10) as fast as eager PyTorch, 1.50x its best configuration" in lines
    assert lines.index(f"         certified; source {tmp_path / 'best.cpp'}") + 1 == next(
        number for number, line in enumerate(lines) if "docs/use-the-kernel.md" in line
    )
    assert f"         as a package: ridgeline ship {tmp_path} --out DIR" in lines
    lines = end_of(tmp_path, written_input="state")
    assert "         as a package: none, since its reference writes its input state" in lines
    assert "ridgeline ship" not in "".join(lines)


@pytest.mark.parametrize(
    ("ratio", "interval", "told"),
    [
        (
            1.23,
            [1.07, 1.47],
            "eager PyTorch, 1.50x its best configuration, 1.23x (95 % 1.07 to 1.47) the best seed kernel",
        ),
        (
            1.02,
            [0.97, 1.08],
            "eager PyTorch, but no proven gain over the best seed kernel: 1.02x (95 % 0.97 to 1.08); 1.50x",
        ),
        (
            0.92,
            [0.90, 0.94],
            "eager PyTorch, but slower than the best seed kernel: 0.92x (95 % 0.90 to 0.94); 1.50x PyT",
        ),
    ],
)
def test_end_says_beside_the_speedup_when_the_gain_over_the_seed_is_not_proven(
    tmp_path: Path, ratio: float, interval: list[float], told: str
) -> None:
    lines = end_of(tmp_path, speedup_vs_seed=ratio, speedup_vs_seed_ci95=interval)
    assert any(f"2.00x (95 % 1.90 to 2.10) as fast as {told}" in line for line in lines)


def test_end_says_beside_the_speedup_when_the_gain_over_eager_is_not_proven(tmp_path: Path) -> None:
    lines = end_of(tmp_path, certified=False, speedup=1.02, speedup_ci95=[0.97, 1.08])
    assert any(
        "as fast as eager PyTorch, but no proven gain over it; 1.50x PyTorch's best conf" in line for line in lines
    )
    both = {"speedup": 1.02, "speedup_ci95": [0.97, 1.08], "speedup_vs_seed": 1.0, "speedup_vs_seed_ci95": [0.9, 1.1]}
    told = "but no proven gain over it and over the best seed kernel: 1.00x (95 % 0.90 to 1.10);"
    assert any(told in line for line in end_of(tmp_path, certified=False, **both))


def test_end_says_where_pytorch_itself_is_faster(tmp_path: Path) -> None:
    lines = end_of(tmp_path, speedup_vs_best=0.9)
    assert any("as fast as eager PyTorch, but slower than its best configuration: 0.90x" in line for line in lines)
    lines = end_of(tmp_path, certified=False, speedup=1.02, speedup_ci95=[0.97, 1.08], speedup_vs_best=0.9)
    assert any("no proven gain over it; slower than PyTorch's best configuration: 0.90x" in line for line in lines)


def test_end_calls_pytorch_s_best_no_faster_where_the_interval_does_not_tell(tmp_path: Path) -> None:
    for ratio, told in (
        (0.97, "but no faster than its best configuration: 0.970x"),
        (0.995, "but no faster than its best configuration: 0.995x"),
        (1.004, "but no proven gain over its best configuration: 1.004x"),
        (1.06, ", 1.06x its best configuration"),
    ):
        lines = end_of(tmp_path, speedup_vs_best=ratio)  # of 2.00x (1.90 to 2.10)
        assert any(told in line for line in lines), ratio
    lines = end_of(tmp_path, certified=False, speedup=1.02, speedup_ci95=[0.97, 1.08], speedup_vs_best=0.97)
    assert any("no proven gain over it; no faster than PyTorch's best configuration: 0.970x" in line for line in lines)
    lines = end_of(tmp_path, certified=False, speedup=1.52, speedup_ci95=[0.97, 1.66], speedup_vs_best=1.52)
    assert any("PyTorch, but no proven gain over it; 1.52x PyTorch's best configuration" in line for line in lines)


def test_end_names_the_configurations_of_pytorch_that_have_no_figure(tmp_path: Path) -> None:
    lines = end_of(tmp_path, baselines_failed=["compile", "compile_max_autotune"])
    failed = "torch.compile and max-autotune failed: no figure"
    assert any(line.endswith(f"1.50x its best configuration ({failed})") for line in lines)


@pytest.mark.parametrize(
    ("state", "speedup", "told"),
    [
        ("stopped", 0.74, "fastest so far:  r1i0v0a0: Fuse the two passes (slower than PyTorch, not certified)"),
        ("stopped", 1.74, "fastest so far:  r1i0v0a0: Fuse the two passes (not certified)"),
        ("no_gain", 0.74, "fastest:  r1i0v0a0: Fuse the two passes (slower than PyTorch, not certified)"),
    ],
)
def test_end_calls_no_kernel_a_winner_that_is_not_certified(
    tmp_path: Path, state: str, speedup: float, told: str
) -> None:
    lines = end_of(tmp_path, state=state, certified=False, speedup=speedup)
    assert told in lines
    assert f"         source {tmp_path / 'best.cpp'}" in lines
    assert not any("winner" in line or "ridgeline ship" in line for line in lines)


def test_a_figure_below_1_whose_interval_holds_1_is_no_slower_kernel(tmp_path: Path) -> None:
    lines = end_of(tmp_path, state="no_gain", certified=False, speedup=0.97, speedup_ci95=[0.91, 1.04])
    told = "no difference from PyTorch is shown: the interval 0.91 to 1.04 holds 1; not certified"
    assert f"fastest:  r1i0v0a0: Fuse the two passes ({told})" in lines
    assert "         not certified: no difference from eager PyTorch is shown" in lines
    assert not any("slower" in line or "not faster" in line for line in lines)


@pytest.mark.parametrize(
    ("state", "origin", "told"),
    [
        ("stalled", "seed", "no kernel beat the seed that was given; this is that seed"),
        ("stopped", "seed", "no kernel beat the seed that was given yet; this is that seed"),
        ("stalled", "bank", "no kernel beat the one kept from an earlier search; this is that kernel"),
    ],
)
def test_end_says_when_no_kernel_beat_what_the_search_began_with(
    tmp_path: Path, state: str, origin: str, told: str
) -> None:
    assert f"         {told}" in end_of(tmp_path, state=state, origin=origin, idea=None)
    assert not any("no kernel beat" in line for line in end_of(tmp_path, state=state))


@pytest.mark.parametrize(
    ("state", "reason", "told"),
    [
        ("stalled", "no gain in 3 rounds", "finished: no gain in 3 rounds"),
        ("stalled", "the offline model had no further idea", "finished: the offline model had no further idea"),
        ("stalled", "", "finished: nothing more was gained or proposed"),
        (
            "budget",
            "82 s of the 75 s of the budget's wall_s are used",
            "finished: the budget is spent (82 s of the 75 s of",
        ),
        ("stopped", "no gain in 3 rounds", "stopped, and can be resumed"),
        ("waiting", "", "waiting for answers to its requests or for its device, and can be resumed"),
    ],
)
def test_end_says_which_rule_ended_the_search(tmp_path: Path, state: str, reason: str, told: str) -> None:
    assert end_of(tmp_path, state=state, reason=reason)[1].startswith(told)


def test_end_says_what_a_label_means(tmp_path: Path) -> None:
    lines = end_of(tmp_path, labels=["shape_specialised"])
    assert (
        "         1.0000 ms, fp32 [shape_specialised: made for this shape, wrong at some or all others tried]" in lines
    )


def test_end_says_each_round_s_best_with_its_interval_and_the_rule(tmp_path: Path) -> None:
    entry = {"round": 3, "best_id": "r3i0v0a0t0", "best_speedup": 2.34, "best_speedup_ci95": [2.28, 2.41]}
    lines = end_of(tmp_path, history=[entry], reference_ms=2.1)
    assert lines[2] == "  round 3: best 2.34x eager (2.28 to 2.41): r3i0v0a0t0"
    assert "highest lower end" in lines[3]
    told = "(each one's median; 2.00x is the median of the ratios of neighbouring timings)"
    assert f"         1.0000 ms against 2.1000 ms {told}, fp32" in lines
    assert "         1.0000 ms against 2.0100 ms, fp32" in end_of(tmp_path, reference_ms=2.01)


def test_round_says_whether_no_kernel_was_right_or_none_was_judged() -> None:
    rounds = [{"round": 1, "judged": 2, "tuned": 0}, {"round": 2, "judged": 0, "tuned": 0}]
    assert round_lines(rounds) == ["  round 1: no correct kernel", "  round 2: no kernel was judged"]
    assert round_lines(rounds, goes_on=True) == ["  round 1: no correct kernel", "  round 2: no kernel was judged yet"]


@pytest.mark.parametrize(
    ("limits", "used", "told"),
    [
        ({"wall_s": 60}, {"wall_s": 1037.0, "finding_s": 61.2}, " --max-wall-s 130"),
        ({"wall_s": 60, "usd": 5}, {"finding_s": 61, "usd": 1.0}, " --max-wall-s 130"),
        ({"usd": 0.5}, {"usd": 0.49}, " --max-usd 1"),
        (
            {"gpu_s": 30, "tokens": 10_000},
            {"gpu_seconds": 31.0, "tokens": 10_000},
            " --max-tokens 20000 --max-gpu-s 61",
        ),
    ],
)
def test_command_to_go_on_with_a_spent_budget_can_be_pasted(
    tmp_path: Path, limits: dict[str, float], used: dict[str, float], told: str
) -> None:
    result = out_of_budget(tmp_path, used=used)
    [line] = [line for line in closing_lines(result, Budget(**limits)) if line.startswith("go on:")]
    assert line == f"go on:   {resume_command(tmp_path)}{told}"
    words = shlex.split(line.removeprefix("go on:"))[words_before(tmp_path) :]
    assert make_parser().parse_args(["run", *words]).resume == str(tmp_path)


def out_of_budget(run_dir: Path, *, certified: bool = False, used: dict[str, float] | None = None) -> SearchResult:
    """Return how a search without a right kernel ended by its budget."""
    return SearchResult(
        run_dir=run_dir,
        state="budget",
        rounds=1,
        best_id=None,
        best_source=None,
        best_source_path=None,
        speedup=None,
        certified=certified,
        report=used or {},
    )


def test_a_result_is_printed_without_the_source_and_the_report(tmp_path: Path) -> None:
    result = replace(out_of_budget(tmp_path, used={"tokens": 123_456}), best_source="void run() {}")
    assert "state='budget'" in repr(result)
    assert not any(words in repr(result) for words in ("void run", "123456"))


def words_before(run_dir: Path) -> int:
    """Return how many words of the command come before --resume."""
    return shlex.split(resume_command(run_dir)).index("--resume")


async def test_one_round_is_not_called_rounds_nor_finished_since_it_may_be_tuned_still(search: Search) -> None:
    await search.run(search.context(rounds=1))
    assert resume_line(search.archive).startswith("skipped, because it is stored: 1 judged round, ")


@pytest.mark.parametrize(("certified", "told"), [(True, False), (False, True)])
def test_end_by_a_budget_says_when_nothing_was_gained(tmp_path: Path, certified: bool, told: bool) -> None:
    lines = closing_lines(out_of_budget(tmp_path, certified=certified))
    assert "finished: the budget is spent" in lines
    assert any("no kernel was certified as faster" in line for line in lines) is told


@pytest.mark.parametrize(
    ("state", "told"),
    [("stopped", "fastest so far:  none yet"), ("waiting", "fastest so far:  none yet"), ("no_gain", "winner:  none")],
)
def test_a_search_that_goes_on_has_no_winner_yet_and_not_none(tmp_path: Path, state: str, told: str) -> None:
    lines = winner_lines(None, state=state, certified=False, run_dir=tmp_path, source_path=None)
    assert lines == [told]


def test_figures_that_are_absent_are_called_so_and_no_zero(tmp_path: Path) -> None:
    best = BestKernel(
        id="r1i1v0a0", idea="one pass", origin="model", round=1, source_path="best.cpp", speedup=None,
        speedup_ci95=[0.9, 1.1], speedup_vs_best=None, baselines_failed=[], speedup_vs_seed=None,
        speedup_vs_seed_ci95=[0.9, 1.1], median_ms=None, reference_ms=10.0, precision_class="fp32", labels=[],
    )  # fmt: skip
    lines = winner_lines(best, state="finished", certified=False, run_dir=tmp_path, source_path=None)
    assert [line.strip() for line in lines[1:3]] == [
        "speedup over eager PyTorch not measured",
        "time not measured, fp32",
    ]
    assert not any("0.0" in line for line in lines)


def test_end_names_the_kernels_that_the_machine_failed_on_and_how_they_are_judged(tmp_path: Path) -> None:
    [line] = [each for each in end_of(tmp_path, failed=[f"r1i{n}v0a0" for n in range(4)]) if "unjudged" in each]
    said = "4 kernels that the machine failed on (r1i0v0a0, r1i1v0a0, r1i2v0a0, …; run.log says how); judge: "
    assert line == f"unjudged: {said}{resume_command(tmp_path)}"
    assert not [each for each in end_of(tmp_path) if "unjudged" in each]
