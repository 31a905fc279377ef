"""What `ridgeline evaluate` refuses, and its words and a certificate's: how near a kernel is to which limit."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.graph.cli.command_line import assert_one_line, ridgeline
from tests.graph.memory_engine import DEVICE

from ridgeline.checkpoints.report.certificate_rows import certificate_rows
from ridgeline.checkpoints.result import evaluation_line
from ridgeline.checkpoints.stored_certificate import StoredCertificate
from ridgeline.graph.cli import EXIT_INTERNAL, EXIT_INTERRUPTED, EXIT_OK, main
from ridgeline.graph.cli.commands.evaluate import describe, execute
from ridgeline.graph.library.evaluation import Evaluation as Judged
from ridgeline.graph.library.judged_files import TIMING_PYTORCH
from ridgeline.graph.search.judging.judging import failure_text
from ridgeline.tools.records.baselines import Baseline, Baselines, Floor
from ridgeline.tools.records.error_map import LimitUse, Measure
from ridgeline.tools.records.reference_mode import ReferenceMode
from ridgeline.tools.records.results import Evaluation, Timing, Trial, Verdict
from ridgeline.tools.records.vocabulary import Label, PrecisionClass, Purpose, ReasonCode, Status

TIMING = Timing(status=Status.OK, median_ms=1.0, reference_ms=2.0, speedup=2.0, speedup_ci95=(1.9, 2.1))


def trial(factor: float) -> Trial:
    use = LimitUse(measure=Measure.ROW, figure=factor * 4e-5, limit=4e-5)
    return Trial(name="shifted", rel_error=1.8e-6, gate=1e-5, passed=factor <= 1, draw=1, nearest=use)


RIGHT = Verdict(
    status=Status.OK,
    rel_error=1.8e-6,
    precision_class=PrecisionClass.FP32,
    trials=(trial(0.3), trial(0.62)),
    draws=4,
    margin=0.62,
)


def evaluation(verdict: Verdict) -> Evaluation:
    timing = TIMING if verdict.status is Status.OK else None
    return Evaluation(
        key="k",
        candidate_id="c",
        purpose=Purpose.EVALUATE,
        status=verdict.status,
        reason_code=verdict.reason_code,
        reason=verdict.reason,
        verdict=verdict,
        timing=timing,
    )


def test_evaluate_tells_the_margin_and_its_json_the_figure_and_the_limit() -> None:
    line = evaluation_line("k.cpp", evaluation(RIGHT), None)
    assert "fp32, error 1.8e-06, 62 % of the nearest limit (shifted, a row's error)" in describe(line)
    assert (line["margin"], line["secrets"]) == (0.62, 4)
    nearest = line["nearest_limit"]
    assert (nearest["trial"], nearest["draw"], nearest["measure"], nearest["limit"]) == ("shifted", 1, "row", 4e-5)


def test_evaluate_says_where_its_interval_shows_no_difference() -> None:
    assert "ok, 2.00x eager (95 % 1.90 to 2.10), " in describe(evaluation_line("k.cpp", evaluation(RIGHT), None))
    near = replace(evaluation(RIGHT), timing=replace(TIMING, speedup=0.97, speedup_ci95=(0.91, 1.04)))
    told = "ok, 0.97x eager (95 % 0.91 to 1.04: no difference is shown), "
    assert told in describe(evaluation_line("k.cpp", near, None))


def test_evaluate_spells_its_labels_out() -> None:
    labels = (Label.BUSY_MACHINE, Label.LAUNCH_BOUND)
    labelled = replace(evaluation(RIGHT), timing=replace(TIMING, labels=labels))
    told = "[busy_machine: other programs took cores while it was timed, so its times are unreliable; launch_bound: so short"
    assert told in describe(evaluation_line("k.cpp", labelled, None))


def test_evaluate_names_pytorch_s_fastest_configuration_and_its_time() -> None:
    entries = [("eager", 2.0), ("compile", 1.8), ("compile_max_autotune", 0.8)]
    baselines = Baselines(
        device=DEVICE,
        floor=Floor(floor_ms=0.1, compute_floor_ms=0.0, bound="memory", bandwidth_gbps=10.0, gflops=100.0),
        entries=tuple(
            Baseline(name=ReferenceMode(name), precision_class=PrecisionClass.FP32, median_ms=ms, samples=9)
            for name, ms in entries
        ),
    )
    line = evaluation_line("k.cpp", evaluation(RIGHT), baselines)
    which = "2.00x times max-autotune's 0.800 ms / eager's 2.000 ms, timed without the kernel"
    assert f", 0.80x the fastest of PyTorch ({which}), 1.0000 ms against" in describe(line)
    beside = replace(baselines, entries=tuple(replace(each, was_busy=True) for each in baselines.entries))
    said = describe(evaluation_line("k.cpp", evaluation(RIGHT), beside))
    assert f"({which}; measured while other programs took cores)" in said
    one_busy = (baselines.entries[0], replace(baselines.entries[1], was_busy=True), baselines.entries[2])
    said = describe(evaluation_line("k.cpp", evaluation(RIGHT), replace(baselines, entries=one_busy)))
    assert f"({which}), 1.0000 ms" in said, "neither figure was measured so"
    failed = (baselines.entries[0], replace(baselines.entries[1], median_ms=None), baselines.entries[2])
    said = describe(evaluation_line("k.cpp", evaluation(RIGHT), replace(baselines, entries=failed)))
    assert f", 0.80x the fastest of PyTorch ({which}; torch.compile failed: no figure), 1.0000 ms" in said
    alone = evaluation_line("k.cpp", evaluation(RIGHT), replace(baselines, entries=baselines.entries[:1]))
    assert "fastest" not in describe(alone)


@pytest.mark.parametrize(
    ("compiled_ms", "compiled_class", "said"),
    [
        (3.0, PrecisionClass.FP32, "), which is the fastest of PyTorch, 1.0000 ms"),
        (1.5, PrecisionClass.TF32, "), which is the fastest of PyTorch at the kernel's precision, 1.0000 ms"),
        (None, PrecisionClass.FP32, "), PyTorch's other configurations failed, 1.0000 ms"),
    ],
)
def test_evaluate_says_why_it_has_no_figure_over_another_configuration_than_eager(
    compiled_ms: float | None, compiled_class: PrecisionClass, said: str
) -> None:
    eager = Baseline(name=ReferenceMode.EAGER, precision_class=PrecisionClass.FP32, median_ms=2.0)
    compiled = replace(eager, name=ReferenceMode.COMPILE, precision_class=compiled_class, median_ms=compiled_ms)
    floor = Floor(floor_ms=0.1, compute_floor_ms=0.0, bound="memory", bandwidth_gbps=10.0, gflops=100.0)
    baselines = Baselines(device=DEVICE, floor=floor, entries=(eager, compiled))
    assert said in describe(evaluation_line("k.cpp", evaluation(RIGHT), baselines))


def test_evaluate_names_the_configurations_that_failed_where_eager_is_the_fastest_of_the_others() -> None:
    eager = Baseline(name=ReferenceMode.EAGER, precision_class=PrecisionClass.FP32, median_ms=2.0)
    others = ((ReferenceMode.COMPILE, None), (ReferenceMode.MAX_AUTOTUNE, 3.0), (ReferenceMode.COMPILE_TF32, None))
    entries = (eager, *(replace(eager, name=name, median_ms=ms) for name, ms in others))
    floor = Floor(floor_ms=0.1, compute_floor_ms=0.0, bound="memory", bandwidth_gbps=10.0, gflops=100.0)
    baselines = Baselines(device=DEVICE, floor=floor, entries=entries)
    line = evaluation_line("k.cpp", evaluation(RIGHT), baselines)
    assert "), which is the fastest of PyTorch (torch.compile failed: no figure), 1.0000 ms" in describe(line)
    busy = replace(baselines, entries=tuple(replace(each, was_busy=True) for each in entries))
    said = describe(evaluation_line("k.cpp", evaluation(RIGHT), busy))
    assert "(torch.compile failed: no figure; measured while other programs took cores), 1.0000 ms" in said


def test_a_verdict_of_an_earlier_version_has_no_margin_to_tell() -> None:
    stored = {k: v for k, v in RIGHT.to_json().items() if k not in {"margin", "draws"}}
    stored["trials"] = [{k: v for k, v in t.items() if k not in {"draw", "nearest"}} for t in stored["trials"]]
    old = Verdict.from_json(stored)
    assert (old.margin, old.draws, old.nearest_trial) == (None, 1, None)
    line = evaluation_line("k.cpp", evaluation(old), None)
    assert "limit" not in describe(line)
    assert "limit" not in dict(certificate_rows(StoredCertificate(verification=old)))["verification"]


def test_a_failure_is_told_without_the_judge_s_inner_names_and_its_json_keeps_them() -> None:
    reason = "nominal_0: values of out differ (error 0.5, gate 1e-05 (5e+04 x))"
    wrong = Verdict(status=Status.WRONG, reason_code=ReasonCode.WRONG_VALUES, reason=reason, trials=(trial(1.5),))
    line = evaluation_line("k.cpp", evaluation(wrong), None)
    told = "inputs like those of get_inputs(): values of out differ (error 0.5, limit 1e-05 (5e+04 x))"
    assert describe(line) == f"k.cpp: wrong (wrong_values): {told}"
    assert line["reason"] == reason
    assert dict(certificate_rows(StoredCertificate(verification=wrong)))["verification"].endswith(f"; {told}")


def test_a_certificate_tells_the_margin_and_how_many_secrets_it_rests_on() -> None:
    words = dict(certificate_rows(StoredCertificate(verification=RIGHT)))["verification"]
    assert "62 % of the nearest limit (shifted, a row's error) under 4 secrets" in words


def test_a_model_is_told_the_limit_that_broke_and_not_a_figure_inside_its_gate() -> None:
    wrong = Verdict(status=Status.WRONG, reason_code=ReasonCode.WRONG_VALUES, reason="no", trials=(trial(1.5),))
    text = failure_text(evaluation(wrong))
    assert "- trial shifted: a row's error 6e-05, gate 4e-05 (1.5 x)" in text
    assert "1.8e-06" not in text


@pytest.mark.parametrize(
    ("ends", "unjudged"),
    [
        (("wrong_values", "none"), ""),
        (("engine_failed", "none"), "0.cpp"),
        (("engine_failed", "none", "engine_failed"), "0.cpp, 2.cpp"),
        (("engine_failed",), ""),  # the only file's own line is enough
    ],
)
@pytest.mark.parametrize("as_json", [True, False])
def test_evaluate_exits_with_one_where_the_machine_failed_on_a_file_and_names_it_once_all_are_told(
    ends: tuple[str, ...],
    unjudged: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    as_json: bool,
) -> None:
    files = [f"{number}.cpp" for number in range(len(ends))]

    def evaluate(*_: object, on_evaluation: Callable[[Judged], None], **__: object) -> None:
        for file, end in zip(files, map(ReasonCode, ends), strict=True):
            verdict = replace(RIGHT, status=end.status, reason_code=end, reason="")
            on_evaluation(Judged.of_line(evaluation_line(file, evaluation(verdict), None)))

    monkeypatch.setattr("ridgeline.graph.cli.commands.evaluate.evaluate", evaluate)
    args = argparse.Namespace(problem="p", files=files, json=as_json, device="cpu", unsafe_no_sandbox=False)
    assert execute(args) == (EXIT_INTERNAL if "engine_failed" in ends else EXIT_OK)
    out, err = capsys.readouterr()
    named = [json.loads(line)["file"] if as_json else line.partition(":")[0] for line in out.splitlines()]
    assert named == files
    assert err == (f"ridgeline: not judged: {unjudged}; the line of each says why\n" if unjudged else "")


@pytest.mark.parametrize("is_terminal", [True, False])
def test_evaluate_shows_its_steps_on_a_terminal_and_the_longest_everywhere(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *, is_terminal: bool
) -> None:
    def evaluate(*_: object, on_step: Callable[[str], None], **__: object) -> None:
        on_step("describing the reference")
        on_step(f"{TIMING_PYTORCH}eager")

    monkeypatch.setattr("ridgeline.graph.cli.commands.evaluate.evaluate", evaluate)
    monkeypatch.setattr("sys.stderr.isatty", lambda: is_terminal)
    args = argparse.Namespace(problem="p", files=["k.cpp"], json=True, device="cpu", unsafe_no_sandbox=False)
    assert execute(args) == EXIT_OK
    shown = f"[     0s] describing the reference\n[     0s] {TIMING_PYTORCH}eager\n"
    assert capsys.readouterr() == ("", shown if is_terminal else f"ridgeline: {TIMING_PYTORCH}eager\n")


@pytest.mark.parametrize("is_ignored", [True, False])
@pytest.mark.parametrize("comes", ["before its verdict", "beside its verdict"])
def test_an_interrupt_is_told_and_ends_evaluate_with_its_exit_code(
    comes: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *, is_ignored: bool
) -> None:
    ended: list[str] = []

    async def judged(*_: object) -> None:
        try:
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(60 if comes == "before its verdict" else 0)
        finally:
            ended.append("the judging")

    monkeypatch.setattr("ridgeline.graph.library.evaluation._judged", judged)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN if is_ignored else signal.default_int_handler)
    try:
        code = main(["evaluate", "quickstart", "k.cpp"])
    finally:
        signal.signal(signal.SIGINT, before)
    assert (code, ended) == (EXIT_INTERRUPTED, ["the judging"])
    assert capsys.readouterr() == ("", "ridgeline: SIGINT: stopping; what is under way gets no verdict\n")


def test_missing_problem_file_gets_one_line(tmp_path: Path) -> None:
    assert_one_line(ridgeline("run", "absent.yaml", cwd=tmp_path), "absent.yaml")
    assert_one_line(ridgeline("evaluate", "absent.yaml", "x.cpp", cwd=tmp_path), "absent.yaml")


def test_evaluate_with_its_words_swapped_says_their_order(problem: Path) -> None:
    done = ridgeline("evaluate", "kernel.py", problem.name, cwd=problem.parent)
    assert_one_line(done, "problem.yaml: the problem comes first, then the kernels")
