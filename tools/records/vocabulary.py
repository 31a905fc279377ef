"""The words that records and contracts use: every enumeration whose values leave the process."""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class Sanitizers(StrEnum):
    """The tools that examine a certificate's winner for memory errors, as the certificate names them."""

    COMPILED = "address,undefined"  # AddressSanitizer and UndefinedBehaviorSanitizer, in a second build
    TOOL = "compute-sanitizer"  # over the winner's own build


class DeviceKind(StrEnum):
    """The kind of device that a candidate runs on; also the name of a problem's target."""

    language: str  # of a native source, as a file's name ends: "cpp" or "cu"
    sanitizers: Sanitizers

    def __new__(cls, value: str, *facts: str) -> Self:
        """Make a member whose value is the target's name; a member without its two facts is an error at import."""
        kind = str.__new__(cls, value)
        kind._value_ = value
        kind.language, tools = facts
        kind.sanitizers = Sanitizers(tools)
        return kind

    CPU = "cpu", "cpp", Sanitizers.COMPILED
    CUDA = "cuda", "cu", Sanitizers.TOOL


class Interface(StrEnum):
    """The form a candidate's source takes."""

    C = "c"
    TORCH = "torch"
    MODULE = "module"

    def language(self, kind: DeviceKind) -> str:
        """Return the language of a source for this kind of device: "cpp", "cu" or "py"."""
        return "py" if self.has_model else kind.language

    @property
    def runs_in_python(self) -> bool:
        """Return whether a candidate runs beside torch in a Python runner; else it runs in the native host."""
        return self is not Interface.C

    @property
    def has_model(self) -> bool:
        """Return whether a candidate is a file with `ModelNew`, made and given weights as the reference's model is.

        Its build is what the file builds and not a library of its own.
        """
        return self is Interface.MODULE


class Role(StrEnum):
    """The part that an argument of `run` has in the reference."""

    INPUT = "input"
    PARAMETER = "parameter"
    BUFFER = "buffer"
    OUTPUT = "output"


class ArgKind(StrEnum):
    """The way an argument is passed: tensors by pointer, scalars by value, `None` not at all."""

    TENSOR = "tensor"
    SCALAR = "scalar"
    NONE = "none"


class Status(StrEnum):
    """The end of one candidate's evaluation."""

    OK = "ok"
    COMPILE_ERROR = "compile_error"
    RUNTIME_ERROR = "runtime_error"
    WRONG = "wrong"
    TIMEOUT = "timeout"
    REFUSED = "refused"
    DEGENERATE = "degenerate"
    UNTRUSTED = "untrusted"


class ReasonCode(StrEnum):
    """The reason why an evaluation is not `ok`: one code for each family of failure or cheat, each of one status."""

    status: Status

    def __new__(cls, value: str, *statuses: Status) -> Self:
        """Make a member whose value is the code's name; a member without its one status is an error at import."""
        code = str.__new__(cls, value)
        code._value_ = value
        (code.status,) = statuses
        return code

    NONE = "none", Status.OK
    COMPILER_FAILED = "compiler_failed", Status.COMPILE_ERROR
    COMPILER_TIMEOUT = "compiler_timeout", Status.COMPILE_ERROR
    LINK_FAILED = "link_failed", Status.COMPILE_ERROR
    FLAG_NOT_ALLOWED = "flag_not_allowed", Status.REFUSED
    SOURCE_REJECTED = "source_rejected", Status.REFUSED
    INTERFACE_UNSUPPORTED = "interface_unsupported", Status.REFUSED
    ENGINE_FAILED = "engine_failed", Status.REFUSED  # the judge's own fault: says nothing of the kernel
    MODEL_FAILED = "model_failed", Status.REFUSED  # there is no kernel: its model gave no usable reply
    LOAD_FAILED = "load_failed", Status.RUNTIME_ERROR
    CRASHED = "crashed", Status.RUNTIME_ERROR
    EXITED = "exited", Status.RUNTIME_ERROR
    SANDBOX_VIOLATION = "sandbox_violation", Status.RUNTIME_ERROR
    OUT_OF_MEMORY = "out_of_memory", Status.RUNTIME_ERROR
    INPUT_WRITTEN = "input_written", Status.RUNTIME_ERROR
    OUT_OF_BOUNDS = "out_of_bounds", Status.RUNTIME_ERROR
    CUDA_ERROR = "cuda_error", Status.RUNTIME_ERROR
    CALL_TIMEOUT = "call_timeout", Status.TIMEOUT
    LOAD_TIMEOUT = "load_timeout", Status.TIMEOUT
    EVALUATION_DEADLINE = "evaluation_deadline", Status.TIMEOUT
    WRONG_VALUES = "wrong_values", Status.WRONG
    OUTPUT_NOT_WRITTEN = "output_not_written", Status.WRONG
    NON_FINITE_MISMATCH = "non_finite_mismatch", Status.WRONG
    SHAPE_MISMATCH = "shape_mismatch", Status.WRONG
    DTYPE_MISMATCH = "dtype_mismatch", Status.WRONG
    NOT_A_TENSOR = "not_a_tensor", Status.WRONG
    PRECISION_TOO_LOW = "precision_too_low", Status.WRONG
    NONDETERMINISTIC = "nondeterministic", Status.WRONG
    STALE_OUTPUT = "stale_output", Status.WRONG
    OUTPUT_ALIASES_INPUT = "output_aliases_input", Status.WRONG
    STATE_CHANGED = "state_changed", Status.WRONG
    WEIGHTS_IGNORED = "weights_ignored", Status.WRONG
    WEIGHTS_MISMATCH = "weights_mismatch", Status.WRONG
    TRIVIAL_OUTPUT_PASSES = "trivial_output_passes", Status.DEGENERATE
    CONSTANT_OUTPUT = "constant_output", Status.DEGENERATE
    WITNESS_DISAGREES = "witness_disagrees", Status.UNTRUSTED
    BACKGROUND_WORK = "background_work", Status.UNTRUSTED
    NEW_THREAD = "new_thread", Status.UNTRUSTED
    WORKED_AHEAD = "worked_ahead", Status.UNTRUSTED
    PROTOCOL_VIOLATED = "protocol_violated", Status.UNTRUSTED
    TIMED_OUTPUT_WRONG = "timed_output_wrong", Status.UNTRUSTED
    BELOW_FLOOR = "below_floor", Status.UNTRUSTED
    NO_GAIN = "no_gain", Status.UNTRUSTED  # the certificate's interval does not exclude 1
    TIMINGS_SPREAD = "timings_spread", Status.UNTRUSTED  # one kernel's timings in several processes differ


class Label(StrEnum):
    """A caution on a result that counts."""

    LAUNCH_BOUND = "launch_bound"
    BUSY_MACHINE = "busy_machine"
    NONDETERMINISTIC = "nondeterministic"
    SHAPE_SPECIALISED = "shape_specialised"
    QUARANTINED = "quarantined"
    AUDITED = "audited"
    NO_SANDBOX = "no_sandbox"
    REDUCED_PRECISION = "reduced_precision"
    TRIAL_SKIPPED = "trial_skipped"
    NOT_VARIED = "not_varied"
    ONLY_AS_DRAWN = "only_as_drawn"
    PARAMETER_WITHOUT_EFFECT = "parameter_without_effect"
    CONSTANT_OUTPUT = "constant_output"
    VENDOR_LIBRARY = "vendor_library"
    NOT_SANITIZED = "not_sanitized"
    EAGER_IN_JUDGE = "eager_in_judge"


class PrecisionClass(StrEnum):
    """The arithmetic that a measured error is consistent with, strictest first."""

    EXACT = "exact"
    FP64 = "fp64"
    FP32 = "fp32"
    TF32 = "tf32"
    FP16 = "fp16"
    BF16 = "bf16"
    FP8 = "fp8"
    CRFM = "crfm"

    @property
    def is_reduced(self) -> bool:
        """Return whether the class is looser than fp32's arithmetic: a GPU's kernel of it faces eager with TF32 on.

        `crfm` is: an error has that class where it passes the 1e-2 rule and meets no class's gates.
        """
        return self not in (PrecisionClass.EXACT, PrecisionClass.FP64, PrecisionClass.FP32)


STRICTEST_FIRST = (
    PrecisionClass.FP64,
    PrecisionClass.FP32,
    PrecisionClass.TF32,
    PrecisionClass.FP16,
    PrecisionClass.BF16,
    PrecisionClass.FP8,
)
"""The classes of arithmetic, each looser than the one before it."""


class Purpose(StrEnum):
    """The purpose of an evaluation; a different purpose is a different measurement."""

    SEARCH = "search"
    TUNE = "tune"
    CERTIFY = "certify"
    EVALUATE = "evaluate"


SEARCHED = (Purpose.SEARCH, Purpose.TUNE)
"""The purposes that find a search's kernels."""


class SearchOutcome(StrEnum):
    """The end of a search: the stop rule that ended it, or that it ended without a gain."""

    FINISHED = "finished"  # every round is done
    BUDGET = "budget"
    AT_FLOOR = "at_floor"
    STALLED = "stalled"
    NO_GAIN = "no_gain"  # no kernel is certified faster than eager


class RunState(StrEnum):
    """The state of a run: its search's outcome, or that the search is not over."""

    RUNNING = "running"
    STOPPED = "stopped"
    WAITING = "waiting"  # parked: every branch waits for an answer from its mailbox
    FINISHED = SearchOutcome.FINISHED.value
    BUDGET = SearchOutcome.BUDGET.value
    AT_FLOOR = SearchOutcome.AT_FLOOR.value
    STALLED = SearchOutcome.STALLED.value
    NO_GAIN = SearchOutcome.NO_GAIN.value


class Category(StrEnum):
    """The six kinds of optimization idea of the original work."""

    MEMORY_ACCESS = "memory_access"
    LATENCY_HIDING = "asynchrony_and_latency_hiding"
    PRECISION = "data_type_and_precision"
    COMPUTE = "compute_and_instructions"
    PARALLELISM = "parallelism_and_occupancy"
    CONTROL_FLOW = "control_flow_and_loops"


class Origin(StrEnum):
    """The maker of a candidate."""

    SEED = "seed"
    BANK = "bank"
    MODEL = "model"
    TUNE = "tune"
    FILE = "file"


class Mender(StrEnum):
    """The maker of a kernel out of one that did not build; no model was asked."""

    FIX_ITS = "fix_its"  # the compiler's own
    SIBLING = "sibling"  # the edit that repaired the same error in another branch of the round


LANGUAGES = tuple(dict.fromkeys(interface.language(kind) for interface in Interface for kind in DeviceKind))
"""The languages of a candidate's source: "cpp", "cu", "py"."""

TORCH_MODULE = "ridgeline_candidate"
"""The Python name of a torch extension, which its build defines and its runner imports."""


class IdeaOutcome(StrEnum):
    """The outcome of an idea, as far as its search can tell."""

    IMPROVED = "improved"  # an implementation was faster than its parent
    REFUTED = "refuted"  # implementations were right, and none was faster
    UNDECIDED = "undecided"  # the same, but intervals leave room for a gain, or a user's idea led to a known kernel
    IMPLEMENTATION_FAILED = "implementation failed"  # none was right: another try may be
