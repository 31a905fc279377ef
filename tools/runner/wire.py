"""The line format of a runner's socket, imported by both Python ends: the parent and the untrusted worker.

docs/runner-protocol.md describes the protocol. The native host is its third implementation: `native/wire_words.h`
repeats the words, and a test holds the two together. Nothing is imported here but records and the standard library.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from ridgeline.tools.records.module_contract import ModuleSetup
from ridgeline.tools.records.vocabulary import DeviceKind, ReasonCode, Role

VERSION = 3
SOCKET = 3
"""The socket's descriptor in the runner."""
TICKETS = SOCKET + 1
"""The descriptor of the pipe from which a loop takes its tickets: see records/tickets.py."""
FIRST_REGION = TICKETS + 1
"""The descriptor of the judge's first region; the others follow it."""
NOTE_BYTES = 8
"""The address of one output, as a Python runner on a CPU notes it: see left_outputs.py."""
LONGEST_LINE_BYTES = 4096  # that a runner may send
TRITON_KERNELS = "triton.zip"
"""The file beside a candidate's library that holds its Triton kernels, when they were compiled ahead."""
_MOST_DIGITS = 19  # of an int64


class SetupWord(StrEnum):
    """The first word of a set-up line, in the order in which the lines are sent; scalars stand among the pointers."""

    SETUP = "setup"
    LIBRARY = "library"
    DEVICE = "device"
    WATCHER = "watcher"
    UNSEEN_WEIGHTS = "unseen_weights"
    SHARED = "shared"
    MODULE = "module"
    NOTHING = "nothing"
    SETS = "sets"
    REGION = "region"
    POINTER = "pointer"
    SCALAR = "scalar"
    WORKSPACE = "workspace"
    END = "end"


class Access(StrEnum):
    """Access with which a region is mapped."""

    READ_ONLY = "ro"
    READ_WRITE = "rw"


class RequestWord(StrEnum):
    """Requests of the parent."""

    RUN = "run"
    LOOP = "loop"
    LOOP_EMPTY = "loop_empty"
    COLLECT = "collect"
    SCALARS = "scalars"
    CAPTURE = "capture"
    REPLAY = "replay"
    QUIT = "quit"


class AnswerWord(StrEnum):
    """Answers of a runner."""

    IMPORTED = "imported"
    MAPPED = "mapped"
    READY = "ready"
    DONE = "done"
    FAILED = "failed"


class FaultWord(StrEnum):
    """Access of a fatal signal's instruction."""

    READ = "read"
    WRITE = "write"


class RunnerFailureCode(StrEnum):
    """The code of a `failed` line; each maps to one reason of a verdict."""

    reason_code: ReasonCode

    def __new__(cls, value: str, reason_code: ReasonCode) -> Self:
        """Make a member whose value is the code's word on the wire."""
        code = str.__new__(cls, value)
        code._value_ = value
        code.reason_code = reason_code
        return code

    LOAD_FAILED = "load_failed", ReasonCode.LOAD_FAILED
    CRASHED = "crashed", ReasonCode.CRASHED
    INPUT_WRITTEN = "input_written", ReasonCode.INPUT_WRITTEN
    CUDA_ERROR = "cuda_error", ReasonCode.CUDA_ERROR
    DEVICE = "device", ReasonCode.CUDA_ERROR
    OUT_OF_MEMORY = "out_of_memory", ReasonCode.OUT_OF_MEMORY
    PROTOCOL = "protocol", ReasonCode.PROTOCOL_VIOLATED
    NOT_A_TENSOR = "not_a_tensor", ReasonCode.NOT_A_TENSOR
    SHAPE_MISMATCH = "shape_mismatch", ReasonCode.SHAPE_MISMATCH
    DTYPE_MISMATCH = "dtype_mismatch", ReasonCode.DTYPE_MISMATCH
    OUTPUT_ALIASES_INPUT = "output_aliases_input", ReasonCode.OUTPUT_ALIASES_INPUT
    STALE_OUTPUT = "stale_output", ReasonCode.STALE_OUTPUT
    STATE_CHANGED = "state_changed", ReasonCode.STATE_CHANGED
    WEIGHTS_IGNORED = "weights_ignored", ReasonCode.WEIGHTS_IGNORED
    WEIGHTS_MISMATCH = "weights_mismatch", ReasonCode.WEIGHTS_MISMATCH


# -------------------------------------------------------------------------------------------------------------- set-up


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionLine:
    """One region of the judge's memory; regions are numbered in the order of their lines."""

    descriptor: int
    size_bytes: int
    writable: bool

    def line(self) -> str:
        """Return the line of this region."""
        access = Access.READ_WRITE if self.writable else Access.READ_ONLY
        return f"{SetupWord.REGION} {self.descriptor} {self.size_bytes} {access}"

    @classmethod
    def parse(cls, rest: str) -> Self:
        """Return the region of a line without its first word."""
        descriptor, size_bytes, access = rest.split()
        return cls(descriptor=int(descriptor), size_bytes=int(size_bytes), writable=Access(access) is Access.READ_WRITE)


@dataclass(frozen=True, slots=True, kw_only=True)
class PointerLine:
    """One tensor of the signature: set `i` lies at `offset + i * set_stride` bytes of its region."""

    role: Role
    region: int
    offset: int
    set_stride: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in elements

    def line(self) -> str:
        """Return the line of this tensor."""
        place = (self.role.value, self.region, self.offset, self.set_stride, self.dtype, len(self.shape))
        return " ".join(str(word) for word in (SetupWord.POINTER, *place, *self.shape, *self.strides))

    @classmethod
    def parse(cls, rest: str) -> Self:
        """Return the tensor of a line without its first word."""
        role, region, offset, set_stride, dtype, ndim, *sizes = rest.split()
        numbers = tuple(int(size) for size in sizes)
        return cls(
            role=Role(role),
            region=int(region),
            offset=int(offset),
            set_stride=int(set_stride),
            dtype=dtype,
            shape=numbers[: int(ndim)],
            strides=numbers[int(ndim) :],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarLine:
    """One scalar of the signature, written as Python writes a float."""

    dtype: str
    value: float

    def line(self) -> str:
        """Return the line of this scalar."""
        return f"{SetupWord.SCALAR} {self.dtype} {self.value!r}"

    @classmethod
    def parse(cls, rest: str) -> Self:
        """Return the scalar of a line without its first word."""
        dtype, value = rest.split()
        return cls(dtype=dtype, value=float(value))


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonSetup:
    """Set-up of a Python runner beyond that of a native host."""

    device: DeviceKind
    watcher: str  # path of the library that tells where a fault was
    module: ModuleSetup | None = None  # interface module alone
    does_nothing: bool = False  # no candidate is loaded and a call does nothing: see measure/request_cost.py
    weights_show: bool = True  # a call with other weights has to give another result
    shared_outputs: tuple[tuple[int, int], ...] = ()  # pairs that may share memory, as the reference's do

    def lines(self) -> list[str]:
        """Return the lines of this part."""
        said = {SetupWord.UNSEEN_WEIGHTS: not self.weights_show, SetupWord.NOTHING: self.does_nothing}
        words = [str(word) for word, is_so in said.items() if is_so]
        words += [f"{SetupWord.SHARED} {' '.join(f'{i} {j}' for i, j in self.shared_outputs)}"] * bool(
            self.shared_outputs
        )
        lines = [f"{SetupWord.DEVICE} {self.device.value}", f"{SetupWord.WATCHER} {self.watcher}", *words]
        return lines if self.module is None else [*lines, f"{SetupWord.MODULE} {json.dumps(self.module.to_json())}"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """Everything that a runner is told before it loads its candidate."""

    library: str
    n_sets: int
    regions: tuple[RegionLine, ...]
    arguments: tuple[PointerLine | ScalarLine, ...]  # in the order of the signature
    workspace_bytes: int
    python: PythonSetup | None = None

    def text(self) -> str:
        """Return the set-up as it is sent."""
        return "".join(f"{line}\n" for line in self.lines())

    def lines(self) -> list[str]:
        """Return the lines of the set-up."""
        return [
            f"{SetupWord.SETUP} {VERSION}",
            f"{SetupWord.LIBRARY} {self.library}",
            *(self.python.lines() if self.python else ()),
            f"{SetupWord.SETS} {self.n_sets}",
            *(part.line() for part in (*self.regions, *self.arguments)),
            f"{SetupWord.WORKSPACE} {self.workspace_bytes}",
            str(SetupWord.END),
        ]

    @classmethod
    def parse(cls, lines: Iterable[str]) -> Self:
        """Return the set-up of the lines up to `end`.

        Raises:
            ValueError: a line cannot be read, or `end` is missing.
            KeyError: a line is missing.
        """
        regions: list[RegionLine] = []
        arguments: list[PointerLine | ScalarLine] = []
        single: dict[str, str] = {}
        for line in lines:
            word, _, rest = line.partition(" ")
            if word == SetupWord.END:
                break
            if word == SetupWord.REGION:
                regions.append(RegionLine.parse(rest))
            elif word == SetupWord.POINTER:
                arguments.append(PointerLine.parse(rest))
            elif word == SetupWord.SCALAR:
                arguments.append(ScalarLine.parse(rest))
            else:
                single[SetupWord(word)] = rest
        else:
            raise ValueError("the set-up has no end")
        return cls(
            library=single[SetupWord.LIBRARY],
            python=_python_setup(single),
            n_sets=int(single[SetupWord.SETS]),
            regions=tuple(regions),
            arguments=tuple(arguments),
            workspace_bytes=int(single[SetupWord.WORKSPACE]),
        )


def _python_setup(single: Mapping[str, str]) -> PythonSetup | None:
    if SetupWord.DEVICE not in single:
        return None
    module = single.get(SetupWord.MODULE)
    shared = [int(place) for place in single.get(SetupWord.SHARED, "").split()]
    return PythonSetup(
        device=DeviceKind(single[SetupWord.DEVICE]),
        watcher=single[SetupWord.WATCHER],
        module=None if module is None else ModuleSetup.from_json(json.loads(module)),
        does_nothing=SetupWord.NOTHING in single,
        weights_show=SetupWord.UNSEEN_WEIGHTS not in single,
        shared_outputs=tuple(zip(shared[::2], shared[1::2], strict=True)),
    )


# ------------------------------------------------------------------------------------------------ requests and answers


def request_line(word: RequestWord, nonce: str, *numbers: float) -> str:
    """Return a request with its line end; numbers are written as Python writes them."""
    return " ".join((word, nonce, *(str(number) for number in numbers))) + "\n"


def mapped_line(notes: int | None) -> str:
    """Return what a runner says when it has the judge's memory, and where it will note its outputs' addresses."""
    return AnswerWord.MAPPED if notes is None else f"{AnswerWord.MAPPED} {notes}"


def ready_line(workspace_bytes: int, threads: int) -> str:
    """Return what a runner says when its candidate is loaded, without a line end."""
    return f"{AnswerWord.READY} {workspace_bytes} {threads}"


def done_line(nonce: str, elapsed_ns: int) -> str:
    """Return the answer to a request, without a line end."""
    return f"{AnswerWord.DONE} {nonce} {elapsed_ns}"


def failed_line(code: RunnerFailureCode, message: str) -> str:
    """Return what a runner says before it ends, without a line end."""
    return f"{AnswerWord.FAILED} {code} {message}"


def done_ns(words: Sequence[str], nonce: str) -> int | None:
    """Return the nanoseconds of an answer to the request with this nonce, None for any other line."""
    if list(words[:2]) != [AnswerWord.DONE, nonce] or len(words) != 3 or not is_number(words[2]):
        return None
    return int(words[2])


def is_number(word: str) -> bool:
    """Say whether a word from a runner is a whole number of nanoseconds, bytes or the like that fits an int64."""
    return word.isascii() and word.isdigit() and len(word) <= _MOST_DIGITS
