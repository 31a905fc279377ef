"""The trials of other sizes: arguments larger or smaller, by as much as leaves the output as well conditioned as it was.

How many rounds an iteration needs, and how long a recurrence remembers, is set by the size of its weights. Those that a
module begins with are small: a fixed point is reached early, and a state is gone after a few steps. Larger ones lead to
an edge beyond which the last bits decide. So do smaller rates, dampings and slopes, which are of one sign. The trials lie
on this side of it.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import TypeVar

from ridgeline.tools.errors import BadReferenceError, ProblemError
from ridgeline.tools.judge.worker.call_form import Scalar, Tensors
from ridgeline.tools.judge.worker.domain.alike import Likeness, difference
from ridgeline.tools.judge.worker.domain.conditioning import (
    LEFT_TO_ROUNDING,
    ROWS_WORSE,
    WORSE,
    BothErrors,
    beside_own_spread,
    errors_by_rounding,
    is_as_good,
    is_next_to_nothing,
)
from ridgeline.tools.judge.worker.domain.objections import Objection, Tried
from ridgeline.tools.judge.worker.domain.sizes.between import why_change_shows_nothing
from ridgeline.tools.judge.worker.domain.sizes.faint_inputs import find_faint_trials
from ridgeline.tools.judge.worker.domain.sizes.far_choices import FarChoices
from ridgeline.tools.judge.worker.domain.sizes.finite_ways import BEYOND_ON_THE_WAY, leaves_range
from ridgeline.tools.judge.worker.domain.sizes.first_parts import FirstParts
from ridgeline.tools.judge.worker.domain.sizes.held_numbers import find_held_numbers
from ridgeline.tools.judge.worker.domain.sizes.jumps import jumps, without_jumps
from ridgeline.tools.judge.worker.domain.sizes.larger_arguments import why_larger_shows_nothing
from ridgeline.tools.judge.worker.domain.sizes.made_matrices import makes_and_jumps
from ridgeline.tools.judge.worker.domain.sizes.near_rows import why_near_rows_show_nothing
from ridgeline.tools.judge.worker.domain.sizes.other_last_bits import with_other_last_bits
from ridgeline.tools.judge.worker.domain.sizes.sized_arguments import TWICE, changes_any_tensor, of_other_size
from ridgeline.tools.judge.worker.domain.sizes.trial_sizes import (
    ALIKE,
    FURTHEST,
    MOST_STEPS,
    SATURATING,
    base_of,
    most_taken,
    size_of,
    sized,
    slowest,
)
from ridgeline.tools.judge.worker.domain.sizes.uneven_choices import UnevenChoices
from ridgeline.tools.judge.worker.domain.sizes.usual_trial import Arguments, Usual, as_usual
from ridgeline.tools.judge.worker.grading.cases.case import Case
from ridgeline.tools.judge.worker.grading.cases.case_book import CaseBook
from ridgeline.tools.judge.worker.grading.cases.vector_signs import signed_as
from ridgeline.tools.judge.worker.inputs.source import SecretSource
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.judge.worker.regions import torch_dtype
from ridgeline.tools.records.trial_names import (
    BETWEEN,
    FAR_CHOICES,
    HELD,
    LARGE_INPUTS,
    LARGE_MATRICES,
    MOVED,
    NARROW,
    NEAR_ROWS,
    NOMINAL,
    OF_SQUARES,
    QUIET,
    SCALARS,
    SIZED,
    SIZED_SCALARS,
    UNEVEN,
)
from ridgeline.tools.records.vocabulary import Role

T = TypeVar("T")
_MOST_CASES = 6
"""Sizes of which a whole case is made at most."""
_NEAR = 2
"""The first so many that are refused are each followed by one that is a step smaller: the edge is near."""
_LESS = 2 / 3
"""Part of its steps that the next one has where a later one is refused."""


class SizedTrials:
    """Finds the size of each trial of SIZED, and notes it in the secret source."""

    def __init__(
        self, book: CaseBook, source: SecretSource, reference: Reference, *, objection: Objection, tried: Tried
    ) -> None:
        """Look at nothing yet."""
        self._book = book
        self._source = source
        self._reference = reference
        self._objection = objection
        self._tried = tried
        self._uneven = UnevenChoices(book, source, reference)
        self._dtypes = tuple(torch_dtype(spec.dtype) for spec in reference.signature.with_role(Role.OUTPUT))
        self._jumps = False
        self._taken: list[str] = []
        self._usual: dict[str, Usual] = {}
        self._moved: dict[str, float] = {}  # by what part of itself the output of a trial's last size moved
        self._nothing: dict[str, str] = {}  # why larger arguments show nothing, by what is larger

    def settle(self, taken: Collection[str]) -> tuple[str, ...]:
        """Return the trials that there are: of arguments whose size does more than scale the output.

        The reference takes the trials `taken`. Scalars that may have other values have them in the trial of scalars by then.
        """
        self._taken = list(taken)
        parts = FirstParts(self._source, self._reference)
        find_held_numbers(self._source, self._book, parts, self._tried)
        find_faint_trials(self._source, self._book, parts, self._tried)
        del parts  # two sets of inputs, and outputs
        found = self._found_in(NOMINAL[0], makes_and_jumps) or (False, bool(self._found_in(NOMINAL[0], jumps)))
        self._book.contents.makes_symmetric, self._jumps = found
        for trial in SIZED:
            if self._settle_far_choices() if trial == FAR_CHOICES else self._settle_trial(trial):
                self._taken.append(trial)
        return tuple(trial for trial in SIZED if trial in self._taken)

    def objection_to(self, case: Case) -> str:
        """Return why a case of such arguments is refused: what is worse conditioned than a usual one; "" when it is not.

        Errors count beside the output's own spread here: a candidate's count beside the usual one, where that is larger.
        """
        if case.name in QUIET and any(map(is_next_to_nothing, case.expected, self._dtypes)):
            return "its output would be next to nothing"
        found = self._errors_of(case, leaves_jumps_out=self._jumps)
        if case.name != NARROW:  # there the spread is gone: errors count as a candidate's
            found = beside_own_spread(found[0], case), beside_own_spread(found[1], case)
        usual = self._usual[self._base_of(case.name)].errors
        return "" if is_as_good(found, usual, is_held=case.name in HELD) else LEFT_TO_ROUNDING

    def _errors_of(self, case: Case, *, leaves_jumps_out: bool = False) -> BothErrors:
        try:
            with self._book.scalars_of(case.name):
                return errors_by_rounding(self._reference, case, without_jumps if leaves_jumps_out else None)
        except BadReferenceError:  # it refuses rounded operands, weights of sum 1 say
            return None, None

    def _settle_trial(self, trial: str) -> bool:
        base = self._base_of(trial)
        if not self._changes_any(trial) or base not in (*NOMINAL, *self._taken):
            return False
        if self._shows_nothing(trial) or not self._is_usual(base):
            return False
        if trial not in UNEVEN:
            return bool(self._settle_size(trial)) or (self._keeps_whole(trial) and self._settle_trial(trial))
        if steps := self._uneven.settle(trial, seen=self._seen, steps_of=self._settle_size):
            self._note(trial, steps)
        return bool(steps)

    def _settle_far_choices(self) -> bool:
        """Note by which arguments choices depend most on far parts of the inputs, as far as these hold; False for none."""
        if not self._jumps or not self._is_usual(NOMINAL[0]):
            return False
        far = FarChoices(self._book, self._source, self._outputs)
        for option in far.options(self._taken, tuple(self._reference.scalars), seen=self._seen)[:_MOST_CASES]:
            self._book.use(replace(self._book.changes, far=option.far))
            what = self._note(FAR_CHOICES, option.steps)
            if self._is_as_steady(FAR_CHOICES, what) and self._holds(FAR_CHOICES, what):
                return True
        self._forget(FAR_CHOICES)
        return False

    def _keeps_whole(self, trial: str) -> bool:
        """Let whole numbers stay in one of OF_SQUARES, and return whether these were changed."""
        changed = self._source.square(trial) if trial in OF_SQUARES else ()
        self._source.whole_kept.add(trial)
        return trial in OF_SQUARES and changed != self._source.square(trial)

    def _settle_size(self, trial: str) -> int:
        """Note the largest size of a trial that holds, and return its steps, 0 where none does."""
        steps = self._largest(trial)
        for n_made in range(1, _MOST_CASES + 1):
            if steps <= 0:
                break
            what = self._note(trial, steps)
            if self._holds(trial, what):
                return steps
            steps = steps - 1 if n_made <= _NEAR else int(steps * _LESS)
        self._forget(trial)
        return 0

    def _holds(self, trial: str, what: str) -> bool:
        """Return whether the reference takes a trial of the size that is noted."""
        return not (self._objection(trial, what) or self._seen(f"{what}, on the way", lambda: self._on_the_way(trial)))

    def _base_of(self, trial: str) -> str:
        return base_of(trial, self._taken)

    def _changes_any(self, trial: str) -> bool:
        has_scalars = self._scalars_of(trial, TWICE) != tuple(self._reference.scalars)
        made, n_shares = self._book.contents.makes_symmetric, len(self._uneven.shares)
        return has_scalars or changes_any_tensor(trial, self._source, n_shares=n_shares, makes_symmetric=made)

    def _shows_nothing(self, trial: str) -> bool:
        """Return whether nothing is to be seen of other sizes; moved weights that merely scale the output show nothing else."""
        if trial in (*QUIET, *UNEVEN):
            return False
        if trial in (NEAR_ROWS, *BETWEEN):
            is_scaled = trial == NEAR_ROWS and self._nothing_of(LARGE_INPUTS) is Likeness.SCALED
            return is_scaled or bool(self._seen(trial, lambda: self._change_shows_nothing(trial)))
        if trial in OF_SQUARES:  # shares of a row's sum are the same at any size
            weights, square = self._source.weights.square, set(self._source.square(trial))
            if not square <= set(self._source.may_be_larger):
                return False  # whole numbers are never doubled
            kinds = [LARGE_MATRICES] * bool(weights) + [LARGE_INPUTS] * bool(square)
            return all(self._nothing_of(kind) is Likeness.SCALED for kind in kinds)
        if trial not in MOVED:
            return bool(self._nothing_of(trial))
        return self._nothing_of(LARGE_MATRICES) is Likeness.SCALED or bool(self._nothing_of(trial))

    def _change_shows_nothing(self, trial: str) -> str:
        usual = self._arguments_of(NOMINAL[0])
        if trial == NEAR_ROWS:
            return why_near_rows_show_nothing(self._source, usual, self._outputs)
        return why_change_shows_nothing(usual, self._book.contents.changed(trial, NOMINAL[0], TWICE), self._outputs)

    def _nothing_of(self, trial: str) -> str:
        """Return why arguments of other sizes would show nothing, "" where they do; each kind of them is looked at once."""
        kind = next(group[0] for group in ALIKE if trial in group)
        if kind not in self._nothing:
            self._nothing[kind] = self._seen(f"{kind}, twice as large", lambda: self._alike(kind))
        return self._nothing[kind]

    def _largest(self, trial: str) -> int:
        """Return the most steps at which operands with other last bits move the output about as little as they usually do."""
        taken = most_taken(MOST_STEPS[trial], lambda steps: self._is_as_steady(trial, self._note(trial, steps)))
        return slowest(taken, functools.partial(self._moved_at, trial)) if taken and trial in SATURATING else taken

    def _moved_at(self, trial: str, steps: int) -> float:
        """Return by what part of itself other last bits move the output of a trial of this size; 0 where it is refused."""
        return self._moved[trial] if self._is_as_steady(trial, self._note(trial, steps)) else 0.0

    def _is_as_steady(self, trial: str, what: str) -> bool:
        return not self._seen(what, lambda: self._looked_at(trial))

    # ----------------------------------------------------------------------------------------------------------- sizes

    def _note(self, trial: str, steps: int) -> str:
        """Give a trial this size, and return the words that name it."""
        self._forget(trial)
        size = self._source.sizes[trial] = size_of(trial, steps)
        base = self._source.beside[trial] = self._base_of(trial)
        self._book.least_spreads[trial] = self._usual[base].spreads
        if (scalars := self._scalars_of(trial, size)) != tuple(self._reference.scalars):
            self._book.use(replace(self._book.changes, scalars={**self._book.changes.scalars, trial: scalars}))
        return f"{trial}, size {size:g}"

    def _forget(self, trial: str) -> None:
        self._book.forget(trial)
        self._book.least_spreads.pop(trial, None)
        others = {name: scalars for name, scalars in self._book.changes.scalars.items() if name != trial}
        self._book.use(replace(self._book.changes, scalars=others))

    def _scalars_of(self, trial: str, size: float) -> tuple[Scalar, ...]:
        """Return a trial's scalars: those sized that have other values in the trial of scalars."""
        given, far = tuple(self._reference.scalars), self._book.changes.far
        if trial not in SIZED_SCALARS:
            return far.scalars if trial == FAR_CHOICES and far else given
        others = self._book.changes.scalars.get(SCALARS, given)
        pairs = zip(given, others, strict=True)
        return tuple(sized(was, trial, size) if repr(was) != repr(other) else was for was, other in pairs)

    def _arguments_of(self, trial: str) -> Arguments:
        inputs, parameters = self._book.contents.at_hand(trial)
        given = tuple(self._reference.scalars)
        return Arguments(inputs=inputs, parameters=parameters, scalars=self._book.changes.scalars.get(trial, given))

    def _is_usual(self, base: str) -> bool:
        """Return whether it is known how the output of a usual trial moves."""
        if base not in self._usual:
            case = self._book.case(base)
            errors, spreads = self._errors_of(case), case.spreads
            del case

            def moved() -> str:
                moves = as_usual(self._moves(self._arguments_of(base)), self._dtypes)
                self._usual[base] = Usual(errors=errors, moves=moves, spreads=spreads)
                return ""

            self._seen(f"{base}, with other last bits", moved)
        return base in self._usual

    def _seen(self, what: str, look: Callable[[], str]) -> str:
        """Return what a look at the reference says, which places parameters, and leave them as they were."""

        def looked() -> str:
            with self._book.parameters_kept():
                try:
                    return look()
                except ProblemError as error:
                    return str(error)

        return self._tried(what, looked)

    def _looked_at(self, trial: str) -> str:
        """Return why a trial of the size that is noted is refused at first sight, "" where it is not."""
        worse, moves = ROWS_WORSE if trial in HELD else WORSE, self._moves(self._arguments_of(trial), trial)
        self._moved[trial] = max(moves, default=0.0)
        pairs = zip(moves, self._usual[self._base_of(trial)].moves, strict=True)
        return "" if all(found <= worse * each for found, each in pairs) else LEFT_TO_ROUNDING

    def _moves(self, arguments: Arguments, trial: str = "") -> tuple[float, ...]:
        """Return by what part of itself each output moves where about half of the operands move by some last bits."""
        others = with_other_last_bits(arguments, trial, self._source, self._book.contents)
        outputs = self._outputs(arguments)
        with signed_as(self._reference, outputs):
            moved = self._outputs(others)
        if trial and self._jumps:  # a few rows that jump say nothing of the others
            moved = tuple(map(without_jumps, moved, outputs))
        return tuple(map(difference, outputs, moved))

    def _on_the_way(self, trial: str) -> str:
        """Return why a trial is refused of which a result before the output is not finite, as a nominal trial's is."""
        is_beyond = trial not in QUIET and self._found_in(trial, leaves_range) and not self._usual_leaves_range
        return BEYOND_ON_THE_WAY if is_beyond else ""

    @functools.cached_property
    def _usual_leaves_range(self) -> bool:
        return bool(self._found_in(NOMINAL[0], leaves_range))

    def _found_in(self, trial: str, look: Callable[[Callable[[], object]], T]) -> T | None:
        """Return what a look at a run with a trial's arguments finds; None where an operation takes no look."""
        arguments = self._arguments_of(trial)
        with self._book.parameters_kept(), contextlib.suppress(BadReferenceError):
            return look(lambda: self._outputs(arguments))
        return None

    def _outputs(self, arguments: Arguments) -> Tensors:
        self._book.place_parameters(arguments.parameters)
        with self._reference.with_scalars(arguments.scalars):
            return tuple(output.clone() for output in self._reference.run(arguments.inputs))

    def _alike(self, trial: str) -> str:
        """Return why a trial would show nothing: larger arguments give the same output times a power of two."""
        usual = self._arguments_of(NOMINAL[0])

        def larger(times: float) -> Arguments:
            times = min(times, FURTHEST) if trial in MOVED else times  # no trial moves further
            return of_other_size(trial, usual, self._source, times=times, scalars=self._scalars_of(trial, times))

        return why_larger_shows_nothing(usual, larger, self._outputs, is_jumping=self._jumps)
