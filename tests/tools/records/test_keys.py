"""Keys on disk: literal, because a stored measurement is found again only under the very same key."""

from __future__ import annotations

import dataclasses

import pytest
from tests.graph.memory_engine import DESCRIPTION, target

from ridgeline.tools.records import keys
from ridgeline.tools.records.keys import (
    attempt_id,
    branch_id,
    compared_ids,
    compared_purpose,
    comparison_key,
    evaluation_key,
    problem_key,
    step_key,
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
    assert compared_ids(key) == ("r1i0v0a0", "seed-naive")
    assert compared_purpose(key) is Purpose.CERTIFY
    of_a_search = comparison_key("r1i0v0a0", "seed-naive", *under, purpose=Purpose.SEARCH)
    assert compared_ids(of_a_search) == ("r1i0v0a0", "seed-naive")
    assert compared_purpose(of_a_search) is Purpose.SEARCH


def test_ids_name_idea_variation_and_attempt() -> None:
    assert branch_id("r2i3", 0) == "r2i3v0"
    assert attempt_id("r2i3", 0, 1) == "r2i3v0a1"
