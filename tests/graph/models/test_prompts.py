"""What the prompts say."""

from __future__ import annotations

from dataclasses import replace

import pytest
from jinja2 import UndefinedError
from tests.graph.requests_made import DESCRIPTION, IDEA, ideation, kernel, subject

from ridgeline.graph.models.prompts import render, render_ideation, render_kernel
from ridgeline.tools.build.interfaces import problem_header
from ridgeline.tools.records.vocabulary import Category, DeviceKind, Interface


def test_ideation_names_floor_baselines_tried_ideas_elites_and_categories() -> None:
    text = render_ideation(ideation(user_ideas=("use registers",), refused=("Unroll",), unreadable="no JSON"))
    for part in ("0.1000 ms", "- eager (fp32): 10.0000 ms", "Unroll by four", "1.300× eager", "`seed-naive`"):
        assert part in text
    for part in ("use registers", "were just refused", "no JSON", *Category):
        assert part in text


def test_kernel_prompt_carries_contract_header_and_tune_syntax() -> None:
    text = render_kernel(kernel())
    for part in ("// problem.h", "-march=native", "// tune: BLOCK = 64 | 128 | 256", IDEA.mechanism, "// the seed"):
        assert part in text


def test_later_variations_are_told_to_differ() -> None:
    assert "implementation 2" in render_kernel(kernel(variation=1))
    assert "implementation" not in render_kernel(kernel()).partition("## The idea")[2]


def test_repair_shows_the_failure_and_the_source_that_failed() -> None:
    text = render_kernel(kernel(failure="wrong: row 3 differs", failed_source="int broken;"))
    assert "wrong: row 3 differs" in text
    assert "int broken;" in text


def test_name_that_a_template_misses_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        render("write.md.j2", subject=ideation().subject)


def test_a_module_is_asked_for_in_python_with_the_references_names() -> None:
    header = problem_header(DESCRIPTION.signature, DeviceKind.CPU, Interface.MODULE)
    text = render_kernel(kernel(subject=replace(subject(), interface=Interface.MODULE, language="py", header=header)))
    for part in ("One whole Python (.py) source file", "It defines `ModelNew`", "load_inline", "# class ModelNew"):
        assert part in text
    assert "It defines `run`" not in text
