"""The winner at three other shapes: the same source, built with the header of the reference with other sizes.

A kernel that does not build or is wrong there is labelled `shape_specialised`; it does not fail, since it was asked for
one shape. Sizes are top-level whole numbers of the reference that are dimensions of an input. Every other shape is
smaller than the problem's, so memory and time are never more than verification took.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ridgeline.problems.syntax import substitute_sizes, top_level_numbers
from ridgeline.tools.engine import CompileTask, DescribeTask, VerifyTask
from ridgeline.tools.errors import ProblemError
from ridgeline.tools.records.problem import Signature
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import ArgKind, Purpose, Role, Status
from ridgeline.tools.wording import counted

if TYPE_CHECKING:
    from ridgeline.graph.search.context import SearchContext
    from ridgeline.tools.records.problem import DescribedTarget

SHAPES = 3
LEAST_SIZE = 8
"""A smaller number rather is a kernel's width, a stride or a count of heads than a size that a caller changes."""
MULTIPLE = 8
UNCHANGED = "the reference names no size that could be changed"
NONE_LEFT = "at none of the sizes that were tried does the reference run and have something to verify"


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherShape:
    """The result of the source at one other shape."""

    sizes: dict[str, int]
    status: Status
    reason: str = ""
    rel_error: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return one entry of certificate.json's `other_shapes`."""
        return {
            "sizes": self.sizes,
            "status": self.status.value,
            "reason": self.reason,
            "rel_error": self.rel_error,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeCheck:
    """All other shapes that were tried; `skipped` says why there are none."""

    shapes: tuple[OtherShape, ...] = ()
    refused: tuple[str, ...] = ()  # shapes at which the reference itself does not run
    skipped: str = ""

    @property
    def is_specialised(self) -> bool:
        """Say whether the source serves this one shape only, as far as was tried."""
        return any(shape.status is not Status.OK for shape in self.shapes)

    def in_words(self) -> str:
        """Return at how many shapes the source was right, or why none was tried."""
        right = sum(1 for shape in self.shapes if shape.status is Status.OK)
        return self.skipped or f"right at {right} of {counted(len(self.shapes), 'other shape')}"

    def to_json(self) -> dict[str, Any]:
        """Return certificate.json's `other_shapes`."""
        return {
            "skipped": self.skipped,
            "shapes": [shape.to_json() for shape in self.shapes],
            "refused_by_reference": list(self.refused),
        }


async def try_other_shapes(context: SearchContext, candidate: Candidate) -> ShapeCheck:
    """Return the source's results at up to SHAPES other shapes; EngineError as the engine raises it."""
    target = context.described
    sizes = changeable_sizes(target.reference_source, target.description.signature)
    shapes: list[OtherShape] = []
    refused: list[str] = []
    for changed in other_sizes(sizes):
        if len(shapes) == SHAPES:
            break
        try:
            described = await _described(context, changed)
        except ProblemError as error:
            refused.append(f"{changed}: {error}")
            continue
        shapes += await _tried(context, described, candidate, changed)
    if not shapes:
        return ShapeCheck(refused=tuple(refused), skipped=NONE_LEFT if sizes else UNCHANGED)
    return ShapeCheck(shapes=tuple(shapes), refused=tuple(refused))


def changeable_sizes(reference_source: str, signature: Signature) -> dict[str, int]:
    """Return the reference's top-level whole numbers that are dimensions of its inputs, the outermost dimension first."""
    numbers = top_level_numbers(ast.parse(reference_source))
    inputs = [a for a in signature.with_role(Role.INPUT) if a.kind is ArgKind.TENSOR]
    found: dict[str, int] = {}
    for dimension in (n for arg in inputs for n in arg.shape):
        for name, value in numbers.items():
            if isinstance(value, int) and value == dimension and value >= LEAST_SIZE:
                found.setdefault(name, value)
    return found


def other_sizes(sizes: Mapping[str, int]) -> list[dict[str, int]]:
    """Return smaller sizes to try, in order: half the outermost, three quarters of the innermost, odd ones, and others
    for where the reference refuses one of these."""
    if not sizes:
        return []
    first, last = next(iter(sizes)), list(sizes)[-1]
    tried: Sequence[dict[str, int]] = (
        {first: sizes[first] // 2},
        {last: _multiple(sizes[last] * 3 // 4)},
        {first: sizes[first] - 1} | {last: sizes[last] - 1},
        {last: _multiple(sizes[last] // 2)},
        {first: sizes[first] - 1},
        dict.fromkeys((n for n in sizes if sizes[n] == sizes[first]), _multiple(sizes[first] // 2)),
    )
    different = [changed for changed in tried if all(changed[name] != sizes[name] for name in changed)]
    return [changed for i, changed in enumerate(different) if changed not in different[:i]]


def _multiple(size: int) -> int:
    return max(size // MULTIPLE * MULTIPLE, min(size, MULTIPLE))


async def _described(context: SearchContext, changed: dict[str, int]) -> DescribedTarget:
    """Return the problem at another shape; ProblemError when its reference does not run there."""
    source = substitute_sizes(context.target.reference_source, changed, "other shapes")
    target = dataclasses.replace(context.target, reference_source=source)
    return target.described(await context.measure(DescribeTask(problem=target, retries=0)))


async def _tried(
    context: SearchContext, problem: DescribedTarget, candidate: Candidate, changed: dict[str, int]
) -> list[OtherShape]:
    """Return the source's outcome at one shape; nothing where the task itself is degenerate there."""
    build = await context.measure(CompileTask(problem=problem, candidate=candidate))
    if build.status is not Status.OK:
        return [OtherShape(sizes=changed, status=build.status, reason=build.reason)]
    task = VerifyTask(problem=problem, candidate=candidate, build=build, purpose=Purpose.CERTIFY, step="other shape")
    verdict = await context.measure(task)
    if verdict.status is Status.DEGENERATE:
        return []
    return [OtherShape(sizes=changed, status=verdict.status, reason=verdict.reason, rel_error=verdict.rel_error)]
