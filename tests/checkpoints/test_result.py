from __future__ import annotations

import dataclasses
import json
import math
from enum import StrEnum
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.history.over_pytorch import speedup_vs_best
from ridgeline.checkpoints.report.certificate_rows import certificate_sections
from ridgeline.checkpoints.report.wording import label_in_words, unproven_words
from ridgeline.checkpoints.result import (
    Best,
    BestKernel,
    best_kernel,
    build_result,
    choose_best,
    evaluation_line,
    read_schema,
    show_run,
    speedup_vs_seed,
)
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.checkpoints.stored_certificate import StoredCertificate
from ridgeline.graph.cli.commands.evaluate import describe
from ridgeline.tools.errors import StorageError
from ridgeline.tools.records.finding import Finding
from ridgeline.tools.records.keys import comparison_key
from ridgeline.tools.records.problem import SkippedTrial, WholeRange
from ridgeline.tools.records.results import Comparison, FailedComparison, Verdict
from ridgeline.tools.records.vocabulary import Label, PrecisionClass, Purpose, ReasonCode, Status

EVALUATE_FIELDS = (
    "file", "status", "reason_code", "reason", "labels", "other_code", "skipped", "whole_numbers", "rel_error",
    "precision_class", "margin", "nearest_limit", "secrets", "median_ms", "speedup", "speedup_ci95", "speedup_vs_best",
    "reference_ms", "baselines", "floor_ms", "sandbox_tier", "build_s", "total_s", "schema_version",
)  # fmt: skip
RESULT_FIELDS = (
    "problem", "device", "versions", "state", "rounds", "candidates", "tuned", "best", "baselines", "floor_ms",
    "tokens", "repair_share", "largest_stage", "usd", "unpriced_calls", "cpu_seconds", "gpu_seconds", "wall_s",
    "finding_s", "history",
    "schema_version", "without", "replay",
)  # fmt: skip
BEST_FIELDS = (
    "id", "idea", "origin", "round", "source_path", "speedup", "speedup_ci95", "speedup_vs_best", "baselines_failed",
    "speedup_vs_seed", "speedup_vs_seed_ci95", "median_ms", "reference_ms", "precision_class", "labels",
)  # fmt: skip


def _check(value: object, name: str) -> None:
    schema = read_schema(name)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(value, schema, cls=jsonschema.Draft202012Validator)
    json.dumps(value, allow_nan=False)


def test_result_holds_every_field_of_the_contract_and_the_certified_figures(filled: Archive) -> None:
    result = build_result(filled)
    _check(result, "result")
    assert sorted(result) == sorted(RESULT_FIELDS)
    assert sorted(result["best"]) == sorted(BEST_FIELDS)
    assert (result["rounds"], result["candidates"], result["tuned"], result["tokens"]) == (4, 32, 1, 24400)
    best = result["best"]
    assert (best["id"], best["source_path"], best["speedup"]) == ("r4i1v0a0t3", "best.cpp", 2.27)
    assert (best["speedup_vs_seed"], best["speedup_vs_seed_ci95"]) == (1.73, [1.69, 1.77])
    assert best["idea"] == "Align the row buffer and unroll by four"
    assert [entry["round"] for entry in result["history"]] == [1, 2, 3, 4]
    assert [entry["best_so_far"] for entry in result["history"]] == [1.62, 1.74, 2.18, 2.31]
    assert [entry["wall_s"] for entry in result["history"]] == [61.0] * 4
    assert [entry["candidates"] for entry in result["history"]] == [8] * 4
    assert [entry["judged"] for entry in result["history"]] == [8] * 4  # a failed one is judged too
    assert max(entry["ok"] for entry in result["history"]) < 8
    assert result["history"][3]["tuned"] == 1
    assert result["history"][0]["elites"] == ["r1i1v1a0"]


def test_certificate_of_an_archive_keeps_to_its_schema(filled: Archive) -> None:
    _check(filled.certificate_json(), "certificate")


def test_result_of_a_search_stopped_before_anything_was_measured(archive: Archive) -> None:
    result = build_result(archive)
    _check(result, "result")
    assert (result["best"], result["state"], result["history"]) == (None, "stopped", [])


def test_a_winner_that_its_certificate_found_wrong_gives_way_to_the_next_right_kernel(filled: Archive) -> None:
    winner = filled.run().best_id
    again = filled.evaluation(winner, Purpose.CERTIFY)
    wrong = dataclasses.replace(again, status=Status.WRONG, reason_code=ReasonCode.WRONG_VALUES, timing=None)
    filled.add_evaluation(wrong)
    for stated in ("", None):  # the search ended without a winner; it was stopped in its certificate
        filled.forget_winner()
        filled.save_run(RunRecord(best_id=stated, state="no_gain"))
        result = build_result(filled)
        assert result["best"]["id"] == "r4i1v0a0"
        _check(result, "result")


def test_speedup_over_the_seed_is_the_seed_hardest_to_beat_whichever_side_it_was_on(filled: Archive) -> None:
    reverse = Comparison(ratio=0.25, ratio_ci95=(0.24, 0.26), first_ms=0.5, second_ms=2.0, blocks=9)
    stale = dataclasses.replace(reverse, ratio=0.9)
    filled.save("comparisons", comparison_key("r3i1v0a0", "seed-naive", "older builds"), "r3i1v0a0", stale)
    filled.save("comparisons", comparison_key("r3i1v0a0", "seed-naive", "builds"), "r3i1v0a0", reverse)
    found = speedup_vs_seed(filled, "r3i1v0a0")
    assert found is not None
    assert found.ratio == 4.0
    assert found.ratio_ci95 == pytest.approx((1 / 0.26, 1 / 0.24))
    assert (found.first_ms, found.second_ms) == (2.0, 0.5)
    assert speedup_vs_seed(filled, "r1i1v0a0") is None


def test_comparison_in_which_a_kernel_failed_is_no_speedup_over_the_seed(filled: Archive) -> None:
    crashed = FailedComparison(finding=Finding(code=ReasonCode.CRASHED, reason="killed by SIGSEGV"), at_fault=1)
    filled.save("comparisons", comparison_key("r1i1v0a0", "seed-naive", "builds"), "r1i1v0a0", crashed)
    assert speedup_vs_seed(filled, "r1i1v0a0") is None
    earlier = Comparison(ratio=0.5, ratio_ci95=(0.4, 0.6), first_ms=0.5, second_ms=1.0, blocks=9)
    filled.save("comparisons", comparison_key("r1i2v0a0", "seed-naive", "builds"), "r1i2v0a0", earlier)
    assert speedup_vs_seed(filled, "r1i2v0a0") is not None
    filled.save("comparisons", comparison_key("r1i2v0a0", "seed-naive", "newer"), "r1i2v0a0", crashed)
    assert speedup_vs_seed(filled, "r1i2v0a0") is None


def test_evaluate_line_has_every_field_for_success_and_failure(story: SimpleNamespace) -> None:
    ok = evaluation_line("k.cpp", story.ok("k", 1.5), story.baselines())
    wrong = evaluation_line("k.cpp", story.failed("k", Status.WRONG, ReasonCode.WRONG_VALUES, "no"), None)
    for line in (ok, wrong):
        assert sorted(line) == sorted(EVALUATE_FIELDS)
        _check(line, "evaluation")
    assert (ok["status"], ok["speedup"], ok["sandbox_tier"], ok["build_s"]) == ("ok", 1.5, "A", 1.1)
    assert ok["speedup_vs_best"] == pytest.approx(1.5 * 0.80 / 1.21)
    assert (wrong["speedup"], wrong["speedup_ci95"], wrong["floor_ms"], wrong["baselines"]) == (None, None, None, [])


def test_an_infinite_error_is_null_in_the_contracts(story: SimpleNamespace) -> None:
    failed = story.failed("k", Status.WRONG, ReasonCode.NON_FINITE_MISMATCH, "NaN")
    verdict = Verdict(status=Status.WRONG, reason_code=ReasonCode.NON_FINITE_MISMATCH, rel_error=math.inf)
    line = evaluation_line("k.cpp", dataclasses.replace(failed, verdict=verdict), None)
    assert line["rel_error"] is None
    _check(line, "evaluation")


def test_what_no_kernel_meets_is_told_with_its_reason(story: SimpleNamespace) -> None:
    ok = story.ok("k", 1.5)
    mask = SkippedTrial(name="not_varied mask", reason="always these", label=Label.NOT_VARIED)
    verdict = dataclasses.replace(ok.verdict, skipped=(mask,), labels=(Label.NOT_VARIED,))
    timing = dataclasses.replace(ok.timing, skipped=(SkippedTrial(name="timed row_scaled", reason="out of range"),))
    line = evaluation_line("k.cpp", dataclasses.replace(ok, verdict=verdict, timing=timing), story.baselines())
    assert line["skipped"] == [
        {"name": "not_varied mask", "reason": "always these"},
        {"name": "timed row_scaled", "reason": "out of range"},
    ]
    _check(line, "evaluation")
    assert "[not_varied: mask was tried only as given: always these; timed row_scaled skipped]" in describe(line)


def test_the_library_that_worked_for_a_kernel_is_named(story: SimpleNamespace) -> None:
    ok = story.ok("k", 1.5)
    timing = dataclasses.replace(ok.timing, came_along=("/tmp/libm.so.6",), labels=(Label.VENDOR_LIBRARY,))
    line = evaluation_line("k.cpp", dataclasses.replace(ok, timing=timing), story.baselines())
    assert line["other_code"] == ["/tmp/libm.so.6"]
    _check(line, "evaluation")
    assert "[vendor_library: a library works for it, or lies ready in its process: /tmp/libm.so.6]" in describe(line)


def test_an_input_that_is_drawn_anew_is_not_said_to_hold_the_same_values(story: SimpleNamespace) -> None:
    ok = story.ok("k", 1.5)
    pos = SkippedTrial(name="only_as_drawn pos", reason="its numbers follow", label=Label.ONLY_AS_DRAWN)
    verdict = dataclasses.replace(ok.verdict, skipped=(pos,), labels=(Label.ONLY_AS_DRAWN,))
    line = evaluation_line("k.cpp", dataclasses.replace(ok, verdict=verdict), story.baselines())
    _check(line, "evaluation")
    assert "[only_as_drawn: pos was tried only as get_inputs() draws it: its numbers follow]" in describe(line)
    assert "get_inputs() draws it" in label_in_words(Label.ONLY_AS_DRAWN)


def test_the_range_of_whole_numbers_that_trials_held_is_told(story: SimpleNamespace) -> None:
    ok = story.ok("k", 1.5)
    held = (WholeRange(name="idx", low=0, high=4095), WholeRange(name="n", low=-1, high=1))
    kept = SkippedTrial(name="not_varied idx", reason="always these", label=Label.NOT_VARIED)
    verdict = dataclasses.replace(ok.verdict, whole_numbers=held, skipped=(kept,))
    line = evaluation_line("k.cpp", dataclasses.replace(ok, verdict=verdict), story.baselines())
    _check(line, "evaluation")
    assert line["whole_numbers"][0] == {"name": "idx", "low": 0, "high": 4095}
    words = "; whole numbers tried: idx 0 to 4095 (only as given), n -1 to 1"
    assert words in describe(line) and "\n" not in describe(line)
    certificate = StoredCertificate(verification=verdict)
    assert any(words in said for section in certificate_sections(certificate, best=None) for _, said in section.rows)


def test_an_interval_with_an_end_that_is_no_finite_number_is_none(filled: Archive) -> None:
    entry = build_result(filled)["best"] | {"speedup_ci95": [math.nan, 1.2], "speedup_vs_seed_ci95": [1.1, math.inf]}
    best = BestKernel.read({"best": entry | {"median_ms": math.nan}})
    assert best is not None
    assert (best.speedup_ci95, best.speedup_vs_seed_ci95, best.median_ms) == (None, None, None)
    assert (best.speedup, best.labels) == (entry["speedup"], entry["labels"])
    assert unproven_words(best) == ""


def test_a_measured_speedup_over_the_best_baseline_is_not_replaced(story: SimpleNamespace) -> None:
    assert speedup_vs_best(dataclasses.replace(story.ok("k", 1.5), speedup_vs_best=0.9), story.baselines()) == 0.9


def test_show_tells_rounds_ideas_lineage_and_cost(filled: Archive) -> None:
    shown = show_run(filled)
    assert [s["id"] for s in shown["lineage"]] == [
        "r4i1v0a0t3", "r4i1v0a0", "r3i1v1a0", "r2i1v1a0", "r1i2v0a0", "seed-fused",
    ]  # fmt: skip
    assert len(shown["ideas"]) == 16
    assert shown["cost"]["tokens"] == 24400
    assert shown["schema_version"] == 1
    json.dumps(shown, allow_nan=False)


def test_lineage_ends_when_parents_form_a_circle(archive: Archive, story: SimpleNamespace) -> None:
    from ridgeline.checkpoints.history.lineage import lineage

    archive.add_candidate(story.candidate("a", parent_id="b"))
    archive.add_candidate(story.candidate("b", parent_id="a"))
    assert [s["id"] for s in lineage(archive, "a")] == ["a", "b"]


def test_a_figure_of_the_best_kernel_that_is_no_finite_number_is_none(archive: Archive, story: SimpleNamespace) -> None:
    archive.add_candidate(story.candidate("a"))
    archive.add_evaluation(story.ok("a", math.inf))
    best = choose_best(archive)
    assert best is not None
    assert best_kernel(archive, best, None).speedup is None


def test_a_language_that_is_a_path_is_refused(story: SimpleNamespace) -> None:
    found = Best(candidate=story.candidate("a", language="/../../taken"), evaluation=story.ok("a", 2.0))
    with pytest.raises(StorageError, match="its language '/../../taken' is none of cpp, cu, py"):
        _ = found.file_name


def test_the_certified_purpose_is_not_the_search_s(filled: Archive) -> None:
    assert filled.evaluation("r4i1v0a0t3", Purpose.TUNE) != filled.evaluation("r4i1v0a0t3", Purpose.CERTIFY)


def test_point_that_was_stored_and_not_measured_is_not_counted_as_tuned(filled: Archive) -> None:
    filled.add_candidate(dataclasses.replace(filled.candidate("r4i1v0a0t3"), id="r4i1v0a0t4"))
    result = build_result(filled)
    assert (result["tuned"], result["history"][3]["tuned"]) == (1, 1)


WORDS: dict[str, type[StrEnum]] = {
    "status": Status,
    "reason_code": ReasonCode,
    "labels": Label,
    "precision_class": PrecisionClass,
}


def enums_in(schema: Any, name: str = "") -> list[tuple[str, list[str]]]:
    """Return (field, values) of every enumeration of a schema that has a StrEnum, null left out."""
    if not isinstance(schema, dict):
        return []
    own = [(name, [v for v in schema["enum"] if v is not None])] if "enum" in schema and name in WORDS else []
    fields = [*schema.get("properties", {}).items(), (name, schema.get("items"))]
    inner = [found for field, part in (*fields, *schema.get("$defs", {}).items()) for found in enums_in(part, field)]
    parts = [p for key in ("anyOf", "oneOf", "allOf") for p in schema.get(key, [])]
    return own + inner + [found for part in parts for found in enums_in(part, name)]


@pytest.mark.parametrize(
    ("schema", "fields"),
    [
        ("evaluation", {"status", "reason_code", "labels", "precision_class"}),
        ("candidate", {"status", "reason_code", "precision_class"}),
        ("result", {"labels", "precision_class"}),
    ],
)
def test_schema_lists_every_word_of_its_enumerations(schema: str, fields: set[str]) -> None:
    found = enums_in(read_schema(schema))
    assert {name for name, _ in found} == fields
    for name, values in found:
        assert values == [word.value for word in WORDS[name]], name
