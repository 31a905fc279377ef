"""The model that needs no key: it reads a reference's graph and composes kernels from known structures."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from ridgeline.graph.models.requests import (
    COMPOSER,
    IdeaList,
    IdeationRequest,
    KernelDraft,
    KernelRequest,
    Reply,
    Subject,
    Traits,
)
from ridgeline.graph.offline.composer import (
    Composer,
    Composition,
    compatible,
    composition_of,
    merge,
    ordered,
    structures_of,
)
from ridgeline.graph.offline.convolution.cpu.composer import ConvolutionCpu
from ridgeline.graph.offline.convolution.cuda.composer import ConvolutionCuda
from ridgeline.graph.offline.matmul.cpu.composer import MatmulCpu
from ridgeline.graph.offline.matmul.cuda.composer import MatmulCuda
from ridgeline.graph.offline.program.graph import FAMILY_OPERATIONS
from ridgeline.graph.offline.program.ir import NotCovered, NotOfFamily
from ridgeline.graph.offline.proposals import propose_ideas
from ridgeline.graph.offline.rowwise.cpu.composer import RowwiseCpu
from ridgeline.graph.offline.rowwise.cuda.composer import RowwiseCuda
from ridgeline.graph.offline.wording import named_structures
from ridgeline.tools.errors import UncoveredError
from ridgeline.tools.records.vocabulary import DeviceKind, Interface
from ridgeline.tools.wording import option

FAMILIES: Mapping[str, Mapping[DeviceKind, Callable[[Subject], Composer]]] = {
    "row-wise": {DeviceKind.CPU: RowwiseCpu, DeviceKind.CUDA: RowwiseCuda},
    "matmul": {DeviceKind.CPU: MatmulCpu, DeviceKind.CUDA: MatmulCuda},
    "convolution": {DeviceKind.CPU: ConvolutionCpu, DeviceKind.CUDA: ConvolutionCuda},
}
"""Composers by family and device. Families are tried in this order; each raises NotCovered for a reference outside it."""

_OPERATION = re.compile(r"\baten\.(\w+)(?:\.\w+)?")
"""An operation as PyTorch's graphs name it; a person calls `aten.sort.default` sort."""
_INTERNAL = (
    (re.compile(r"_?native_(batch|group|layer)_norm(_legit\w*)?"), r"\1_norm"),
    (re.compile(r"_scaled_dot_product_\w*attention\w*"), "scaled_dot_product_attention"),
)
"""What PyTorch makes of an operation for a mode or a device, and the name that people call it by."""
_MADE_OF = {"cat": ("stack", "hstack", "vstack", "dstack", "column_stack")}
"""Operations of PyTorch's graphs, and what else in a reference becomes them."""


class OfflineModel:
    """A KernelModel without a language model: deterministic, free, for a few operation families."""

    @property
    def name(self) -> str:
        """Return "offline"."""
        return "offline"

    @property
    def traits(self) -> Traits:
        """Return how the model differs from a language model."""
        return COMPOSER

    async def propose(self, request: IdeationRequest) -> Reply:
        """Answer with JSON of an IdeaList: fewer ideas than asked, even none, when every composition was tried.

        Raises:
            UncoveredError: the reference, the device or the interface is not covered; the message names two other ways.
        """
        try:
            composer = composer_for(request.subject)
        except UncoveredError:
            if not request.elites:
                raise
            return Reply(text=IdeaList(ideas=[]).model_dump_json())  # the user's own kernels are still judged
        ideas = propose_ideas(composer, request)
        return Reply(text=IdeaList(ideas=ideas).model_dump_json())

    async def write(self, request: KernelRequest) -> Reply:
        """Answer with JSON of a KernelDraft: a whole kernel, or the failed one without the structure most likely at fault.

        Raises:
            UncoveredError: as for `propose`.
        """
        composer = composer_for(request.subject)
        if request.failed_source:
            composition, notes = _repaired(composer, request)
        else:
            composition, notes = _varied(composer, _target(composer, request), request.variation)
        source = composer.write_source(composition, request.variation)
        return Reply(text=KernelDraft(source=source, notes=notes).model_dump_json())


def composer_for(subject: Subject) -> Composer:
    """Return the composer of the first family that covers a subject.

    Raises:
        UncoveredError: none does; the message says what each family refuses and names two other ways.
    """
    refusal = refuse_interface(subject.problem_name, subject.interface)
    if refusal is not None:
        raise refusal
    refusals: dict[str, NotCovered] = {}
    for family, on_device in FAMILIES.items():
        try:
            return on_device[subject.device.kind](subject)
        except NotCovered as outside:
            refusals[family] = outside
    near = {family: why for family, why in refusals.items() if not isinstance(why, NotOfFamily)} or refusals
    near = {family: why for family, why in near.items() if not _is_of_another(why)} or near
    families: dict[str, list[str]] = {}
    for family, why in near.items():
        families.setdefault(_as_said(why, subject.reference_source), []).append(family)
    raise _uncovered(subject.problem_name, "; ".join(f"{why} ({', '.join(of)})" for why, of in families.items()))


def _is_of_another(why: NotCovered) -> bool:
    """Say whether all that a family refuses is an operation that another one is named for, which says more of it."""
    operation = _OPERATION.fullmatch(str(why))
    return bool(operation and operation[1] in FAMILY_OPERATIONS)


def _as_said(why: NotCovered, source: str) -> str:
    return _OPERATION.sub(lambda found: f"the operation {_public_name(found[1], source)}", str(why))


def _public_name(operation: str, source: str) -> str:
    """Return the name of an operation of a graph as the reference's source has it."""
    if not re.search(rf"\b{operation}\b", source):
        written = (word for word in _MADE_OF.get(operation, ()) if re.search(rf"\b{word}\b", source))
        operation = next(written, operation)
    for internal, public in _INTERNAL:
        if internal.fullmatch(operation):
            return internal.sub(public, operation)
    return operation


def refuse_interface(problem_name: str, interface: Interface) -> UncoveredError | None:
    """Return the refusal of an interface, whatever the reference computes; None for `c`."""
    return None if interface is Interface.C else _uncovered(problem_name, f"interface {interface}")


def _uncovered(problem_name: str, why: str) -> UncoveredError:
    return UncoveredError(
        f"{problem_name}: the offline model, which needs no key, composes row-wise operations, matrix products and "
        f"convolutions; not covered: {why}. "
        f"Two other ways on: a language model ({option('model', 'openai:o3')} with OPENAI_API_KEY, or any provider:name), or "
        "kernel files of your own (seeds: in problem.yaml), which are judged and certified"
    )


def _target(composer: Composer, request: KernelRequest) -> Composition:
    """Return the idea's own composition, else the parents' structures and those that its words name."""
    idea, usable = request.idea, frozenset(composer.applicable())
    if idea.composition is not None:
        # of an idea that an earlier version stored, two may be in conflict by now
        return merge(composer, frozenset(), usable.intersection(idea.composition))
    named = named_structures(composer, f"{idea.title}\n{idea.mechanism}") & usable
    start = composition_of(composer, request.parent.source if request.parent else None)
    if request.second_parent is not None:
        start = merge(composer, start, composition_of(composer, request.second_parent.source))
    return merge(composer, start, named)


def _varied(composer: Composer, composition: Composition, variation: int) -> tuple[Composition, str]:
    words = ", ".join(ordered(composer, composition)) or "recomputation from the inputs"
    notes = f"Composed of {words}."
    if variation == 0 or composition & composer.structures.tunable:
        return composition, notes
    usable = [
        s for s in composer.structures.varying if s in composer.applicable() and compatible(composer, composition | {s})
    ]
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
    culprit = next(s for s in composer.structures.suspects(request.failure_code) if s in failed)
    return failed - {culprit}, f"Dropped {culprit}: the failure points at it."
