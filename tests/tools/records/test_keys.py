"""Keys on disk: literal, because a stored measurement is found again only under the very same key."""

from __future__ import annotations

import dataclasses

import pytest
from tests.graph.memory_engine import DESCRIPTION, target

from ridgeline.tools.records import keys
from ridgeline.tools.records.keys import (
    CallId,
    ComparisonKey,
    again_id,
    attempt_id,
    attempt_of,
    branch_id,
    branch_of,
    comparison_key,
    evaluation_key,
    idea_id,
    part_id,
    problem_key,
    step_key,
    write_id,
)
from ridgeline.tools.records.vocabulary import Purpose

PROBLEM = target().described(DESCRIPTION)


@pytest.fixture(autouse=True)
def judge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "JUDGE_VERSION", 3)


@pytest.mark.parametrize(
    ("purpose", "key"),
    [
        (Purpose.SEARCH, "e81aecb520e17e147e3ba7d5031d449d6c8ce42f638b84eea87b5e887aa64ddd"),
        (Purpose.TUNE, "72d16015d08228d455297ac109fe40fb8848a2fd76526382f61ddf53b2c941b1"),
        (Purpose.CERTIFY, "db65e4cc84ffac51231958a70b317f8333e1d5c9dacb438d8366120e4192c8f3"),
        (Purpose.EVALUATE, "f2e00b2d3764bab5a0e8e51098b517fcf110136a5a6517bb3fa6256699fdcfe0"),
    ],
)
def test_evaluation_key_is_the_one_of_archives_on_disk(purpose: Purpose, key: str) -> None:
    assert evaluation_key("build-1", PROBLEM, purpose) == key
    assert step_key(key, "") == key
    assert step_key(key, "time 0") == f"{key}:time 0"


def test_evaluation_key_changes_with_the_judge_and_the_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    other = dataclasses.replace(PROBLEM, reference_source="class Model: pass")
    known = {evaluation_key("build-1", problem, Purpose.SEARCH) for problem in (PROBLEM, other)}
    monkeypatch.setattr(keys, "JUDGE_VERSION", 4)
    known.add(evaluation_key("build-1", PROBLEM, Purpose.SEARCH))
    assert len(known) == 3


def test_an_evaluations_key_changes_with_build_purpose_device_and_tolerance() -> None:
    faster = dataclasses.replace(PROBLEM, device=dataclasses.replace(PROBLEM.device, name="another"))
    looser = dataclasses.replace(PROBLEM, tolerance="bf16")
    known = {
        evaluation_key("build", PROBLEM, Purpose.SEARCH),
        evaluation_key("build", PROBLEM, Purpose.CERTIFY),
        evaluation_key("other", PROBLEM, Purpose.SEARCH),
        evaluation_key("build", faster, Purpose.SEARCH),
        evaluation_key("build", looser, Purpose.SEARCH),
    }
    assert len(known) == 5
    assert problem_key(PROBLEM) == problem_key(dataclasses.replace(PROBLEM, name="renamed"))


def test_comparison_key_names_both_candidates_and_both_builds() -> None:
    under = [evaluation_key(build, PROBLEM, Purpose.CERTIFY) for build in ("build-1", "build-2")]
    key = comparison_key("r1i0v0a0", "seed-naive", *under)
    assert key == "r1i0v0a0:seed-naive:db65e4cc84ffac51+e79c5b048713e94d"
    read = ComparisonKey.read(key)
    assert (read.ids, read.purpose) == (("r1i0v0a0", "seed-naive"), Purpose.CERTIFY)
    of_a_search = comparison_key("r1i0v0a0", "seed-naive", *under, purpose=Purpose.SEARCH)
    assert ComparisonKey.read(of_a_search) == dataclasses.replace(read, purpose=Purpose.SEARCH)
    assert [str(ComparisonKey.read(each)) for each in (key, of_a_search)] == [key, of_a_search]


def test_a_comparisons_key_of_an_early_archive_names_the_two_candidates_alone() -> None:
    assert ComparisonKey.read("r1i0v0a0:seed-naive").ids == ("r1i0v0a0", "seed-naive")


@pytest.mark.parametrize("text", ["r1i0v0a0", "a:b:c:no purpose"])
def test_a_text_that_is_no_comparisons_key_is_not_read_as_one(text: str) -> None:
    with pytest.raises(ValueError):
        ComparisonKey.read(text)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("r2:ideate:0", CallId(round=2, place=0)),
        ("r12:ideate:1:more:instead", CallId(round=12, place=1, further=":more:instead")),
        ("r2i13v0a1:write", CallId(round=2, idea=13, variation=0, attempt=1)),
        ("r2i3v1a0:write:again:part2", CallId(round=2, idea=3, variation=1, further=":again:part2")),
    ],
)
def test_a_calls_id_and_its_parts_are_one(text: str, parts: CallId) -> None:
    assert CallId.read(text) == parts
    assert str(parts) == text


@pytest.mark.parametrize(
    "text", ["", "seed-naive", "r2i3v0a1", "r2:ideate", "r2i3:write", "xr2:ideate:0", "r2:ideate:0x"]
)
def test_what_is_no_calls_id_has_no_parts(text: str) -> None:
    assert CallId.read(text) is None


def test_a_kernels_call_names_idea_branch_and_candidate() -> None:
    call = CallId.read("r2i3v1a2:write")
    assert call is not None
    assert (call.idea_id, call.branch_id, call.candidate_id) == ("r2i3", "r2i3v1", "r2i3v1a2")
    assert (write_id(call.candidate_id), again_id("x"), part_id("x", 2)) == (str(call), "x:again", "x:part2")
    assert idea_id(2, 3) == "r2i3"


def test_calls_are_ordered_as_a_search_asks_them() -> None:
    ordered = ["r1:ideate:0", "r1:ideate:1", "r1i0v0a0:write", "r1i0v0a0:write:again", "r1i0v0a1:write"]
    ordered += ["r1i2v0a0:write", "r1i10v0a0:write", "r2:ideate:0", "r10:ideate:0"]
    read = [call for text in reversed(ordered) if (call := CallId.read(text))]
    assert [str(call) for call in sorted(read, key=lambda call: call.order)] == ordered


@pytest.mark.parametrize(
    ("candidate_id", "attempt"),
    [
        *[(name, "r2i3v0a1") for name in ("r2i3v0a1", "r2i3v0a1f1", "r2i3v0a1f1t7", "r2i3v0a1t7")],
        *[(name, None) for name in ("seed-r1i0v0a0", "seed-float4", "bank-1f")],
    ],
)
def test_a_candidates_attempt_is_in_its_id(candidate_id: str, attempt: str | None) -> None:
    assert attempt_of(candidate_id) == attempt
    assert branch_of(candidate_id) == (attempt.removesuffix("a1") if attempt else None)


def test_ids_name_idea_variation_and_attempt() -> None:
    assert branch_id("r2i3", 0) == "r2i3v0"
    assert attempt_id("r2i3", 0, 1) == "r2i3v0a1"
