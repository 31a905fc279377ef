"""The words that records and contracts use: every enumeration whose values leave the process."""

from __future__ import annotations

from enum import StrEnum


class DeviceKind(StrEnum):
    """Where a candidate runs; also the name of a problem's target."""

    CPU = "cpu"
    CUDA = "cuda"


class Interface(StrEnum):
    """The form a candidate's source takes."""

    C = "c"
    TORCH = "torch"
    MODULE = "module"


class Role(StrEnum):
    """What an argument of `run` is to the reference."""

    INPUT = "input"
    PARAMETER = "parameter"
    BUFFER = "buffer"
    OUTPUT = "output"


class ArgKind(StrEnum):
    """How an argument is passed: tensors by pointer, scalars by value, `None` not at all."""

    TENSOR = "tensor"
    SCALAR = "scalar"
    NONE = "none"


class Status(StrEnum):
    """How the judge's evaluation of one candidate ended."""

    OK = "ok"
    COMPILE_ERROR = "compile_error"
    RUNTIME_ERROR = "runtime_error"
    WRONG = "wrong"
    TIMEOUT = "timeout"
    REFUSED = "refused"
    DEGENERATE = "degenerate"
    UNTRUSTED = "untrusted"


class ReasonCode(StrEnum):
    """Why an evaluation is not `ok`: one code for each family of failure or cheat."""

    NONE = "none"
    # compile_error
    COMPILER_FAILED = "compiler_failed"
    COMPILER_TIMEOUT = "compiler_timeout"
    LINK_FAILED = "link_failed"
    # refused
    FLAG_NOT_ALLOWED = "flag_not_allowed"
    SOURCE_REJECTED = "source_rejected"
    INTERFACE_UNSUPPORTED = "interface_unsupported"
    ENGINE_FAILED = "engine_failed"  # the judge's own fault: says nothing of the kernel
    MODEL_FAILED = "model_failed"  # there is no kernel: its model gave no usable reply
    # runtime_error
    LOAD_FAILED = "load_failed"
    CRASHED = "crashed"
    EXITED = "exited"
    SANDBOX_VIOLATION = "sandbox_violation"
    OUT_OF_MEMORY = "out_of_memory"
    INPUT_WRITTEN = "input_written"
    CUDA_ERROR = "cuda_error"
    # timeout
    CALL_TIMEOUT = "call_timeout"
    LOAD_TIMEOUT = "load_timeout"
    # wrong
    WRONG_VALUES = "wrong_values"
    OUTPUT_NOT_WRITTEN = "output_not_written"
    NON_FINITE_MISMATCH = "non_finite_mismatch"
    SHAPE_MISMATCH = "shape_mismatch"
    DTYPE_MISMATCH = "dtype_mismatch"
    NOT_A_TENSOR = "not_a_tensor"
    PRECISION_TOO_LOW = "precision_too_low"
    NONDETERMINISTIC = "nondeterministic"
    STALE_OUTPUT = "stale_output"
    OUTPUT_ALIASES_INPUT = "output_aliases_input"
    STATE_CHANGED = "state_changed"
    WEIGHTS_IGNORED = "weights_ignored"
    WEIGHTS_MISMATCH = "weights_mismatch"
    # degenerate
    TRIVIAL_OUTPUT_PASSES = "trivial_output_passes"
    CONSTANT_OUTPUT = "constant_output"
    # untrusted
    WITNESS_DISAGREES = "witness_disagrees"
    BACKGROUND_WORK = "background_work"
    NEW_THREAD = "new_thread"
    PROTOCOL_VIOLATED = "protocol_violated"
    TIMED_OUTPUT_WRONG = "timed_output_wrong"
    BELOW_FLOOR = "below_floor"
    NO_GAIN = "no_gain"  # the certificate's interval does not exclude 1
    TIMINGS_SPREAD = "timings_spread"  # timings of one kernel in several processes differ by more than noise


class Label(StrEnum):
    """What a reader must know of a result that still counts."""

    LAUNCH_BOUND = "launch_bound"
    NONDETERMINISTIC = "nondeterministic"
    SHAPE_SPECIALISED = "shape_specialised"
    QUARANTINED = "quarantined"
    AUDITED = "audited"
    NO_SANDBOX = "no_sandbox"
    REDUCED_PRECISION = "reduced_precision"
    TRIAL_SKIPPED = "trial_skipped"
    VENDOR_LIBRARY = "vendor_library"


class PrecisionClass(StrEnum):
    """The arithmetic that a measured error is consistent with, strictest first."""

    EXACT = "exact"
    FP32 = "fp32"
    TF32 = "tf32"
    FP16 = "fp16"
    BF16 = "bf16"
    FP8 = "fp8"
    CRFM = "crfm"


STRICTEST_FIRST = (
    PrecisionClass.FP32,
    PrecisionClass.TF32,
    PrecisionClass.FP16,
    PrecisionClass.BF16,
    PrecisionClass.FP8,
)
"""The classes of arithmetic, each looser than the one before it."""


class Purpose(StrEnum):
    """For what a candidate is evaluated; a different purpose is a different measurement."""

    SEARCH = "search"
    TUNE = "tune"
    CERTIFY = "certify"
    EVALUATE = "evaluate"


class Category(StrEnum):
    """The six kinds of optimization idea of the original work."""

    MEMORY_ACCESS = "memory_access"
    LATENCY_HIDING = "asynchrony_and_latency_hiding"
    PRECISION = "data_type_and_precision"
    COMPUTE = "compute_and_instructions"
    PARALLELISM = "parallelism_and_occupancy"
    CONTROL_FLOW = "control_flow_and_loops"


class Origin(StrEnum):
    """Who made a candidate."""

    SEED = "seed"
    BANK = "bank"
    MODEL = "model"
    TUNE = "tune"
    FILE = "file"


TORCH_MODULE = "ridgeline_candidate"
"""The Python name of a torch extension, which its build defines and its runner imports."""
