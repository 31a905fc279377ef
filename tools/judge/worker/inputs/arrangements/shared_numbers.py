"""Whole numbers of an input that come in another argument too, or once more in their own row: identities that are looked up,
counted or matched there, phrases that are looked for or come again, and numbers that mean something (marks.py).

Numbers of a wide range, drawn twice, hardly ever meet, whatever types hold them, nor are any close to others. The other
argument may be a list that a module keeps, or be in order: what it holds stays.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import torch

from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.inputs.arrangements.close_numbers import (
    distinct_again,
    one_bit_apart,
    with_bits_changed,
    with_close_numbers,
)
from ridgeline.tools.judge.worker.inputs.arrangements.links import Ends
from ridgeline.tools.judge.worker.inputs.arrangements.marks import NO_MARKS, Marks
from ridgeline.tools.judge.worker.inputs.arrangements.sources import Parameters, Sources
from ridgeline.tools.judge.worker.inputs.input_form import InputForm
from ridgeline.tools.judge.worker.inputs.values.structure import (
    is_mask,
    is_within,
    is_without_structure,
    may_be_compared,
)

_SHARED = (1 / 4, 1 / 2)
"""Share of a row's places that hold numbers of other inputs."""
_IN_RUNS = 1 / 2
"""Share of the rows in which such numbers come as runs, as they follow each other there."""
_IN_ONE_RUN = 1 / 4
"""Share of the rows in which they are one run of any length, at its own place there; with half of these rows it begins."""
_LONGEST = 8
"""Places of such a run, at most."""
_IN_LINE = 1 / 8
"""Share of these runs whose numbers have the same place there along the last dimension."""
_BUT_FOR_A_BIT = 1 / 2
"""Share of such numbers that have another bit, where an input may be so."""

_WITH_PHRASE = 1 / 4
"""Share of the rows, along the last dimension, in which a whole row of another input that is shorter comes."""
_AT_END = 1 / 2
"""Share of these in which it ends the row; in half of those without its own last number."""
_REPEATED = 1 / 2
"""Share of the rows, along the last dimension, in which one run of an input's own numbers comes once more, further on."""
_RUNS_OF_OWN = (4, 1 / 4)
"""Places of such a run, at least, and the share of its row's that it takes at most."""
_LEAST_PLACES = 16
"""Places of a row in which one comes."""


def sources_of_numbers(
    inputs: Tensors, parameters: Parameters, forms: Sequence[InputForm], free: Collection[int], marks: Marks
) -> dict[int, tuple[int | str, ...]]:
    """Return the inputs that may hold numbers of other arguments, with these: of any whole type, some within its range.

    One whose rows have places enough may hold its own once more. Those in order, or distinct, stay as they are. Of two inputs
    that may change the one of the wider range holds the other's, of one range the one of longer rows. One that may hold marks
    is among them without any.
    """
    given = _by_key(inputs, parameters)
    ranges = {
        key: ends for key, t in given.items() if t.numel() > 1 and not is_mask(t) and (ends := marks.range_of(key, t))
    }
    holding = {i for i in free if i in ranges and _may_hold_others(inputs[i], forms[i])}

    def is_source(other: int | str, of: int) -> bool:
        is_turned = other in holding and _rank(int(other), inputs, ranges) > _rank(of, inputs, ranges)
        if other == of:
            return inputs[of].dim() > 0 and inputs[of].shape[-1] >= _LEAST_PLACES
        return not is_turned and _has_any_within(given[other], ranges[of])

    found = {i: tuple(other for other in ranges if is_source(other, i)) for i in sorted(holding)}
    return {i: others for i, others in found.items() if others or marks.has_any(i, ranges[i])}


def _by_key(inputs: Tensors, parameters: Parameters) -> dict[int | str, torch.Tensor]:
    return dict[int | str, torch.Tensor]([*enumerate(inputs), *parameters.items()])


def _may_hold_others(tensor: torch.Tensor, form: InputForm) -> bool:
    return may_be_compared(tensor.dtype) and form.may_be_lifted


def _rank(index: int, inputs: Tensors, ranges: Mapping[Any, Ends]) -> tuple[int, int, int]:
    """Return an input's range in bits, as two draws of it have the same, the length of its rows, and its place."""
    low, high = ranges[index]
    return (high - low).bit_length(), inputs[index].shape[-1] if inputs[index].dim() else 1, index


def _has_any_within(tensor: torch.Tensor, ends: tuple[int, int]) -> bool:
    return ends[0] < ends[1] and bool(is_within(tensor.long(), ends).any())


def with_shared_numbers(
    inputs: Tensors,
    generator: torch.Generator,
    *,
    sources: Sources,
    chosen: Collection[int],
    close: Collection[int] = (),
    floats: Collection[int] = (),
    distinct: Collection[int] = (),
    marks: Marks = NO_MARKS,
    parameters: Callable[[], Parameters] = dict,
) -> Tensors:
    """Return inputs of which the chosen ones hold numbers of their sources, in a share of their places.

    Those of the same row, where the leading dimensions agree; none beyond an input's own range. Before that one that is its
    own source holds runs of its own once more, and each of the chosen ones some `marks`, whose runs come last of all. Those
    of `close` have numbers that are close to one another, or alike but for a bit, also in their sources. None of `distinct`
    comes twice. Floating-point ones of `floats` hold marks alone. `parameters` returns those of the same trial, and is asked
    only where one is a source.
    """
    changed = [with_close_numbers(t, generator) if i in close else t for i, t in enumerate(inputs)]
    ranges = {i: marks.range_of(i, inputs[i]) or (0, 0) for i in {*chosen, *close}}
    for i in sorted(chosen):  # at first: what two have in common stays whole
        if i in sources[i]:
            changed[i] = _with_own_again(changed[i], ranges[i], generator)
        changed[i] = marks.placed(i, changed[i], ranges[i], generator)
    is_any_named = any(isinstance(source, str) for i in chosen for source in sources[i])
    given = _by_key(tuple(changed), parameters() if is_any_named else {})
    for i in sorted(ranges, key=lambda i: _rank(i, inputs, ranges)):  # what others hold is as it will be
        others = [source for source in sources[i] if source != i] if i in chosen else []
        for source in others:
            part, is_close = len(others), i in close
            changed[i] = _with_numbers_of(changed[i], given[source], generator, ranges[i], part=part, is_close=is_close)
            changed[i] = _with_phrases_of(changed[i], given[source], ranges[i], generator)
        if i in chosen:
            changed[i] = marks.with_runs(changed[i], ranges[i], generator)
        if i in close:
            changed[i] = with_bits_changed(changed[i], ranges[i], generator)
        if i not in chosen:
            changed[i] = distinct_again(changed[i], inputs[i], is_whole=i in distinct)
        given[i] = changed[i]
    for i in sorted(floats):
        changed[i] = marks.among_floats(changed[i], generator)
    return tuple(changed)


def may_hold_marks(inputs: Tensors, forms: Sequence[InputForm], free: Collection[int], marks: Marks) -> tuple[int, ...]:
    """Return the floating-point inputs that may hold marks: those without an order or another structure."""
    return tuple(i for i in free if _may_hold_marks(inputs[i], forms[i]) and marks.has_floats(inputs[i]))


def _may_hold_marks(tensor: torch.Tensor, form: InputForm) -> bool:
    return tensor.numel() > 0 and not (form.is_mask or form.is_alike or form.order) and is_without_structure(tensor)


def _with_numbers_of(
    tensor: torch.Tensor,
    source: torch.Tensor,
    generator: torch.Generator,
    ends: Ends,
    *,
    part: int,
    is_close: bool,
) -> torch.Tensor:
    n_common = _common(tensor.shape, source.shape)
    n_rows = tensor.shape[:n_common].numel()
    own, other = tensor.reshape(n_rows, -1), source.reshape(n_rows, -1).long()
    if n_common == 0 and tensor.dim() > 1:  # each row has its own way to hold them
        own, other = tensor.reshape(-1, tensor.shape[-1]), other.expand(tensor.shape[:-1].numel(), -1)
    columns = tensor.shape[-1], source.shape[-1]
    numbers, is_shared = _drawn(own.shape, other, generator, part, columns)
    if is_close:
        others, stay_within = one_bit_apart(numbers, ends, generator)
        drawn = torch.rand(own.shape, generator=generator, device=generator.device)
        numbers = torch.where(stay_within & (drawn < _BUT_FOR_A_BIT), others, numbers)
    is_shared &= is_within(numbers, ends) & is_within(own, ends)
    return torch.where(is_shared, numbers.to(tensor.dtype), own).view(tensor.shape)


def _drawn(
    shape: torch.Size, source: torch.Tensor, generator: torch.Generator, part: int, columns: tuple[int, int]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return numbers of each row of a source for all places of a row, and which of them are taken.

    `columns` are the places of the last dimension of the input and of the source.
    """
    n_rows, width = shape
    share, kind, length, start = torch.rand(4, n_rows, 1, generator=generator, device=generator.device)
    run = torch.where(kind < _IN_RUNS, 2 + (length * (_LONGEST - 1)).long(), 1)
    places = torch.arange(width, device=generator.device)
    number_of_run, within = torch.div(places, run, rounding_mode="floor"), places % run
    begins, taken, in_line = (
        torch.rand(shape, generator=generator, device=generator.device).gather(1, number_of_run) for _ in range(3)
    )
    at = ((begins * source.shape[1]).long() + within) % source.shape[1]
    in_own_place, own, others = places, *columns
    if source.shape[1] % others == width % own == 0:
        column = places % own % others
        at = torch.where(in_line < _IN_LINE, at - at % others + column, at)
        in_own_place = torch.div(places, own, rounding_mode="floor") * others + column
    least, most = _SHARED
    is_taken = taken < (least + (most - least) * share) / part
    begin = width * (2 * start - 1).clamp(min=0)
    is_in_run = (places >= begin) & (places < begin + length * (width - begin)) & (taken[:, :1] < 1 / part)
    is_one_run = kind >= 1 - _IN_ONE_RUN
    at = torch.where(is_one_run, in_own_place % source.shape[1], at)
    return source.gather(1, at), torch.where(is_one_run, is_in_run, is_taken)


def _with_phrases_of(
    tensor: torch.Tensor, source: torch.Tensor, ends: Ends, generator: torch.Generator
) -> torch.Tensor:
    """Return whole numbers in a share of whose rows a whole row of a shorter source comes: a phrase that is looked for there.

    It may be at a row's end, and lack its own last number there, which is what a text may be followed by.
    """
    length = source.shape[-1] if source.dim() else 0
    if tensor.dim() == 0 or not 2 <= length <= tensor.shape[-1] // 2:
        return tensor
    rows, phrases = tensor.reshape(-1, tensor.shape[-1]), source.reshape(-1, length).long()
    width = rows.shape[1]
    has_one, which, place, at_end = torch.rand(4, len(rows), 1, generator=generator, device=generator.device)
    begin = torch.where(
        at_end < _AT_END, width - length + (at_end < _AT_END / 2).long(), (place * (width - length)).long()
    )
    within = torch.arange(width, device=generator.device) - begin
    chosen = (which * len(phrases)).long().clamp(max=len(phrases) - 1).squeeze(-1)  # of very many the last may round up
    phrase = phrases[chosen].gather(1, within.clamp(0, length - 1))
    is_laid = (
        (has_one < _WITH_PHRASE) & (within >= 0) & (within < length) & is_within(rows, ends) & is_within(phrase, ends)
    )
    return torch.where(is_laid, phrase.to(tensor.dtype), rows).view(tensor.shape)


def _with_own_again(tensor: torch.Tensor, ends: Ends, generator: torch.Generator) -> torch.Tensor:
    """Return whole numbers in many of whose rows a run of those before comes once more; none takes a sentinel's place."""
    rows = tensor.reshape(-1, tensor.shape[-1])
    width = rows.shape[1]
    is_repeated, length, source, place = torch.rand(4, len(rows), 1, generator=generator, device=generator.device)
    least, most = _RUNS_OF_OWN
    run = (least + length * (most * width - least + 1)).long()
    begin = (run + place * (width - 2 * run + 1)).long()  # behind a whole run
    places = torch.arange(width, device=generator.device)
    is_again = (is_repeated < _REPEATED) & (places >= begin) & (places < begin + run)
    first = (source * (begin - run + 1)).long()
    again = rows.gather(1, torch.where(is_again, places - begin + first, places))
    return torch.where(is_within(rows, ends) & is_within(again, ends), again, rows).view(tensor.shape)


def _common(first: torch.Size, second: torch.Size) -> int:
    """Return how many leading dimensions two inputs share: never all of both."""
    most = min(len(first), len(second), max(len(first), len(second)) - 1)
    return next((n for n in range(most) if first[n] != second[n]), most)
