"""Which sizes are changed, and what a source that does not follow them is called."""

from __future__ import annotations

import dataclasses
from typing import Any

from tests.graph.conftest import Search
from tests.graph.memory_engine import MemoryEngine

from ridgeline.graph.certificate.other_shapes import NONE_LEFT, changeable_sizes, other_sizes
from ridgeline.tools.engine import Task
from ridgeline.tools.engines.remembering import RememberingEngine
from ridgeline.tools.errors import ProblemError
from ridgeline.tools.records.problem import ArgSpec, DescribedTarget, Signature
from ridgeline.tools.records.results import Build
from ridgeline.tools.records.vocabulary import ReasonCode, Role, Status

REFERENCE = "ROWS = 256\nCOLS = 768\nHEADS = 4\nEPS = 1e-5\nclass Model: ...\ndef get_inputs(): ...\n"


def signature(*shapes: tuple[int, ...]) -> Signature:
    inputs = [ArgSpec(name=f"x{i}", role=Role.INPUT, shape=s, strides=(1,) * len(s)) for i, s in enumerate(shapes)]
    return Signature(args=tuple(inputs))


def test_sizes_are_whole_numbers_of_the_reference_that_are_dimensions_of_an_input() -> None:
    assert changeable_sizes(REFERENCE, signature((256, 768))) == {"ROWS": 256, "COLS": 768}
    assert changeable_sizes(REFERENCE, signature((4, 768))) == {"COLS": 768}
    assert changeable_sizes("class Model: ...", signature((256, 768))) == {}


def test_first_three_shapes_change_the_outermost_the_innermost_and_both_to_odd_sizes() -> None:
    assert other_sizes({"ROWS": 256, "COLS": 768})[:3] == [{"ROWS": 128}, {"COLS": 576}, {"ROWS": 255, "COLS": 767}]


def test_a_small_size_is_not_cut_down_to_one_element() -> None:
    assert other_sizes({"ROWS": 10}) == [{"ROWS": 5}, {"ROWS": 7}, {"ROWS": 9}]
    assert {"C": 8} not in other_sizes({"C": 8})


def test_no_shape_is_larger_than_the_problem_s_and_none_is_tried_twice() -> None:
    for sizes in ({"N": 8}, {"N": 4096}, {"M": 4096, "K": 4096, "N": 4096}, {"BATCH": 100, "H": 224, "W": 224}):
        shapes = other_sizes(sizes)
        assert len(shapes) >= 3
        assert all(0 < changed[name] < sizes[name] for changed in shapes for name in changed)
        assert all(changed not in shapes[:i] for i, changed in enumerate(shapes))


class Shaped(MemoryEngine):
    """An engine that sees the shape: `fails_at` names a text of the reference at which kernels do not build."""

    def __init__(self, *, fails_at: str = "never", refuses: str = "never") -> None:
        super().__init__()
        self.fails_at, self.refuses = fails_at, refuses
        self.shapes: list[str] = []

    async def submit(self, task: Task[Any]) -> Any:
        self.problem: DescribedTarget = task.problem
        return await super().submit(task)

    def _describe(self, task: Any) -> Any:
        if self.refuses in task.problem.reference_source:
            raise ProblemError("reference.py: the heads do not divide it")
        self.shapes.append(task.problem.reference_source[:20])
        described = super()._describe(task)
        return dataclasses.replace(described, signature=signature((256, 768)))

    def _compile(self, task: Any) -> Build:
        build = super()._compile(task)
        if self.fails_at not in self.problem.reference_source:
            return build
        code = ReasonCode.COMPILER_FAILED
        return dataclasses.replace(build, status=Status.COMPILE_ERROR, reason_code=code, reason="COLS % 16 == 0")


class Refuses(Shaped):
    """An engine whose reference runs at its own shape alone."""

    def _describe(self, task: Any) -> Any:
        if "ROWS = 256\nCOLS = 768" not in task.problem.reference_source:
            raise ProblemError("reference.py: another shape")
        return super()._describe(task)


async def certificate_of(search: Search, engine: MemoryEngine) -> dict[str, Any]:
    search.engine = engine
    context = search.context(rounds=1, ideas=1, implementations=1)
    context.target = dataclasses.replace(context.target, reference_source=REFERENCE)
    context.measuring.engine = RememberingEngine(search.engine, search.archive, target=context.target)
    assert (await search.run(context))["certified"]
    certificate = search.archive.certificate_json()
    assert certificate is not None
    return certificate


async def test_source_that_builds_at_three_other_shapes_has_no_label(search: Search) -> None:
    certificate = await certificate_of(search, Shaped())
    assert [shape["status"] for shape in certificate["other_shapes"]["shapes"]] == ["ok"] * 3
    assert certificate["labels"] == []


async def test_source_that_does_not_build_at_another_shape_is_labelled_and_passes(search: Search) -> None:
    certificate = await certificate_of(search, Shaped(fails_at="COLS = 767"))
    shapes = {str(s["sizes"]): s["status"] for s in certificate["other_shapes"]["shapes"]}
    assert shapes == {"{'ROWS': 128}": "ok", "{'COLS': 576}": "ok", "{'ROWS': 255, 'COLS': 767}": "compile_error"}
    assert certificate["passed"] and certificate["labels"] == ["shape_specialised"]
    ends = [event for event in search.events_named("certify") if event["step"] == "other_shapes"]
    assert ends[-1]["detail"] == "right at 2 of 3 other shapes"


async def test_reference_that_runs_at_no_other_shape_is_not_said_to_name_no_size(search: Search) -> None:
    certificate = await certificate_of(search, Refuses())
    found = certificate["other_shapes"]
    assert found["shapes"] == [] and found["refused_by_reference"]
    assert found["skipped"] == NONE_LEFT


async def test_shape_that_the_reference_refuses_is_named_and_another_one_tried(search: Search) -> None:
    certificate = await certificate_of(search, Shaped(refuses="COLS = 576"))
    found = certificate["other_shapes"]
    assert len(found["shapes"]) == 3
    assert "the heads do not divide it" in found["refused_by_reference"][0]
    assert certificate["labels"] == []
