"""Exceptions for faults of the machine or the user. A candidate's failure is a Finding, never one of these.

RidgelineError
├── InputError              the user's to mend: exit code 2; one line, no traceback
│   ├── SearchCut           what ended a search in its middle, on the command line: exit code 69
│   ├── ProblemError        problem.yaml or its reference
│   │   └── BadReferenceError  reference.py cannot be judged; the message begins with its name
│   │       ├── NoRoomError    memory ran out while the reference was judged
│   │       └── ContentsRefusedError  it raises for contents that were made from its inputs
│   ├── ModelError          an unknown model, a missing key, a provider that refuses
│   │   └── UncoveredError  the offline model composes nothing for this problem; it may for others
│   ├── DeviceError         no such device, no compiler, a busy GPU
│   ├── SandboxError        no tier of isolation is available here
│   └── RunError            a run folder that is locked, damaged, or of another graph version
│       ├── NotRecorded     a replay is asked for what its recording does not hold
│       └── StorageError    a read-only or full disk, a damaged database
│           └── FileLost    a database that was removed or moved away while it was in use
├── NotBegun                a stop was asked for while it waited: not a failure, a search goes on there when it is resumed
├── DeviceAway              the search's device is on another machine: what needs it waits until the search is resumed there
├── OutOfBudget             what the search may use allows no further model call: it ends there, and can be resumed
└── EngineError             ours or the machine's: a judge that died, a protocol broken; exit code 1
    ├── TrustedProcessLost        the trusted process went away; worth one retry
    │   ├── EvaluatorKilled    it was killed from outside; nothing to report
    │   └── JudgeDied          its process ended while it was asked, by a crash
    │       └── JudgeKilled    it was killed from outside; nothing to report
    ├── JudgeShortError     memory ran out in the judge, beside what a candidate may hold
    ├── RunnerNotReadyError a runner failed before its candidate was loaded; worth one retry with more room
    ├── DeviceLostError     the reference lost the judge its GPU (a device-side assert); a new judge leaves that out
    └── MachineBusyError    other programs let nothing be measured; nothing to report, the message says what to do
"""

from typing import Any, Self


class RidgelineError(Exception):
    """Base of every error that Ridgeline raises on purpose.

    `was_killed` says that a program which did the work was killed from outside, or crashed: another try may end well.
    """

    was_killed = False

    def __init__(self, *said: object, was_killed: bool = False) -> None:
        super().__init__(*said)
        if was_killed:
            self.was_killed = True


class InputError(RidgelineError):
    """Something the user can mend; the message names the object and the next step."""


class SearchCut(InputError):
    """A provider or a disk ended a search in its middle, as its cause says: no word of the user's was wrong."""


class ProblemError(InputError):
    """The problem file or its reference cannot be used."""


REFERENCE = "reference.py"
"""The judge's name of a reference: it knows the text alone, and not the file that a user has it in."""
_NAMED = f"{REFERENCE}: "


class BadReferenceError(ProblemError):
    """The reference cannot be judged. The message begins with its name: the judge's, or the user's of the file."""

    @classmethod
    def of_text(cls, said: str, *, was_killed: bool = False) -> Self:
        """Return the error of the judge, which names the reference by REFERENCE."""
        return cls(f"{_NAMED}{said}", was_killed=was_killed)


class NoRoomError(BadReferenceError):
    """Memory ran out while a reference was judged; how much judging takes may be told beside it."""


class ContentsRefusedError(BadReferenceError):
    """The reference does not take contents that were made from its inputs for timing."""


class ModelError(InputError):
    """A model cannot be used: unknown, without a key, or refusing."""


class UncoveredError(ModelError):
    """The offline model does not cover one problem; unlike a missing key, this says nothing about other problems."""


class DeviceError(InputError):
    """The device or its compiler is missing or busy."""


class SandboxError(InputError):
    """No sandbox tier works on this machine."""


class RunError(InputError):
    """A run folder cannot be used."""


class NotRecorded(RunError):
    """A recording does not hold an answer or a measurement that its replay needs."""


class StorageError(RunError):
    """A database or a disk refuses."""


class FileLost(StorageError):
    """A database was removed or moved away while it was in use."""


class NotBegun(RidgelineError):
    """A stop was asked for while this waited for its turn, or before what it does is kept: a resumed search does it."""


class DeviceAway(RidgelineError):
    """The search's device is on another machine; the message is its name. What needs it waits there, and has not begun."""


class OutOfBudget(RidgelineError):
    """The budget does not allow a model call, or no longer; the message says which limit it is."""


class EngineError(RidgelineError):
    """The engine failed in a way that no candidate should be able to cause."""


class TrustedProcessLost(EngineError):
    """A process that no candidate can reach died or hung: the judge, the evaluator or the reference's own runner."""


class EvaluatorKilled(TrustedProcessLost):
    """A device's evaluator was killed from outside; nothing to report. It is started anew by whoever asks again."""

    was_killed = True


class JudgeDied(TrustedProcessLost):
    """The judge's process ended while it was asked. It neither hung nor said why."""

    was_killed = True


class JudgeKilled(JudgeDied):
    """The judge's process was killed from outside; nothing to report. The next one asks it again."""


class JudgeShortError(EngineError):
    """Memory ran out while the judge answered, and once more without what it keeps: a candidate may hold it.

    `request` is what it was asked, for whoever asks again when the candidate is gone. No other process is told of it.
    """

    def __init__(self, message: str, request: Any = None, *, was_killed: bool = False) -> None:
        super().__init__(message, was_killed=was_killed)
        self.request = request


class RunnerNotReadyError(EngineError):
    """A runner failed before its candidate was loaded, as where a GPU has no room left for another process."""


class DeviceLostError(EngineError):
    """The reference's kernels failed on the GPU, which its process can use no more.

    `tried` names what the reference was given; the next judge leaves that out.
    """

    def __init__(self, tried: str, *, was_killed: bool = False) -> None:
        super().__init__(tried, was_killed=was_killed)
        self.tried = tried


class MachineBusyError(EngineError):
    """Other programs kept cores from what was to be measured; the message says what to do, and there is nothing to report."""


def without_name(error: BaseException) -> str:
    """Return an error's message without the judge's name of the reference in front."""
    return str(error).removeprefix(_NAMED)


def one_line(error: BaseException) -> str:
    """Return an error's message without its line breaks."""
    return " ".join(str(error).split())
