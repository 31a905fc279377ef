"""The model that needs no key: it recognises what a reference computes and composes kernels from known structures."""

from __future__ import annotations

import re

from ridgeline.graph.offline.emit_cpp import emit
from ridgeline.graph.offline.ideas import named_structures
from ridgeline.graph.offline.ir import NotCovered, RowProgram
from ridgeline.graph.offline.proposals import Composition, base_composition, composition_of, merge, propose_ideas
from ridgeline.graph.offline.recognise import recognise
from ridgeline.graph.offline.structures import Choices, Structure, applicable, compatible, structures_of
from ridgeline.graph.requests import IdeaList, IdeationRequest, KernelDraft, KernelRequest, Reply, Subject
from ridgeline.tools.errors import ModelError

VARIATIONS = (
    Choices(),
    Choices(row_block=4, lanes=2, online_block=1024, stream_tile=1024, prefetch_rows=2, chunk=64),
    Choices(row_block=1, lanes=8, online_block=64, stream_tile=64, prefetch_rows=4, chunk=4),
)
TUNABLE = frozenset(
    {Structure.ROWS, Structure.LANES, Structure.ONLINE, Structure.STREAM, Structure.PREFETCH, Structure.DYNAMIC}
)
VARYING = (Structure.PREFETCH, Structure.DYNAMIC, Structure.NARROW, Structure.LANES)
"""What a further implementation of an idea without tunables adds, in turn."""

SUSPECTS: tuple[tuple[str, tuple[Structure, ...]], ...] = (
    (r"flag", (Structure.NARROW,)),
    (r"crash|segmentation|written|signal|memory|stack", (Structure.STREAM, Structure.ROWS, Structure.KEEP)),
    (r"wrong|error|precision|nan|inf|finite|differ", (Structure.MOMENTS, Structure.ONLINE, Structure.POLY)),
    (r"time|slow", (Structure.DYNAMIC, Structure.ONLINE)),
)
"""Which structures a failure points at, most likely first."""
LAST_SUSPECTS = (
    Structure.ROWS,
    Structure.LANES,
    Structure.STREAM,
    Structure.PREFETCH,
    Structure.DYNAMIC,
    Structure.NARROW,
    Structure.MOMENTS,
    Structure.ONLINE,
    Structure.POLY,
    Structure.KEEP,
)


class OfflineModel:
    """A KernelModel without a language model: deterministic, free, for row-wise references on the CPU."""

    @property
    def name(self) -> str:
        """Return "offline"."""
        return "offline"

    async def propose(self, request: IdeationRequest) -> Reply:
        """Answer with JSON of an IdeaList: fewer ideas than asked, even none, when every composition was tried.

        Raises:
            ModelError: the reference, the device or the interface is not covered; the message says what else works.
        """
        ideas = propose_ideas(composer_for(request.subject), request)
        return Reply(text=IdeaList(ideas=ideas).model_dump_json())

    async def write(self, request: KernelRequest) -> Reply:
        """Answer with JSON of a KernelDraft: a whole kernel, or the failed one without its most likely fault.

        Raises:
            ModelError: as for `propose`.
        """
        program = composer_for(request.subject)
        if request.failed_source:
            composition, notes = _repaired(program, request)
        else:
            composition, notes = _varied(program, _target(program, request), request.variation)
        choices = VARIATIONS[request.variation % len(VARIATIONS)]
        source = emit(program, request.subject.description.signature, composition, choices)
        return Reply(text=KernelDraft(source=source, notes=notes).model_dump_json())


def _expect_form(subject: Subject) -> None:
    if subject.language != "cpp":
        raise NotCovered("CUDA targets")
    if subject.interface != "c":
        raise NotCovered(f"interface {subject.interface}")


def composer_for(subject: Subject) -> RowProgram:
    """Return what the kernels of a subject are composed from.

    Raises:
        ModelError: the reference, the device or the interface is not covered; the message says what else works.
    """
    try:
        _expect_form(subject)
        return recognise(subject.description)
    except NotCovered as refusal:
        raise ModelError(
            f"{subject.problem_name}: offline composes row-wise kernels; not covered: {refusal}. Two other ways on: "
            "a language model (--model openai:o3 with OPENAI_API_KEY, or any provider:name), or kernel files and "
            "ideas of your own (seeds: and ideas: in problem.yaml)"
        ) from refusal


def _target(program: RowProgram, request: KernelRequest) -> Composition:
    """Return what the idea composes: as it names it, else the parents' structures and those its words suggest."""
    usable = frozenset(applicable(program))
    named = named_structures(f"{request.idea.title}\n{request.idea.mechanism}") & usable
    if "Composition:" in request.idea.mechanism:
        return named
    start = composition_of(program, request.parent.source if request.parent else None)
    if request.second_parent is not None:
        start = merge(start, composition_of(program, request.second_parent.source))
    return merge(start, named)


def _varied(program: RowProgram, composition: Composition, variation: int) -> tuple[Composition, str]:
    words = ", ".join(s.value for s in Structure if s in composition) or "recomputation from the inputs"
    notes = f"Composed of {words}."
    if variation == 0 or composition & TUNABLE:
        return composition, notes
    usable = [s for s in VARYING if s in applicable(program) and compatible(composition | {s})]
    extra = [s for s in usable if s not in composition]
    if not extra:
        return composition, notes
    chosen = extra[(variation - 1) % len(extra)]
    return composition | {chosen}, f"{notes} This variation adds {chosen.value}."


def _repaired(program: RowProgram, request: KernelRequest) -> tuple[Composition, str]:
    """Return the failed composition without the structure most likely at fault."""
    failed = structures_of(request.failed_source)
    if not failed:
        return base_composition(program), "Started over from the base composition."
    suspects = [s for pattern, group in SUSPECTS if re.search(pattern, request.failure, re.IGNORECASE) for s in group]
    culprit = next(s for s in [*suspects, *LAST_SUSPECTS] if s in failed)
    return failed - {culprit}, f"Dropped {culprit.value}: the failure points at it."
