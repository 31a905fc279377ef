"""What a way to cheat is: its group, its forms, and how the judge must end each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from ridgeline.tools.records.results import StepResult
from ridgeline.tools.records.vocabulary import Label, ReasonCode, Status

R, S = ReasonCode, Status


class Form(StrEnum):
    """The form in which a trick is tried."""

    C = "c"
    CUDA = "c on CUDA"
    TORCH = "torch"
    MODULE = "module"


class Stage(StrEnum):
    """How far a candidate is taken before it must have ended."""

    BUILD = "build"
    VERIFY = "verification"
    TIME = "timing"
    CERTIFY = "certification"


class Group(StrEnum):
    """What a trick tampers with."""

    CONTROL = "Honest controls, and ordinary mistakes"
    TIMING = "Timing"
    REPLAY = "Replay"
    WRONG = "Wrong but passing"
    TAMPERING = "Tampering"
    NO_KERNEL = "Not a kernel"
    MACHINE = "Attacks on the machine"
    FURTHER = "Aimed at this judge"
    ROUNDS = "Rounds, steps and terms left out"


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How the judge must end a case: by any of the codes, each of which has its own status."""

    codes: tuple[R, ...] = (R.NONE,)
    stage: Stage = Stage.VERIFY
    control: str = ""  # timed: it must not be faster than this one
    gap: str = ""  # accepted today: what it gains
    label: Label | None = None  # that its result must have

    def __post_init__(self) -> None:
        """Refuse an end that nothing has, and a code that is named twice."""
        assert self.codes and len(set(self.codes)) == len(self.codes), self.codes
        assert self.is_ok or R.NONE not in self.codes, self.codes

    @property
    def is_ok(self) -> bool:
        """Return whether the candidate must pass."""
        return self.codes == (R.NONE,)

    def words(self) -> str:
        """Return the end as a table's cell: its codes beside the status of each."""
        if self.gap:
            return f"**accepted**: {self.gap}"
        if self.label:
            return f"labelled `{self.label}`"
        if self.control:
            return "no gain" if self.control != "itself" else "timed"
        if self.is_ok:
            return "no effect"
        codes_of: dict[S, list[str]] = {}
        for code in self.codes:
            codes_of.setdefault(code.status, []).append(f"`{code}`")
        return ", or ".join(f"`{status}`: " + " or ".join(codes) for status, codes in codes_of.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One test candidate."""

    form: Form
    name: str
    end: End
    where: str = ""  # the test that tries it, when it is not one beside this table

    def is_end(self, found: StepResult) -> bool:
        """Return whether it ended as it must."""
        return found.reason_code in self.end.codes

    @property
    def is_to_gain_nothing(self) -> bool:
        """Return whether it keeps the rules of the clock, and is held against an honest one."""
        return self.end.control not in ("", "itself")


def compared(cases: Sequence[Case]) -> frozenset[str]:
    """Return the names of those that are to gain nothing, and of what they are held against."""
    return frozenset(name for case in cases if case.is_to_gain_nothing for name in (case.name, case.end.control))


@dataclass(frozen=True, slots=True, kw_only=True)
class Trick:
    """One way to cheat, in all its forms."""

    group: Group
    words: str
    caught_by: str
    cases: tuple[Case, ...]


VERIFY, TIME, BUILD, CERTIFY = Stage.VERIFY, Stage.TIME, Stage.BUILD, Stage.CERTIFY


def wrong(*codes: R, stage: Stage = VERIFY) -> End:
    return _of(S.WRONG, codes, stage)


def fails(*codes: R, stage: Stage = VERIFY) -> End:
    return _of(S.RUNTIME_ERROR, codes, stage)


def untrusted(*codes: R, stage: Stage = VERIFY) -> End:
    return _of(S.UNTRUSTED, codes, stage)


def ended(*codes: R, stage: Stage = VERIFY) -> End:
    return End(codes=codes, stage=stage)


def _of(status: S, codes: tuple[R, ...], stage: Stage) -> End:
    """Return an end by codes all of which have this status."""
    others = [str(code) for code in codes if code.status is not status]
    assert not others, f"{others} end as {status} nowhere: say ended(...)"
    return End(codes=codes, stage=stage)


def harmless(stage: Stage = VERIFY) -> End:
    return End(stage=stage)


def gainless(control: str = "honest") -> End:
    return End(stage=TIME, control=control)


def labelled(label: Label) -> End:
    return End(stage=TIME, label=label)


def accepted(gain: str, stage: Stage = VERIFY) -> End:
    return End(stage=stage, gap=gain)


def c(name: str, end: End, where: str = "") -> Case:
    return Case(form=Form.C, name=name, end=end, where=where)


def cuda(name: str, end: End, where: str = "") -> Case:
    return Case(form=Form.CUDA, name=name, end=end, where=where)


def torch(name: str, end: End, where: str = "") -> Case:
    return Case(form=Form.TORCH, name=name, end=end, where=where)


def module(name: str, end: End) -> Case:
    return Case(form=Form.MODULE, name=name, end=end)


def trick(group: Group, words: str, caught_by: str, *cases: Case) -> Trick:
    return Trick(group=group, words=words, caught_by=caught_by, cases=cases)
