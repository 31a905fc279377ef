"""The model that needs no key: it recognises what a reference computes and composes kernels from known structures."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ridgeline.graph.models.requests import IdeaList, IdeationRequest, KernelDraft, KernelRequest, Reply, Subject
from ridgeline.graph.offline.composer import (
    Composer,
    Composition,
    compatible,
    composition_of,
    merge,
    ordered,
    structures_of,
)
from ridgeline.graph.offline.convolution.composers import convolution
from ridgeline.graph.offline.ideas import named_structures
from ridgeline.graph.offline.ir import NotCovered
from ridgeline.graph.offline.matmul.cpu import MatmulCpu
from ridgeline.graph.offline.matmul.cuda import MatmulCuda
from ridgeline.graph.offline.proposals import propose_ideas
from ridgeline.graph.offline.rowwise import RowwiseCpp
from ridgeline.graph.offline.rowwise_cuda import RowwiseCuda
from ridgeline.tools.errors import UncoveredError


def rowwise(subject: Subject) -> Composer:
    """Return the row-wise family's composer for the subject's target.

    Raises:
        NotCovered: it has none for this reference or target.
    """
    return RowwiseCuda(subject) if subject.language == "cu" else RowwiseCpp(subject)


def matmul(subject: Subject) -> Composer:
    """Return the contraction family's composer for the subject's target.

    Raises:
        NotCovered: it has none for this reference or target.
    """
    return MatmulCuda(subject) if subject.language == "cu" else MatmulCpu(subject)


FAMILIES: Mapping[str, Callable[[Subject], Composer]] = {
    "row-wise": rowwise,
    "matmul": matmul,
    "convolution": convolution,
}
"""Operation families by name, tried in this order; each raises NotCovered for a reference that is not its own."""


class OfflineModel:
    """A KernelModel without a language model: deterministic, free, for the operation families it knows."""

    @property
    def name(self) -> str:
        """Return "offline"."""
        return "offline"

    async def propose(self, request: IdeationRequest) -> Reply:
        """Answer with JSON of an IdeaList: fewer ideas than asked, even none, when every composition was tried.

        Raises:
            UncoveredError: the reference, the device or the interface is not covered; the message says what else works.
        """
        try:
            composer = composer_for(request.subject)
        except UncoveredError:
            if not request.elites:
                raise
            return Reply(text=IdeaList(ideas=[]).model_dump_json())  # kernels of the user's own are all there is
        ideas = propose_ideas(composer, request)
        return Reply(text=IdeaList(ideas=ideas).model_dump_json())

    async def write(self, request: KernelRequest) -> Reply:
        """Answer with JSON of a KernelDraft: a whole kernel, or the failed one without its most likely fault.

        Raises:
            UncoveredError: as for `propose`.
        """
        composer = composer_for(request.subject)
        if request.failed_source:
            composition, notes = _repaired(composer, request)
        else:
            composition, notes = _varied(composer, _target(composer, request), request.variation)
        source = composer.emit(composition, request.variation)
        return Reply(text=KernelDraft(source=source, notes=notes).model_dump_json())


def composer_for(subject: Subject) -> Composer:
    """Return the composer of the first family that covers a subject.

    Raises:
        UncoveredError: none does; the message says what each family lacks and what else works.
    """
    refusal = refuse_interface(subject.problem_name, subject.interface)
    if refusal is not None:
        raise refusal
    refusals = []
    for family, compose in FAMILIES.items():
        try:
            return compose(subject)
        except NotCovered as refusal:
            refusals.append(f"{family}: {refusal}")
    raise _uncovered(subject.problem_name, "; ".join(refusals))


def refuse_interface(problem_name: str, interface: str) -> UncoveredError | None:
    """Return what speaks against an interface, whatever the reference computes; None for one that is composed for."""
    return None if interface == "c" else _uncovered(problem_name, f"interface {interface}")


def _uncovered(problem_name: str, why: str) -> UncoveredError:
    return UncoveredError(
        f"{problem_name}: offline composes {', '.join(FAMILIES)} kernels; not covered: {why}. "
        "Two other ways on: a language model (--model openai:o3 with OPENAI_API_KEY, or any provider:name), or kernel "
        "files of your own (seeds: in problem.yaml), which are judged and certified"
    )


def _target(composer: Composer, request: KernelRequest) -> Composition:
    """Return what the idea composes: as it names it, else the parents' structures and those its words suggest."""
    named = named_structures(composer, f"{request.idea.title}\n{request.idea.mechanism}") & set(composer.applicable())
    if "Composition:" in request.idea.mechanism:
        return merge(composer, frozenset(), named)  # a line by another author may name what does not go together
    start = composition_of(composer, request.parent.source if request.parent else None)
    if request.second_parent is not None:
        start = merge(composer, start, composition_of(composer, request.second_parent.source))
    return merge(composer, start, named)


def _varied(composer: Composer, composition: Composition, variation: int) -> tuple[Composition, str]:
    words = ", ".join(ordered(composer, composition)) or "recomputation from the inputs"
    notes = f"Composed of {words}."
    if variation == 0 or composition & composer.tunable():
        return composition, notes
    usable = [s for s in composer.varying() if s in composer.applicable() and compatible(composer, composition | {s})]
    extra = [s for s in usable if s not in composition]
    if not extra:
        return composition, notes
    chosen = extra[(variation - 1) % len(extra)]
    return composition | {chosen}, f"{notes} This variation adds {chosen}."


def _repaired(composer: Composer, request: KernelRequest) -> tuple[Composition, str]:
    """Return the failed composition without the structure most likely at fault."""
    failed = frozenset(ordered(composer, structures_of(request.failed_source) or ()))
    if not failed:
        return composer.base(), "Started over from the base composition."
    culprit = next(s for s in composer.suspects(request.failure) if s in failed)
    return failed - {culprit}, f"Dropped {culprit}: the failure points at it."
