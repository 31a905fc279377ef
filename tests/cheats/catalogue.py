"""Every known way to cheat, what catches it, and the test candidates that try it: one table for people and for tests.

A trick has a case for each form in which it can exist; the case names its source and how the judge must end it. Sources
lie in `sources/` (interface c on a CPU), `torch_extension.cpp` (interface torch), `modules/` (interface module) and
`../gpu/sources/` (interface c on CUDA). docs/cheats.md is this table as a page: `python tests/cheats/catalogue.py` prints
it.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from enum import StrEnum

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


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How the judge must end a case; any of the codes will do."""

    status: S
    codes: tuple[R, ...] = (R.NONE,)
    stage: Stage = Stage.VERIFY
    control: str = ""  # timed: it must not be faster than this one
    gap: str = ""  # accepted today: what it gains
    label: Label | None = None  # that its result must have

    def words(self) -> str:
        """Return the end as a table's cell."""
        if self.gap:
            return f"**accepted**: {self.gap}"
        if self.label:
            return f"labelled `{self.label}`"
        if self.control:
            return "no gain" if self.control != "itself" else "timed"
        if self.status is S.OK:
            return "no effect"
        return f"`{self.status}`: " + " or ".join(f"`{code}`" for code in self.codes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One test candidate."""

    form: Form
    name: str
    end: End
    where: str = ""  # the test that tries it, when it is not one beside this table


@dataclass(frozen=True, slots=True, kw_only=True)
class Trick:
    """One way to cheat, in all its forms."""

    group: Group
    words: str
    caught_by: str
    cases: tuple[Case, ...]


VERIFY, TIME, BUILD, CERTIFY = Stage.VERIFY, Stage.TIME, Stage.BUILD, Stage.CERTIFY


def wrong(*codes: R, stage: Stage = VERIFY) -> End:
    return End(status=S.WRONG, codes=codes, stage=stage)


def fails(*codes: R, stage: Stage = VERIFY) -> End:
    return End(status=S.RUNTIME_ERROR, codes=codes, stage=stage)


def untrusted(*codes: R, stage: Stage = VERIFY) -> End:
    return End(status=S.UNTRUSTED, codes=codes, stage=stage)


def ended(status: S, *codes: R, stage: Stage = VERIFY) -> End:
    return End(status=status, codes=codes, stage=stage)


def harmless(stage: Stage = VERIFY) -> End:
    return End(status=S.OK, stage=stage)


def gainless(control: str = "honest") -> End:
    return End(status=S.OK, stage=TIME, control=control)


def labelled(label: Label) -> End:
    return End(status=S.OK, stage=TIME, label=label)


def accepted(gain: str, stage: Stage = VERIFY) -> End:
    return End(status=S.OK, stage=stage, gap=gain)


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


G = Group
_AFFINE = "tests/gpu/test_judge_on_gpu.py"
_SANITIZERS = "tests/gpu/test_sanitizers.py"
_ATTACKS = "tests/attacks"
_SECRET = "secret inputs and parameters, new in every trial"
_NO_GAIN = "timed as what it is: what the library is faster by, nothing over eager PyTorch's own"
_UNMOVED = (R.WEIGHTS_IGNORED, R.WRONG_VALUES, R.STALE_OUTPUT)
_READ_OUTSIDE = "on a CPU outputs are read in the memory of the stopped process"
_IN_PLACE = "contents change in place, outputs are poisoned, timed outputs are looked at"

# fmt: off
CATALOGUE: tuple[Trick, ...] = (
    trick(G.CONTROL, "an honest kernel", "nothing: it must pass and be timed",
          c("honest", gainless("itself")), c("linear_honest", gainless("itself")), c("derived_honest", gainless("itself")),
          cuda("HONEST", gainless("itself")),
          torch("honest", gainless("itself")), module("honest", gainless("itself")),
          cuda("waves_honest", gainless("itself")), cuda("small_honest", gainless("itself"))),
    trick(G.CONTROL, "an honest kernel in two launches, the second begun early, that uses its workspace again",
          "nothing: it must pass and be timed", cuda("waves_in_stages", gainless("itself"))),
    trick(G.CONTROL, "an honest kernel whose launches are a CUDA graph of its own, given each call's pointers",
          "nothing: it must pass and be timed", cuda("waves_in_a_graph", gainless("itself"))),
    trick(G.CONTROL, "an honest kernel whose inputs are mostly always alike", "nothing: it must pass",
          c("given_honest", harmless())),
    trick(G.CONTROL, "an honest kernel of a branch behind a scale of 1e-6, with index and scalar", "nothing: it must pass",
          c("hidden_honest", harmless())),
    trick(G.CONTROL, "a null pointer", "the host explains the fault",
          c("crash", fails(R.CRASHED)), torch("crash", fails(R.CRASHED)), cuda("ILLEGAL", fails(R.CUDA_ERROR), _AFFINE)),
    trick(G.CONTROL, "it reads far past the end of an input", "unreadable memory around every region",
          c("overrun", fails(R.CRASHED))),

    # ------------------------------------------------------------------------------------------------------- timing
    trick(G.TIMING, "work on a side stream", "every stream is waited for; events on the given stream disagree",
          cuda("SIDE_STREAM", untrusted(R.WITNESS_DISAGREES, stage=TIME), _AFFINE)),
    trick(G.TIMING, "a background thread does the work", "the process is stopped at its answer; outputs that go on changing",
          c("background_thread", untrusted(R.BACKGROUND_WORK)),
          cuda("BACKGROUND_LAUNCH", untrusted(R.BACKGROUND_WORK)),
          torch("background_thread", wrong(R.WEIGHTS_IGNORED, R.STALE_OUTPUT, R.WRONG_VALUES)),
          module("background_thread", wrong(R.WEIGHTS_IGNORED, R.STALE_OUTPUT, R.WRONG_VALUES))),
    trick(G.TIMING, "a thread keeps a core busy between calls", "processor time while there is nothing to do",
          c("background_spin", untrusted(R.BACKGROUND_WORK))),
    trick(G.TIMING, "a thread starts when the first calls were checked", "threads are counted after every trial",
          c("late_thread", untrusted(R.NEW_THREAD))),
    trick(G.TIMING, "a lazy tensor: it is computed when it is read", "only plain tensors: no subclass, no lazy negation",
          torch("lazy_negation", wrong(R.NOT_A_TENSOR)), module("lazy_subclass", wrong(R.NOT_A_TENSOR))),
    trick(G.TIMING, "clocks or `synchronize` patched, also through an alias", "the parent's clock is the score",
          torch("patched_clock", wrong(R.STATE_CHANGED)), module("patched_clock", wrong(R.STATE_CHANGED)),
          module("patched_clock_alias", gainless())),
    trick(G.TIMING, "a hook on the host's clock or event timer", "the parent's clock is the score",
          c("slow_clock", gainless()),
          cuda("HOOKED_EVENTS", untrusted(R.WITNESS_DISAGREES, stage=TIME))),
    trick(G.TIMING, "one call does the work of many, the others return at once", "a third of the sets is never asked for",
          c("works_ahead", untrusted(R.WORKED_AHEAD, stage=TIME)), cuda("WORKS_AHEAD", gainless("HONEST"))),
    trick(G.TIMING, "one call does the work of many in private, the others copy", "blocks of a single call",
          c("works_ahead_privately", untrusted(R.WORKED_AHEAD, stage=TIME)),
          module("works_in_first_call", untrusted(R.WORKED_AHEAD, stage=TIME))),
    trick(G.TIMING, "slow in warm-up, to bend how blocks are shaped", "warm-up only sets how long blocks are",
          c("dawdles_in_warm_up", gainless())),
    trick(G.TIMING, "right in warm-up, skipping when timed", "timed outputs are looked at",
          c("hundred_calls", untrusted(R.TIMED_OUTPUT_WRONG, stage=TIME)),
          cuda("SKIPS_WHEN_TIMED", untrusted(R.TIMED_OUTPUT_WRONG, stage=TIME)),
          module("hundred_calls", ended(S.UNTRUSTED, R.TIMED_OUTPUT_WRONG, stage=TIME))),
    trick(G.TIMING, "as much work as the next one puts off, in time", "nothing: it must pass and be timed",
          module("works_slowly", harmless(stage=TIME))),
    trick(G.TIMING, "a part of a larger tensor of its own is returned", "nothing: it must pass and be timed",
          module("part_of_own_buffer", harmless(stage=TIME))),
    trick(G.TIMING, "calls put off until their output is collected", _READ_OUTSIDE,
          module("works_when_collected", untrusted(R.TIMED_OUTPUT_WRONG, stage=TIME))),
    trick(G.TIMING, "a thread of the first call finishes outputs behind the answer", _READ_OUTSIDE,
          module("finishes_after_answer", untrusted(R.TIMED_OUTPUT_WRONG, R.BACKGROUND_WORK, stage=TIME))),
    trick(G.TIMING, "outputs are mapped files that are written later", _READ_OUTSIDE,
          module("late_file", wrong(R.STALE_OUTPUT, stage=TIME))),
    trick(G.TIMING, "the last step is a mark on the tensor, once it is timed", _READ_OUTSIDE,
          module("puts_off_negation", wrong(R.STALE_OUTPUT, stage=TIME))),
    trick(G.TIMING, "outputs are said to lie where no memory is", "what cannot be read was not made",
          module("forged_notes", untrusted(R.TIMED_OUTPUT_WRONG, stage=TIME))),
    trick(G.TIMING, "a tensor on closed pages, filled by a fault handler when it is read", _READ_OUTSIDE,
          torch("fills_when_read", wrong(R.STALE_OUTPUT, stage=TIME))),
    trick(G.TIMING, "L2 lines set aside for the kernel", "the lines are reset before every block, eager's too",
          cuda("PERSISTS_LINES", gainless("HONEST"))),
    trick(G.TIMING, "a graph replayed on stale data", "another set has other addresses and contents",
          cuda("STALE_GRAPH", wrong(R.OUTPUT_NOT_WRITTEN, R.STALE_OUTPUT))),

    # ------------------------------------------------------------------------------------------------------- replay
    trick(G.REPLAY, "the freed reference output found in new memory", "results stay in the judge's own memory",
          c("finds_freed_memory", harmless()), cuda("FREED_MEMORY", harmless()),
          module("freed_memory", wrong(*_UNMOVED, R.NON_FINITE_MISMATCH))),
    trick(G.REPLAY, "a cache keyed by address, id or `_version`", _IN_PLACE,
          c("pointer_cache", wrong(R.STALE_OUTPUT)), cuda("POINTER_CACHE", wrong(R.STALE_OUTPUT), _AFFINE),
          torch("version_cache", wrong(R.STALE_OUTPUT)), module("id_cache", wrong(R.STALE_OUTPUT))),
    trick(G.REPLAY, "a cache keyed by a few elements", "trials that differ in one secret row, at the same address",
          c("fingerprint_cache", wrong(R.STALE_OUTPUT)), c("fingerprint_skip", wrong(R.STALE_OUTPUT)),
          module("fingerprint_cache", wrong(R.STALE_OUTPUT))),
    trick(G.REPLAY, "a call returns at once while its earlier output is in place", "outputs are poisoned before each block",
          c("skips_when_in_place", gainless())),
    trick(G.REPLAY, "right for the first calls only", "one more trial after 24 to 48 unexamined calls",
          c("ten_calls", wrong(R.OUTPUT_NOT_WRITTEN)), c("twenty_calls", wrong(R.WRONG_VALUES)),
          module("ten_calls", wrong(R.WRONG_VALUES, R.STALE_OUTPUT, R.NONDETERMINISTIC))),
    trick(G.REPLAY, "a view of the input is returned", "no storage is shared with inputs or parameters",
          torch("view_of_input", wrong(R.OUTPUT_ALIASES_INPUT)), module("view_of_input", wrong(R.OUTPUT_ALIASES_INPUT))),
    trick(G.REPLAY, "one static buffer for every result", "an earlier output must outlive the next call",
          c("static_buffer", wrong(R.STALE_OUTPUT)), torch("static_buffer", wrong(R.STALE_OUTPUT)),
          module("static_buffer", wrong(R.STALE_OUTPUT))),
    trick(G.REPLAY, "`forward` replaced by a constant after the first call", _SECRET,
          module("constant_forward", wrong(R.STALE_OUTPUT, R.WRONG_VALUES))),
    trick(G.REPLAY, "weights cached from another instance", "every trial has its own parameters; a call with others",
          c("weights_of_first_instance", wrong(R.WRONG_VALUES)), torch("weights_cached", wrong(R.WEIGHTS_IGNORED)),
          module("weights_cached", wrong(R.WEIGHTS_IGNORED, R.WRONG_VALUES))),

    # ------------------------------------------------------------------------------------------------- wrong but passing
    trick(G.WRONG, "constant outputs", _SECRET, c("constant_output", wrong(R.WRONG_VALUES)),
          module("constant_output", wrong(*_UNMOVED))),
    trick(G.WRONG, "values below an absolute tolerance are left out", "errors relative to the output's own spread",
          c("values_below_atol", wrong(R.PRECISION_TOO_LOW, R.WRONG_VALUES))),
    trick(G.WRONG, "the identity where the reference is nearly one", "inputs shifted and scaled, random parameters",
          c("identity", wrong(R.WRONG_VALUES)), c("ignores_affine", wrong(R.WRONG_VALUES)),
          module("identity", wrong(*_UNMOVED))),
    trick(G.WRONG, "statistics of the input distribution hard-coded", "the trials `shifted` and `row_scaled`",
          c("hard_coded_statistics", wrong(R.WRONG_VALUES))),
    trick(G.WRONG, "the last 0.5 % of each sum is skipped", "the gate of the class",
          c("skips_last_columns", wrong(R.WRONG_VALUES, R.PRECISION_TOO_LOW)), c("linear_skips_last_k", wrong(R.WRONG_VALUES))),
    trick(G.WRONG, "only the first rows are computed", "every element must replace its poison",
          c("first_rows_only", wrong(R.OUTPUT_NOT_WRITTEN)), c("skips_last_rows", wrong(R.OUTPUT_NOT_WRITTEN)),
          cuda("HALF", wrong(R.OUTPUT_NOT_WRITTEN), _AFFINE)),
    trick(G.WRONG, "precision is cut silently", "the class is measured, the problem says which it accepts",
          c("low_precision", wrong(R.PRECISION_TOO_LOW)), c("linear_rounded_weights", wrong(R.PRECISION_TOO_LOW)),
          cuda("HALF_PRECISION", wrong(R.PRECISION_TOO_LOW)), module("half_precision", wrong(R.PRECISION_TOO_LOW))),
    trick(G.WRONG, "one row, broadcast", "shapes equal, every element compared",
          c("one_row_for_all", wrong(R.WRONG_VALUES)), torch("broadcast_row", wrong(R.SHAPE_MISMATCH)),
          module("broadcast_row", wrong(R.SHAPE_MISMATCH))),
    trick(G.WRONG, "a failed launch that leaves good bytes", "outputs are poisoned before the second run too",
          cuda("FAILED_LAUNCH", wrong(R.STALE_OUTPUT, R.OUTPUT_NOT_WRITTEN))),
    trick(G.WRONG, "a race that happens to work", "each input runs twice; racecheck",
          c("noise", wrong(R.NONDETERMINISTIC, R.WRONG_VALUES, R.PRECISION_TOO_LOW)),
          cuda("race", fails(R.CRASHED, stage=CERTIFY), _SANITIZERS)),
    trick(G.WRONG, "a read past the end that happens to work", "AddressSanitizer and memcheck",
          c("test_sanitizer_names_an_overrun_that_passes_unseen", fails(R.CRASHED, stage=CERTIFY),
            "tests/tools/measure/test_verify.py"),
          cuda("out_of_bounds", fails(R.CRASHED, stage=CERTIFY), _SANITIZERS)),
    trick(G.WRONG, "a write past the end that a sanitizer's build leaves out", "the macros that tell it are undefined",
          c("test_sanitizer_build_cannot_be_told_by_its_macros", fails(R.CRASHED, stage=CERTIFY),
            "tests/tools/measure/test_verify.py")),
    trick(G.WRONG, "right for one seed only", "seeds from the system's random source, never from a flag",
          c("one_seed_only", wrong(R.WRONG_VALUES)), module("one_seed_only", wrong(*_UNMOVED))),

    # ---------------------------------------------------------------------------------------------------------- tampering
    trick(G.TAMPERING, "`torch.matmul` or the reference's globals patched", "the judge is another process; functions compared",
          torch("patched_matmul", wrong(R.STATE_CHANGED)), module("patched_matmul", wrong(R.STATE_CHANGED)),
          module("patched_reference", harmless())),
    trick(G.TAMPERING, "inputs or parameters modified", "mapped for reading only; a GPU's are compared too",
          c("input_modified", fails(R.INPUT_WRITTEN)), c("parameter_modified", fails(R.INPUT_WRITTEN)),
          cuda("WRITES_INPUT", fails(R.CUDA_ERROR), _AFFINE), cuda("OPENS_INPUTS", fails(R.INPUT_WRITTEN, R.CUDA_ERROR)),
          torch("input_modified", fails(R.INPUT_WRITTEN)), module("input_modified", fails(R.INPUT_WRITTEN))),
    trick(G.TAMPERING, "seeds reproduced", "secret seeds never leave the judge",
          module("seeds_reproduced", wrong(R.WRONG_VALUES))),
    trick(G.TAMPERING, "answers found through `gc`, frames, `/proc` or other processes", "expected outputs are elsewhere",
          c("seeks_answers", harmless()), torch("searches_gc", harmless()), module("searches_frames", harmless())),
    trick(G.TAMPERING, "a result forged on a descriptor or printed as PASS", "one nonce and one reply for each request",
          c("forged_result", untrusted(R.PROTOCOL_VIOLATED)), c("forged_ready", untrusted(R.PROTOCOL_VIOLATED)),
          c("stolen_nonce", untrusted(R.PROTOCOL_VIOLATED)), c("takes_connection", untrusted(R.BACKGROUND_WORK)),
          c("answers_early", untrusted(R.PROTOCOL_VIOLATED, R.BACKGROUND_WORK, R.TIMED_OUTPUT_WRONG, stage=TIME)),
          torch("forged_result", untrusted(R.PROTOCOL_VIOLATED)), module("forged_result", untrusted(R.PROTOCOL_VIOLATED))),
    trick(G.TAMPERING, "the requests read in the host's memory", "which outputs are checked is decided afterwards",
          c("reads_the_request", gainless())),
    trick(G.TAMPERING, "`_exit(0)` from a static constructor or a call", "success is what the judge finds, not a status",
          c("exit_in_constructor", fails(R.EXITED)), c("exit_in_call", fails(R.EXITED)),
          cuda("EXITS", fails(R.EXITED), _AFFINE), torch("exit_in_constructor", fails(R.EXITED)),
          module("exits_at_import", ended(S.COMPILE_ERROR, R.COMPILER_FAILED, stage=BUILD))),
    trick(G.TAMPERING, "error counters reset after a failed launch", "outputs are looked at, not error codes",
          cuda("CLEARS_ERRORS", wrong(R.OUTPUT_NOT_WRITTEN))),
    trick(G.TAMPERING, "a `torch.py` dropped beside the harness", "nothing that another process reads can be written",
          c("drops_torch", harmless()), module("drops_torch", harmless())),
    trick(G.TAMPERING, "secrets read while the source is built", "the compiler is confined too",
          c("incbin", ended(S.COMPILE_ERROR, R.COMPILER_FAILED, stage=BUILD)),
          c("test_a_secret_cannot_be_read_at_compile_time", ended(S.COMPILE_ERROR, R.COMPILER_FAILED, stage=BUILD),
            f"{_ATTACKS}/test_secrets.py")),

    # ------------------------------------------------------------------------------------------------------- not a kernel
    trick(G.NO_KERNEL, "`try` a kernel, `except`: PyTorch", "timed as what it is; its kernels are named when it is certified",
          module("falls_back", accepted(_NO_GAIN))),
    trick(G.NO_KERNEL, "inheriting the reference", "the reference is not in the candidate's process",
          module("inherits_reference", ended(S.COMPILE_ERROR, R.COMPILER_FAILED, stage=BUILD))),
    trick(G.NO_KERNEL, "calling `A @ B`, `nn.Linear`, a vendor library", "not linked; the process is looked into",
          c("calls_blas", ended(S.COMPILE_ERROR, R.LINK_FAILED, stage=BUILD)),
          c("asks_for_a_library", ended(S.REFUSED, R.FLAG_NOT_ALLOWED, stage=BUILD)),
          c("loads_torch", harmless()), c("borrows_a_loader", labelled(Label.VENDOR_LIBRARY)),
          cuda("LOADS_CUBLAS", accepted(_NO_GAIN)),
          torch("calls_torch", accepted(_NO_GAIN)), module("calls_torch", accepted(_NO_GAIN))),
    trick(G.NO_KERNEL, "global flags switched", "compared after each call; TF32 set explicitly on both sides",
          torch("switches_flags", wrong(R.STATE_CHANGED)), module("switches_flags", wrong(R.STATE_CHANGED))),

    # ----------------------------------------------------------------------------------------------------- on the machine
    trick(G.MACHINE, "keys sought in environments and files", "an environment of its own, other files closed",
          c("seeks_keys", harmless())),
    trick(G.MACHINE, "files left for a later candidate", "nothing outlives a runner", c("writes_outside", harmless())),
    trick(G.MACHINE, "a connection to a listener", "no sockets", c("sockets", harmless())),
    trick(G.MACHINE, "bombs of processes, threads, memory and files", "limits on the whole tree",
          c("fork_bomb", harmless()), c("thread_bomb", fails(R.SANDBOX_VIOLATION, R.CRASHED)),
          c("memory_bomb", fails(R.OUT_OF_MEMORY, R.CRASHED)), cuda("ALLOCATES", fails(R.CUDA_ERROR), _AFFINE)),
    trick(G.MACHINE, "a disk filled", "tier A: limits on its own folder; tier B: it has none",
          c("disk_bomb", fails(R.SANDBOX_VIOLATION))),
    trick(G.MACHINE, "a process of its own session stays behind", "the guard ends the tree", c("orphan", harmless())),
    trick(G.MACHINE, "it never returns, or never finishes loading", "each call has a limit",
          c("spin", ended(S.TIMEOUT, R.CALL_TIMEOUT)), c("sleep_in_constructor", ended(S.TIMEOUT, R.LOAD_TIMEOUT)),
          cuda("ENDLESS", ended(S.TIMEOUT, R.CALL_TIMEOUT), _AFFINE)),
    trick(G.MACHINE, "every call takes nearly as long as one may", "one deadline for all calls of a step",
          c("SLOW_WHEN_TIMED", ended(S.TIMEOUT, R.EVALUATION_DEADLINE), "tests/tools/local/test_evaluator.py")),

    # ----------------------------------------------------------------------------------------------- aimed at this judge
    trick(G.FURTHER, "what was made of the weights is kept while a few of their elements stay",
          "the last tweaked trial changes one secret row of every parameter, at the same address",
          c("weights_by_fingerprint", wrong(R.WRONG_VALUES, R.PRECISION_TOO_LOW, R.STALE_OUTPUT))),
    trick(G.FURTHER, "what was made of the weights is kept while every one of them stays, compared whole in each call",
          "nothing: it is right in every call, and pays for the comparison",
          c("linear_compares_weights", accepted("what the weights' share of the work exceeds reading them twice by"))),
    trick(G.FURTHER, "what was made of an input that is always alike is kept while a few of its elements stay",
          "such inputs are changed in trials and in every timed set; a label names those that cannot be",
          c("given_keeps_table", wrong(R.WRONG_VALUES, R.STALE_OUTPUT, R.PRECISION_TOO_LOW))),
    trick(G.FURTHER, "a mask that is always true, lengths that are always full, a state that is always zero: ignored",
          "trials with some of a mask's elements flipped, smaller lengths and random values in place of zeros",
          c("given_ignores_mask", wrong(R.WRONG_VALUES, R.STALE_OUTPUT)),
          c("given_ignores_lengths", wrong(R.WRONG_VALUES, R.STALE_OUTPUT)),
          c("given_ignores_zeros", wrong(R.WRONG_VALUES, R.PRECISION_TOO_LOW, R.STALE_OUTPUT))),
    trick(G.FURTHER, "a branch behind a small parameter (a layer scale of 1e-6) is left out",
          "the trial `order_one`: small parameters are of order one; `parameter_without_effect` names what never shows",
          c("hidden_leaves_branch_out", wrong(R.WRONG_VALUES, R.PRECISION_TOO_LOW))),
    trick(G.FURTHER, "an index buffer is written into the source",
          "whole numbers of parameters and buffers vary as those of inputs do; `not_varied` names what does not",
          c("hidden_bakes_index", wrong(R.WRONG_VALUES, R.PRECISION_TOO_LOW))),
    trick(G.FURTHER, "a scalar is written into the source",
          "the trial `scalars`: floating-point scalars have other values; `not_varied` names the others",
          c("hidden_bakes_scalar", wrong(R.WRONG_VALUES, R.PRECISION_TOO_LOW))),
    trick(G.FURTHER, "exponentials without the maximum while a sample of the row is small",
          "the trial `outliers`: one large value at a secret place of some rows",
          c("given_leaves_maximum_out", wrong(R.NON_FINITE_MISMATCH))),
    trick(G.FURTHER, "results kept for integers that repeat within a block", "a draw or a choice of two for every set",
          c("test_integers_beside_floats_differ_in_every_set", gainless(), "tests/tools/judge/worker/inputs/test_source.py")),
    trick(G.FURTHER, "a product with a weight that begins as the identity is left out", "every parameter gets random values",
          c("test_no_parameter_stays_an_identity", wrong(R.WRONG_VALUES), "tests/tools/judge/worker/inputs/test_source.py")),
    trick(G.FURTHER, "a mark in an unused output tells the process that is timed later",
          "all that a runner could write is wiped before the next one", c("writes_to_its_next_life", harmless(TIME))),
    trick(G.FURTHER, "exact while it is verified, rounded when it is timed", "timed outputs are held to the gate",
          c("rounds_when_timed", wrong(R.PRECISION_TOO_LOW, stage=TIME))),
    trick(G.FURTHER, "right for large values only while it is verified",
          "addresses do not tell; a secret share of the timed sets has the contents of a trial, and is checked",
          c("narrow_when_timed", wrong(R.WRONG_VALUES, R.PRECISION_TOO_LOW)),
          c("given_leaves_maximum_out_when_timed", untrusted(R.TIMED_OUTPUT_WRONG, stage=TIME))),
    trick(G.FURTHER, "weights kept while a few of their elements stay, once it is timed",
          "at secret times one element or one row of one parameter changes between blocks",
          c("weights_by_fingerprint_when_timed", wrong(R.PRECISION_TOO_LOW, R.STALE_OUTPUT, stage=TIME))),
    trick(G.FURTHER, "a branch behind a small parameter is left out once it is timed",
          "timed blocks have parameters of order one in turns",
          c("hidden_leaves_branch_out_when_timed", wrong(R.PRECISION_TOO_LOW, R.STALE_OUTPUT, stage=TIME))),
    trick(G.FURTHER, "words where the host tells numbers, numbers without end, a thread's name that is no text",
          "only what is a number is read as one", c("forges_a_place", fails(R.CRASHED)),
          c("stolen_nonce_long_time", untrusted(R.PROTOCOL_VIOLATED)), c("names_itself_in_bytes", harmless())),
    trick(G.FURTHER, "read-only mappings opened: holes, `/proc/self/mem`, a second mapping", "sealed by the kernel",
          c("opens_its_inputs", harmless())),
    trick(G.FURTHER, "sleeping threads work between the pause and the request",
          "the clock starts before the process goes on; a third of the sets is never asked for",
          c("works_between_requests", untrusted(R.BACKGROUND_WORK, R.WORKED_AHEAD, stage=TIME))),
    trick(G.FURTHER, "results mixed from two others, where the reference is linear", "a weight for each element of each set",
          c("linear_mixes_results", gainless("linear_honest"))),
    trick(G.FURTHER, "commands that wait on the GPU for the next block's contents",
          "the judge finds the GPU busy after a block, or slow at renewing them",
          cuda("WAITS_ON_DEVICE", untrusted(R.BACKGROUND_WORK, R.WORKED_AHEAD, stage=TIME))),
    trick(G.FURTHER, "the host's wait for the GPU hooked: it answers before the work is done", "the judge finds the GPU busy",
          cuda("HOOKED_WAIT", untrusted(R.BACKGROUND_WORK, R.BELOW_FLOOR,
                                        R.WITNESS_DISAGREES, R.TIMED_OUTPUT_WRONG, stage=TIME))),
    trick(G.FURTHER, "the last calls of most blocks are left to the GPU, never those of a block of one call",
          "the judge waits for the GPU at once after a block: what is left is too short to gain",
          cuda("waves_leaves_a_tail", gainless("waves_honest"))),
    trick(G.FURTHER, "less than 1 ms of every block is left to the GPU",
          "nothing: a wait of 1 ms is within the judge's scatter",
          cuda("waves_leaves_a_millisecond", accepted("up to 1 ms of a block, 8 % of 12 ms", TIME))),
    trick(G.FURTHER, "the GPU kept busy while eager PyTorch is timed",
          "the judge waits for the GPU right before those blocks, or eager is slower than in its warm-up",
          cuda("waves_slows_eager", untrusted(R.BACKGROUND_WORK, stage=TIME))),
    trick(G.FURTHER, "memory's bandwidth taken by the copy engines while eager PyTorch is timed",
          "eager is slower than in its warm-up, or the judge is slow at renewing contents",
          cuda("waves_copies_beside_eager", gainless("waves_honest"))),
    trick(G.FURTHER, "a block's tickets read ahead in their pipe: all of its calls in one launch",
          "nothing: a block of one call is honest work",
          cuda("small_peeks_tickets", accepted("what one launch for a block gains where a call leaves the GPU idle", TIME))),
    trick(G.FURTHER, "the tickets left tell the last call, which is right; three of four others are left out",
          "outputs of random calls are looked at too",
          cuda("waves_skips_all_but_the_last", untrusted(R.TIMED_OUTPUT_WRONG, stage=TIME))),
    trick(G.FURTHER, "rounded where the GPU finds the variance of a mixture, or a call right before this one",
          "timed outputs are held to the gate",
          cuda("waves_rounds_on_mixtures", wrong(R.PRECISION_TOO_LOW, stage=TIME)),
          cuda("waves_rounds_in_short_gaps", wrong(R.PRECISION_TOO_LOW, stage=TIME))),
    trick(G.FURTHER, "a host function on a stream that nobody waits for sleeps before the work",
          "the process is stopped at its answer; outputs that go on changing",
          cuda("waves_calls_back_later", untrusted(R.BACKGROUND_WORK))),
    trick(G.FURTHER, "one kernel stays on the GPU and polls a mailbox", "the judge is slow at renewing contents, or waits",
          cuda("waves_polls_a_mailbox", untrusted(R.BACKGROUND_WORK, R.WORKED_AHEAD, R.WITNESS_DISAGREES, stage=TIME))),
    trick(G.FURTHER, "results kept on the GPU under a hash of a few elements that the GPU computes", _IN_PLACE,
          cuda("waves_keeps_by_device_hash", wrong(R.STALE_OUTPUT))),
    trick(G.FURTHER, "work launched from the GPU, to be forgotten", "no flag makes relocatable code",
          cuda("waves_launches_from_device", ended(S.COMPILE_ERROR, R.COMPILER_FAILED, stage=BUILD))),
    trick(G.FURTHER, "the GPU's memory taken from the judge", "the judge verifies with what its allocator keeps",
          cuda("waves_hogs_memory", harmless())),
    trick(G.FURTHER, "it kills itself to be measured again", "once more, and no more",
          c("dies_to_be_measured_again", fails(R.CRASHED))),
    trick(G.FURTHER, "a broken machine forged, to end the search", "what comes after `mapped` is the candidate's",
          c("forges_a_machine_fault", fails(R.CUDA_ERROR))),
    trick(G.FURTHER, "the parent's log flooded", "a limit on files, the parent's too",
          c("talks_without_end", fails(R.SANDBOX_VIOLATION))),
    trick(G.FURTHER, "terminal escapes in the reason that a person reads", "only printable characters are taken over",
          c("speaks_in_escapes", fails(R.EXITED)),
          c("speaks_in_errors", ended(S.COMPILE_ERROR, R.COMPILER_FAILED, stage=BUILD))),
    trick(G.FURTHER, "another rounding mode left in the host", "each candidate has a process of its own",
          c("changes_rounding", harmless())),
    trick(G.FURTHER, "the runner's own checks switched off", "the judge compares whatever reaches its memory",
          torch("switches_checks_off", wrong(R.STALE_OUTPUT))),
    trick(G.FURTHER, "what was made of the weights is kept for as long as calls follow each other at once, or for a block",
          "blocks in which the weights change while they run",
          c("derived_keeps_while_busy", untrusted(R.WORKED_AHEAD, stage=TIME)),
          c("derived_makes_once_a_block", untrusted(R.WORKED_AHEAD, stage=TIME))),
    trick(G.FURTHER, "all tickets of a block taken at once: what is made of the weights is kept until the next ones come",
          "the judge watches how tickets are taken: no more at a time than calls fit in there",
          c("derived_takes_all_tickets", untrusted(R.WORKED_AHEAD, stage=TIME))),
    trick(G.FURTHER, "timers that go on and interrupt a core while the process is stopped", "no process timers in a runner",
          c("timers_while_stopped", harmless())),
    trick(G.FURTHER, "sums of two bf16 numbers in place of fp32", "nothing: 16 bits of mantissa measure as fp32",
          c("linear_splits_in_two", accepted("its class is called fp32 at 16 bits of mantissa"))),
)
# fmt: on


def cases(form: Form) -> list[Case]:
    """Return the cases of one form that are tried beside this table."""
    return [case for each in CATALOGUE for case in each.cases if case.form is form and not case.where]


def page() -> str:
    """Return the catalogue as the page docs/cheats.md."""
    lines = [
        "# Known ways to cheat",
        "",
        "Each row is a test candidate. The judge must end it as the row says, and must pass an honest candidate of the same",
        "form beside it. Forms are interface `c` on a CPU and on CUDA, a `torch` extension, and a Python `module`.",
        "",
        "- *No effect*: the attempt is stopped or finds nothing, and the candidate's honest work passes.",
        "- *No gain*: the candidate is timed, and is no faster than the honest one.",
        "- **Accepted**: the judge does not find it; the row says what it gains.",
        "",
        "`tests/cheats/catalogue.py` makes the tables; a test keeps page and catalogue equal.",
    ]
    for group in Group:
        lines += ["", f"## {group}", "", "| what it does | what catches it | forms and ends |", "|---|---|---|"]
        tricks = [each for each in CATALOGUE if each.group is group]
        lines += [f"| {each.words} | {each.caught_by} | {_ends(each)} |" for each in tricks]
    return "\n".join(lines) + "\n"


def _ends(each: Trick) -> str:
    found: dict[str, list[str]] = {}
    for case in each.cases:
        forms = found.setdefault(case.end.words(), [])
        if case.form not in forms:
            forms.append(case.form)
    return "; ".join(f"{', '.join(forms)}: {words}" for words, forms in found.items())


if __name__ == "__main__":
    sys.stdout.write(page())
