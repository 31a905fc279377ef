"""What a request for a kernel says of its idea, its plan and its parents."""

from __future__ import annotations

from dataclasses import replace

from tests.graph.requests_made import BASELINES, ELITE, IDEA, ideation, kernel

from ridgeline.graph.models.prompts import render_ideation, render_kernel
from ridgeline.tools.records.reference_mode import ReferenceMode


def test_kernel_prompt_carries_contract_header_and_tune_syntax() -> None:
    text = render_kernel(kernel())
    for part in ("// problem.h", "-march=native", "// tune: BLOCK = 64 | 128 | 256", IDEA.mechanism, "// the seed"):
        assert part in text


def test_writers_are_told_of_eager_alone_so_that_the_prompts_of_all_rounds_begin_alike() -> None:
    entry = replace(BASELINES.entries[0], name=ReferenceMode.COMPILE)
    later = replace(BASELINES, entries=(*BASELINES.entries, entry))
    assert render_kernel(kernel(baselines=later)) == render_kernel(kernel())
    assert "compile (fp32)" in render_ideation(ideation(baselines=later))


def test_without_a_plan_later_variations_are_told_to_differ() -> None:
    assert "implementation 2" in render_kernel(kernel(variation=1))
    assert "implementation" not in render_kernel(kernel()).partition("## The idea")[2]


def test_a_plan_takes_the_place_of_that_advice() -> None:
    text = render_kernel(kernel(variation=1, plan="Blocks of 64 rows."))
    assert "The plan of this implementation: Blocks of 64 rows." in text
    assert "implementation 2" not in text


def test_a_recombination_shows_a_related_second_parent_as_a_difference() -> None:
    source = "".join(f"line({n});\n" for n in range(40))
    second = replace(ELITE, candidate_id="r1i1v0a0", source=source + "last();\n")
    text = render_kernel(kernel(parent=replace(ELITE, source=source), second_parent=second))
    assert text.count("line(30);") == 1 and "+last();" in text


def test_a_predicted_gain_has_two_digits() -> None:
    text = render_kernel(kernel(idea=IDEA.model_copy(update={"predicted_gain": (1.2 * 1.8) ** 0.5}), parent=None))
    assert "expected 1.47×." in text


def test_a_kernel_that_starts_from_none_is_not_told_to_keep_what_makes_it_fast() -> None:
    assert "Keep what makes" in render_kernel(kernel())
    assert "Keep what makes" not in render_kernel(kernel(parent=None))


def test_a_plan_rules_over_its_idea_and_ideation_is_told_to_count() -> None:
    assert "the plan rules" in render_kernel(kernel(plan="by rows"))
    assert "the plan rules" not in render_kernel(kernel())
    text = render_ideation(ideation(implementations=2))
    assert "A plan rules over its idea: count its registers, loads per multiply-add and bytes per cycle." in text
