"""Ways to give an earlier answer again."""

from __future__ import annotations

from tests.cheats.trick import (
    TIME,
    Group,
    R,
    Trick,
    c,
    cuda,
    gainless,
    harmless,
    module,
    torch,
    trick,
    untrusted,
    wrong,
)
from tests.cheats.tricks.words import AFFINE, IN_PLACE, SECRET, UNMOVED

G = Group
_LOOKS_WHERE = "on a CPU the parent looks after each block whether every output lies in memory of its own"

# fmt: off
TRICKS: tuple[Trick, ...] = (
    trick(G.REPLAY, "the freed reference output found in new memory", "results stay in the judge's own memory",
          c("finds_freed_memory", harmless()), cuda("FREED_MEMORY", harmless()),
          module("freed_memory", wrong(*UNMOVED, R.NON_FINITE_MISMATCH))),
    trick(G.REPLAY, "a cache keyed by address, id or `_version`", IN_PLACE,
          c("pointer_cache", wrong(R.STALE_OUTPUT)), cuda("POINTER_CACHE", wrong(R.STALE_OUTPUT), AFFINE),
          torch("version_cache", wrong(R.STALE_OUTPUT)), module("id_cache", wrong(R.STALE_OUTPUT))),
    trick(G.REPLAY, "a cache keyed by a few elements", "trials that differ in one secret row, at the same address",
          c("fingerprint_cache", wrong(R.STALE_OUTPUT)), c("fingerprint_skip", wrong(R.STALE_OUTPUT)),
          module("fingerprint_cache", wrong(R.STALE_OUTPUT))),
    trick(G.REPLAY, "a call returns at once while its earlier output is in place", "outputs are poisoned before each block",
          c("skips_when_in_place", gainless())),
    trick(G.REPLAY, "right for the first calls only", "one more trial after 24 to 47 unexamined calls",
          c("ten_calls", wrong(R.OUTPUT_NOT_WRITTEN)), c("twenty_calls", wrong(R.WRONG_VALUES, R.NONDETERMINISTIC)),
          module("ten_calls", wrong(R.WRONG_VALUES, R.STALE_OUTPUT, R.NONDETERMINISTIC))),
    trick(G.REPLAY, "a view of the input is returned", "no storage is shared with inputs or parameters",
          torch("view_of_input", wrong(R.OUTPUT_ALIASES_INPUT)), module("view_of_input", wrong(R.OUTPUT_ALIASES_INPUT))),
    trick(G.REPLAY, "an input itself is returned for its copy, once it is timed", _LOOKS_WHERE,
          module("gated_input_when_timed", wrong(R.OUTPUT_ALIASES_INPUT, stage=TIME))),
    trick(G.REPLAY, "an input's memory, mapped at another address, is returned for its copy", _LOOKS_WHERE,
          module("gated_input_mapped_again", wrong(R.OUTPUT_ALIASES_INPUT, stage=TIME))),
    trick(G.REPLAY, "one tensor is returned for two outputs", "outputs of a call share no memory where the reference's do not",
          module("gated_two_in_one", wrong(R.OUTPUT_ALIASES_INPUT))),
    trick(G.REPLAY, "one tensor is returned for two outputs, once it is timed", _LOOKS_WHERE,
          module("gated_two_in_one_when_timed", wrong(R.OUTPUT_ALIASES_INPUT, stage=TIME))),
    trick(G.REPLAY, "an output's memory is taken once more, and what it held is relied on",
          "outputs are their caller's: on a CPU some bytes of them are changed after each block",
          module("gated_keeps_zeros", untrusted(R.TIMED_OUTPUT_WRONG, R.WORKED_AHEAD, stage=TIME))),
    trick(G.REPLAY, "one static buffer for every result", "an earlier output must outlive the next call",
          c("static_buffer", wrong(R.STALE_OUTPUT)), torch("static_buffer", wrong(R.STALE_OUTPUT)),
          module("static_buffer", wrong(R.STALE_OUTPUT))),
    trick(G.REPLAY, "`forward` replaced by a constant after the first call", SECRET,
          module("constant_forward", wrong(R.STALE_OUTPUT, R.WRONG_VALUES))),
    trick(G.REPLAY, "weights cached from another instance", "every trial has its own parameters; a call with others",
          c("weights_of_first_instance", wrong(R.WRONG_VALUES)), torch("weights_cached", wrong(R.WEIGHTS_IGNORED)),
          module("weights_cached", wrong(R.WEIGHTS_IGNORED, R.WRONG_VALUES))),
)
# fmt: on
