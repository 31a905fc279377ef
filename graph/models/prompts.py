"""Prompts from templates: the text lies in prompts/*.md.j2, and a name that a template misses is an error.

Every prompt of a search begins with the same bytes, those of `render_prefix`, for which providers charge less once they
have seen them. What changes seldom stands before what changes often.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ridgeline.graph.models.fences import apart, fenced, quoted
from ridgeline.graph.models.requests import IdeationRequest, KernelRequest, Subject
from ridgeline.graph.models.showing.outlines import cut_source
from ridgeline.graph.models.showing.shortening import excerpt
from ridgeline.graph.models.showing.shown_kernels import (
    ShownKernel,
    parent_kernels,
    readable_difference,
    told_kernels,
)
from ridgeline.graph.models.showing.subject_rows import device_rows, reference_lines
from ridgeline.graph.models.showing.told_ideas import told_ideas
from ridgeline.tools.machine.architecture import has_clusters
from ridgeline.tools.records.dtypes import contiguous_strides
from ridgeline.tools.records.precision import NOMINAL_GATE
from ridgeline.tools.records.problem import ArgSpec
from ridgeline.tools.records.vocabulary import ArgKind, Category, Interface

if TYPE_CHECKING:
    from jinja2 import Environment

PROMPTS = Path(__file__).parent / "prompts"
IDEATION_BLOCK_CHARS = 1_600
"""Most of a building block that a request for ideas shows."""
IDEATION_CHARS = 18_700
"""Of a request for ideas, about 5,200 tokens: the fastest kernel gets what the rest of it leaves."""
LEAST_LEADER_CHARS = 2_500
"""Of the fastest kernel this much is shown in any case."""
REPAIR_CONTEXT = 3
"""Lines on both sides of what a failed source changed of its parent: who repairs it rebuilds it in the head."""
FLOATS = ("float64", "float32", "float16", "bfloat16")
"""Types of what is no mask, length or table."""
WRITE_BLOCK_CHARS = 20_000
"""Most of a building block that its idea's writer is shown."""


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(PROMPTS),
        auto_reload=False,  # no stat() in the event loop
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
    )
    environment.globals["FLOATS"] = FLOATS
    environment.filters["argument_lines"] = argument_lines
    environment.filters["excerpt"] = excerpt
    environment.filters["device_rows"] = device_rows
    environment.filters["reference_lines"] = reference_lines
    environment.filters["cut"] = cut_source
    environment.filters["fenced"] = fenced
    environment.filters["apart"] = apart
    environment.filters["quoted"] = quoted
    environment.tests["tensor_mapped"] = has_clusters
    return environment


def describe_argument(arg: ArgSpec, interface: Interface = Interface.C) -> str:
    """Return one argument in words: `x: input float32 (2048, 768)`; a module's is named as the reference names it."""
    name = arg.source or arg.name if interface is Interface.MODULE else arg.name
    if arg.kind is ArgKind.NONE:
        return f"{name}: None, not passed"
    if arg.kind is ArgKind.SCALAR:
        return f"{name}: {arg.role} scalar {arg.dtype}, nominally {arg.value}"
    strides = "" if arg.strides == contiguous_strides(arg.shape) else f", strides {tuple(arg.strides)}"
    return f"{name}: {arg.role} {arg.dtype} {tuple(arg.shape)}{strides}"


def argument_lines(args: Sequence[ArgSpec], interface: Interface) -> list[str]:
    """Return the arguments in order, neighbours that differ by name alone in one line: `q, k: input float32 (8, 64)`."""
    described = (describe_argument(arg, interface).partition(": ") for arg in args)
    return [
        f"{', '.join(name for name, _, _ in alike)}: {words}" for words, alike in groupby(described, key=itemgetter(2))
    ]


def render(template: str, **values: Any) -> str:
    """Return `prompts/<template>` filled in."""
    return _environment().get_template(template).render(**values)


def render_prefix(subject: Subject) -> str:
    """Return what every prompt of a search begins with: device, problem, contract, what the judge checks."""
    return render("_prefix.md.j2", subject=subject, gate=NOMINAL_GATE.get(subject.tolerance)) + "\n\n"


def render_ideation(request: IdeationRequest) -> str:
    """Return the prompt that asks for ideas, within IDEATION_CHARS where a long search or many blocks do not forbid it."""
    kernels = _told_kernels(request, LEAST_LEADER_CHARS)
    shortest = _render_ideation(request, kernels)
    room = IDEATION_CHARS - len(shortest) + (len(kernels[0].text) if kernels else 0)
    return _render_ideation(request, _told_kernels(request, room)) if room > LEAST_LEADER_CHARS else shortest


def _told_kernels(request: IdeationRequest, leader_chars: int) -> list[ShownKernel]:
    return told_kernels(request.elites, request.subject.language, leader_chars)


def _render_ideation(request: IdeationRequest, kernels: list[ShownKernel]) -> str:
    return render_prefix(request.subject) + render(
        "ideate.md.j2",
        request=request,
        subject=request.subject,
        baselines=request.baselines,
        categories=list(Category),
        kernels=kernels,
        tried=told_ideas(request.tried, [kernel.elite for kernel in kernels]),
        block_chars=IDEATION_BLOCK_CHARS,
    )


def render_kernel(request: KernelRequest) -> str:
    """Return the prompt that asks for a kernel, or for the repair of one.

    A repair begins as its write did, parent included, and shows of the source that failed what that changed of the parent.
    Where it changed most of it, the source is shown whole and the parent is not.
    """
    changes = _changes_of_failed(request)
    is_whole = request.is_repair and not changes
    return render_prefix(request.subject) + render(
        "repair.md.j2" if request.failure else "write.md.j2",
        request=request,
        subject=request.subject,
        baselines=request.baselines.eager_only(),  # as in the first round, so that prompts of all rounds begin alike
        kernels=[] if is_whole else parent_kernels(request.parent, request.second_parent, request.subject.language),
        changes=changes,
        block_chars=WRITE_BLOCK_CHARS,
    )


def _changes_of_failed(request: KernelRequest) -> str:
    """Return what a failed source changed of its parent; "" where the source itself is to be shown.

    So it is after a reply that could not be used, whose edits may not have matched a source that stood there in parts.
    """
    if not request.is_repair or request.parent is None or request.unreadable:
        return ""
    return readable_difference(request.parent.source, request.failed_source, REPAIR_CONTEXT)


def render_request(request: IdeationRequest | KernelRequest) -> str:
    """Return the prompt of either kind of request; its hash identifies the request in the journal."""
    return render_ideation(request) if isinstance(request, IdeationRequest) else render_kernel(request)
