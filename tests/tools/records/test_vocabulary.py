"""The words of the contracts: what a member knows of itself, and that it opens by its value alone."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

import pytest

from ridgeline.tools.records.vocabulary import (
    LANGUAGES,
    DeviceKind,
    Interface,
    PrecisionClass,
    ReasonCode,
    RunState,
    Sanitizers,
    SearchOutcome,
    Status,
)


@pytest.mark.parametrize(
    ("interface", "kind", "language"),
    [
        ("c", "cpu", "cpp"),
        ("c", "cuda", "cu"),
        ("torch", "cuda", "cu"),
        ("module", "cpu", "py"),
        ("module", "cuda", "py"),
    ],
)
def test_a_sources_language_is_pythons_or_the_devices(interface: str, kind: str, language: str) -> None:
    assert Interface(interface).language(DeviceKind(kind)) == language


def test_a_kind_of_device_opens_by_its_value_and_knows_its_sanitizers() -> None:
    assert {kind: DeviceKind(kind.value).sanitizers for kind in DeviceKind} == {
        DeviceKind.CPU: Sanitizers.COMPILED,
        DeviceKind.CUDA: Sanitizers.TOOL,
    }


@pytest.mark.parametrize(
    ("words", "member"),
    [
        (DeviceKind, ("tpu",)),
        (DeviceKind, ("tpu", "cpp")),
        (ReasonCode, ("lost",)),
        (ReasonCode, ("lost", Status.WRONG, Status.OK)),
    ],
)
def test_a_member_without_its_facts_is_an_error_when_it_is_made(words: type[StrEnum], member: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="values to unpack"):
        words.__dict__["_new_member_"](words, *member)


def test_every_class_looser_than_fp32_is_reduced_the_original_work_s_rule_too() -> None:
    full = {precision for precision in PrecisionClass if not precision.is_reduced}
    assert full == {PrecisionClass.EXACT, PrecisionClass.FP64, PrecisionClass.FP32}


def test_languages_are_those_of_every_interface_on_every_device() -> None:
    assert LANGUAGES == ("cpp", "cu", "py")


def test_a_runs_state_is_its_searchs_outcome_or_that_it_is_not_over() -> None:
    assert set(RunState) == {RunState.RUNNING, RunState.STOPPED, RunState.WAITING, *map(RunState, SearchOutcome)}


def test_the_page_names_every_status_that_needs_a_reason_code() -> None:
    page = (Path(__file__).parents[3] / "docs" / "judge.md").read_text(encoding="utf-8")
    section = " ".join(page.partition("\n## Statuses\n")[2].split())
    named = ", ".join(f"`{status}`" for status in Status if status is not Status.OK)
    assert section.startswith(f"Every status but `ok` ({named}) comes with a `reason_code`")
