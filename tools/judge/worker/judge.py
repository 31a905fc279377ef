"""The judge: trusted, holds the reference and the secrets, makes inputs, grades outputs, times the reference."""

from __future__ import annotations

import dataclasses
import gc
from collections.abc import Mapping, Sequence
from pathlib import Path

from ridgeline.tools.judge.hang_limit import HangLimit
from ridgeline.tools.judge.memory_check import check_room
from ridgeline.tools.judge.messages import (
    Check,
    Copy,
    DetectChange,
    DrawNext,
    Examine,
    ExamineRepeat,
    FindUnasked,
    Idle,
    LeaveOut,
    Load,
    Loop,
    MakeRoom,
    Poison,
    Prepare,
    PrepareMode,
    Redraw,
    Renew,
    Supersede,
    TimeRenewals,
    VerifyInputs,
    Wipe,
)
from ridgeline.tools.judge.replies import (
    Beyond,
    Changed,
    Different,
    Done,
    Graded,
    Idled,
    Intact,
    LeftOut,
    Loaded,
    Looped,
    Missing,
    ModeReady,
    PaceAlone,
    RegionForm,
    Renewed,
    Same,
    Touched,
    Unasked,
)
from ridgeline.tools.judge.set_count import stay_in_cache
from ridgeline.tools.judge.worker.description import describe
from ridgeline.tools.judge.worker.device import device_of, use_tf32
from ridgeline.tools.judge.worker.domain.arguments.effects import Effects, FoundEffects
from ridgeline.tools.judge.worker.domain.domain import Domain
from ridgeline.tools.judge.worker.domain.refused_kinds import as_skipped, refused_kinds
from ridgeline.tools.judge.worker.domain.timed_kinds import find_timed_kinds
from ridgeline.tools.judge.worker.domain.usable import check_usable
from ridgeline.tools.judge.worker.grading.cases.case_book import CaseBook
from ridgeline.tools.judge.worker.grading.examiner import Examiner
from ridgeline.tools.judge.worker.inputs.source import SecretSource
from ridgeline.tools.judge.worker.inputs.timed_sets import is_intact
from ridgeline.tools.judge.worker.memory import ArenaMemory
from ridgeline.tools.judge.worker.modes import ReferenceModes
from ridgeline.tools.judge.worker.redraws import Redraws
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.judge.worker.renewal import Renewal
from ridgeline.tools.judge.worker.renewal_pace import RenewalPace
from ridgeline.tools.judge.worker.user_code import contents_may_be_refused
from ridgeline.tools.records.error_map import UNBOUNDED
from ridgeline.tools.records.precision import accepted_classes
from ridgeline.tools.records.problem import SkippedTrial
from ridgeline.tools.records.results import Trial
from ridgeline.tools.records.trial_names import NOMINAL
from ridgeline.tools.records.vocabulary import Label, Role

_SPARE_SHARE = 8
"""While a candidate runs PyTorch keeps up to memory / _SPARE_SHARE of a GPU for its next use, and a trial that is not
kept, with what limits ask to be made of one, as much at most."""


class Judge:
    """One loaded problem and the operations on it."""

    def __init__(self, request: Load, *, limit: HangLimit | None = None) -> None:
        kind, memory_bytes = request.device, request.memory_bytes
        device = self._device = device_of(kind)
        use_tf32(on=False)
        device.expect_torch()
        self.reference = Reference(request.reference_source, kind.value, limit=limit)  # torch's own name of the device
        signature = self.reference.signature
        check_room(signature, kind=kind, memory_bytes=memory_bytes)
        check_usable(self.reference)
        accepted_classes(request.tolerance, tuple(s.dtype for s in signature.with_role(Role.OUTPUT)))
        graphs = Path(request.graph_folder) if request.graph_folder else None
        described = describe(self.reference, self.reference.draw_inputs(0), request.reference_source, graphs)
        has_model = request.interface.has_model
        self._contract = self.reference.contract(is_needed=has_model)  # before `bind` replaces the first values
        randomized = self.reference.loaded_names() if has_model else None
        first_secret = bytes.fromhex(request.secret)
        self._secrets = SecretSource(self.reference, first_secret, randomized)
        self._cache_bytes = request.cache_bytes
        device.give_back()  # the sets are allocated beside PyTorch: they find no room in what it keeps
        self.memory = ArenaMemory(signature, device=device, cache_bytes=self._cache_bytes, memory_bytes=memory_bytes)
        self.reference.bind(self.memory.parameters)
        self._spare_bytes = memory_bytes // _SPARE_SHARE
        sizes = {"taken_bytes": self.memory.taken_bytes, "set_bytes": self.memory.set_bytes}
        aside_bytes = device.aside_bytes(memory_bytes, **sizes)
        self._book = CaseBook(
            self.reference,
            self._secrets,
            self.memory,
            budget_bytes=device.kept_bytes(memory_bytes, **sizes),
            held_bytes=self._spare_bytes,
            aside_bytes=aside_bytes,
        )
        self._domain = Domain(
            self._book,
            self.reference,
            self._secrets,
            self.memory,
            fatal_attempts=frozenset(request.fatal_attempts),
            varies_scalars=not has_model,
            has_candidates=request.has_candidates,
        )
        self.reference.constant_results.refuse_varying()  # in a trial, where two usual draws told nothing
        self._examiner = Examiner(self._book, self._domain.names, self.memory, self.reference, request.tolerance)
        self._modes = ReferenceModes(self.reference, self.memory)
        kinds = find_timed_kinds(self._domain.names, self._book, self.reference, self._secrets, self.memory)
        self._renewal = Renewal(self._book, self._secrets, self.memory, kinds=kinds, poison=self._examiner.poison_timed)
        self._redraws = Redraws(
            first_secret,
            self._secrets,
            self._book,
            objection=self._domain.objection,
            before=self._renewal.forget,  # what it filled sets with may draw when it is asked
            has_room=aside_bytes > 0,
        )
        device.give_back()
        self._has_had_runners = False
        self._pace = self._pace_alone(is_needed=device.works_while_stopped and request.has_candidates)
        effects = self._find_effects() if request.has_candidates else FoundEffects()
        device.give_back()  # what asks for a block's cost is a runner too
        self.description = dataclasses.replace(
            described,
            module=self._contract if has_model else None,
            skipped_trials=self._skipped_trials(effects),
            whole_numbers=self._domain.whole_numbers,
            weights_show=effects.weights_show,
        )

    def _find_effects(self) -> FoundEffects:
        """Return what shows in the outputs; nothing is asked where a trivial output passes."""
        if self._examiner.degenerate is not None:
            return FoundEffects()
        effects = Effects(self._book, self._secrets, self.reference, self._examiner)
        return effects.find(self._domain.names, self._domain.name_of, self._domain.scalar_names)

    def _skipped_trials(self, effects: FoundEffects) -> tuple[SkippedTrial, ...]:
        """Return what no candidate of this problem meets: trials, other values of arguments, effects of arguments."""
        found: dict[Label, Mapping[str, str]] = {
            Label.TRIAL_SKIPPED: self._domain.skipped,
            Label.NOT_VARIED: self._domain.not_varied,
            Label.ONLY_AS_DRAWN: self._domain.only_as_drawn,
            Label.PARAMETER_WITHOUT_EFFECT: effects.without,
            Label.CONSTANT_OUTPUT: effects.constant_outputs,
        }
        return as_skipped(self._renewal.kinds.refused) + tuple(
            SkippedTrial(name=name if label is Label.TRIAL_SKIPPED else f"{label} {name}", reason=why, label=label)
            for label, named in found.items()
            for name, why in named.items()
        )

    def loaded(self) -> Loaded:
        """Return what the parent needs to know of the problem."""
        regions = self.memory.regions
        return Loaded(
            description=self.description,
            n_sets=self.memory.n_sets,
            regions=tuple(RegionForm(size_bytes=r.size_bytes, writable=r.writable_by_runner) for r in regions),
            places=self.memory.places,
            trials=self._domain.names,
            scalars={name: tuple(map(float, values)) for name, values in self._book.changes.scalars.items()},
            degenerate=self._examiner.degenerate,
            reference_module=self._contract,
            timed_kinds=self._renewal.kinds.names,
            shared_outputs=self.reference.shared_outputs,
        )

    # ------------------------------------------------------------------------------------------------------ operations

    def prepare(self, request: Prepare) -> Done:
        """Put a trial into a set and poison its outputs."""
        self._renewal.forget()  # a trial does not use what a timing left
        if self._device.frees_for_runner:
            self._modes.forget_results()
        self._redraws.meet(request.trial, settles=request.is_examined)
        self._examiner.prepare(request.trial, request.set_index, nan=request.nan, is_examined=request.is_examined)
        self._device.give_back(beyond_bytes=self._spare_bytes)  # the runner has the GPU next
        self._device.settle()  # and may get there before the writes that were only asked for
        return Done()

    def redraw(self, request: Redraw) -> Done:
        """Draw trials and timed sets from another secret."""
        self._redraws.draw_from(bytes.fromhex(request.secret))
        return Done()

    def wipe(self, _request: Wipe) -> Done:
        """Overwrite all that earlier runners could write, so that the next one finds nothing there."""
        if self._has_had_runners:
            self.memory.wipe()
            self._device.settle()
        self._has_had_runners = True
        self._device.give_back(beyond_bytes=self._spare_bytes)  # the runner needs room to begin
        return Done()

    def poison(self, request: Poison) -> Done:
        """Poison one set's outputs."""
        self._examiner.poison(request.set_index, nan=request.nan)
        self._device.settle()  # the runner has the GPU next
        return Done()

    def examine(self, request: Examine) -> Touched | Beyond | Missing | Graded:
        """Grade a first run."""
        return self._examiner.examine(request.trial, request.set_index)

    def examine_repeat(self, request: ExamineRepeat) -> Beyond | Missing | Same | Different:
        """Grade a second run on the same inputs."""
        return self._examiner.examine_repeat(request.trial, request.set_index)

    def detect_change(self, request: DetectChange) -> Changed:
        """Compare a set's outputs with those that were examined."""
        return Changed(changed=self._examiner.changed(request.set_index))

    def renew(self, request: Renew) -> Renewed:
        """Give every set new inputs and poisoned outputs, and change parameters wholly or in one place.

        A GPU that did other work meanwhile has a large slowdown; a CPU has 0.
        """
        seconds = self._renew(request.order, request.wanted, request.calls)
        return Renewed(
            slowdown=self._pace.slowdown_of(seconds),
            trial_sets=tuple(self._renewal.trial_sets),
            kinds=tuple(self._renewal.trial_sets.values()),
            parameter_kind=self._renewal.parameter_kind,
        )

    def time_renewals(self, _request: TimeRenewals) -> PaceAlone:
        """Compare what a renewal takes on a GPU that nobody else uses with what it took when the problem was loaded."""
        return PaceAlone(slowdown=self._pace_alone(is_needed=True).slowdown_since(self._pace))

    def _pace_alone(self, *, is_needed: bool) -> RenewalPace:
        pace = RenewalPace(self._renew, n_sets=self.memory.n_sets, is_needed=is_needed)
        self._renewal.forget()
        self._device.give_back()
        return pace

    def _renew(self, order: Sequence[int] = (), wanted: Sequence[str] = (), calls: int = 0) -> float:
        """Write new contents and return how many seconds that took."""
        self._renewal.filling = None  # frees the last draws before there are new ones
        self._redraws.resume()
        self._book.let_go()
        self._device.reset_persisting_lines()
        watch = self._device.stopwatch()
        watch.start()
        self._write_new_contents(order or range(self.memory.n_sets), wanted, calls)
        return watch.seconds()

    def _write_new_contents(self, order: Sequence[int], wanted: Sequence[str], calls: int) -> None:
        if trial := self._renewal.kinds.trial_named(wanted):
            self._redraws.draw_unmet(trial)
            self._renewal.write_trial(self._book.case(trial), order, calls)
            self._device.give_back(beyond_bytes=self._spare_bytes)  # the runner has the GPU next
        else:
            self._renewal.write(order, wanted, calls)
        if stay_in_cache(self.memory.n_sets, self.memory.set_bytes, cache_bytes=self._cache_bytes):
            self._device.evict_cache(self._cache_bytes)
        if self._device.seals_inputs:
            self._renewal.filling = None  # nobody will ask whether inputs are intact

    def leave_out(self, _request: LeaveOut) -> LeftOut:
        """Leave out of timed sets what the reference refuses of their contents of now."""
        if refused := self._refused_now():
            self._renewal.leave_out(refused)
        return LeftOut(left_out=as_skipped(refused), timed_kinds=self._renewal.kinds.names)

    def _refused_now(self) -> dict[str, str]:
        found = self._renewal
        with self._book.scalars_of(found.trial):
            return refused_kinds(found.trial_sets, found.whole_kind, self.reference, self.memory)

    def check(self, request: Check) -> Trial:
        """Grade a set after a timed loop."""
        with contents_may_be_refused(lambda: bool(self._refused_now())):
            if self._renewal.trial and request.set_index in self._renewal.trial_sets:
                return self._examiner.check_trial(self._renewal.trial, request.set_index)
            return self._examiner.check(request.set_index)

    def find_unasked(self, request: FindUnasked) -> Unasked:
        """Look for an output that somebody wrote since the last renewal."""
        return Unasked(written=tuple(each for each in request.sets if not self._examiner.is_unwritten(each)))

    def verify_inputs(self, request: VerifyInputs) -> Intact:
        """Compare a set's inputs with what they were given: a GPU's runner could open them for writing."""
        index, filling = request.set_index, self._renewal.filling
        return Intact(intact=filling is None or is_intact(filling, index, self.memory.inputs[index]))

    def draw_next(self, _request: DrawNext) -> Done:
        """Draw the parameters of the next change beforehand."""
        self._renewal.draw_next()
        return Done()

    def supersede(self, request: Supersede) -> Done:
        """Change contents while a candidate works."""
        self._renewal.supersede(request.set_index, request.like)
        return Done()

    def copy(self, request: Copy) -> Done:
        """Copy a set's outputs out and back: the parent measures a collection by it."""
        self._device.copy_out_and_back(self.memory.outputs[request.set_index])
        return Done()

    def make_room(self, _request: MakeRoom) -> Done:
        """Give back all that can be made again: memory ran out, and what a candidate takes of it cannot be known before."""
        self._book.free()
        self._modes.forget_results()
        gc.collect()
        self._device.give_back()
        return Done()

    def idle(self, _request: Idle) -> Idled:
        """Time next to nothing on the device: long when another process has work there."""
        return Idled(seconds=self._device.time_nothing())

    def prepare_mode(self, request: PrepareMode) -> ModeReady:
        """Compile the reference in a mode, and grade the mode's first output."""
        case = self._book.case(NOMINAL[0])
        self._renewal.forget()
        self._book.place_parameters(case.parameters)
        grade = self._examiner.grade_reference(self._modes.prepare(request.mode, case.inputs))
        return ModeReady(rel_error=min(grade.errors.overall, UNBOUNDED), measured=grade.measured)

    def loop(self, request: Loop) -> Looped:
        """Time the reference over rotating sets."""
        with contents_may_be_refused(lambda: bool(self._refused_now())):
            return Looped(own_s=self._modes.loop(request.mode, request.sets, is_empty=request.is_empty))
