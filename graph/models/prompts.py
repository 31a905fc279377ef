"""Prompts from templates: the text lies in prompts/*.md.j2, and a name that a template misses is an error."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ridgeline.graph.models.requests import IdeationRequest, KernelRequest
from ridgeline.tools.records.problem import ArgSpec
from ridgeline.tools.records.vocabulary import ArgKind, Category

if TYPE_CHECKING:
    from jinja2 import Environment

PROMPTS = Path(__file__).parent / "prompts"


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
    environment.filters["argument"] = describe_argument
    return environment


def describe_argument(arg: ArgSpec) -> str:
    """Return one argument of `run` in words: `x: input float32 (2048, 768), strides (768, 1)`."""
    if arg.kind is ArgKind.NONE:
        return f"{arg.name}: None, not passed"
    if arg.kind is ArgKind.SCALAR:
        return f"{arg.name}: {arg.role} scalar {arg.dtype}, nominally {arg.value}"
    return f"{arg.name}: {arg.role} {arg.dtype} {tuple(arg.shape)}, strides {tuple(arg.strides)}"


def render(template: str, **values: Any) -> str:
    """Return `prompts/<template>` filled in."""
    return _environment().get_template(template).render(**values)


def render_ideation(request: IdeationRequest) -> str:
    """Return the prompt that asks for ideas."""
    return render("ideate.md.j2", request=request, subject=request.subject, categories=list(Category))


def render_kernel(request: KernelRequest) -> str:
    """Return the prompt that asks for a kernel, or for the repair of one."""
    template = "repair.md.j2" if request.failure else "write.md.j2"
    return render(template, request=request, subject=request.subject)


def render_request(request: IdeationRequest | KernelRequest) -> str:
    """Return the prompt of either kind of request; its hash identifies the request in the journal."""
    return render_ideation(request) if isinstance(request, IdeationRequest) else render_kernel(request)
