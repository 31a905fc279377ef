"""Wrong outputs that are to pass."""

from __future__ import annotations

from tests.cheats.trick import CERTIFY, Group, R, Trick, c, cuda, fails, module, torch, trick, wrong
from tests.cheats.tricks.words import AFFINE, SECRET, UNMOVED

G = Group
_SANITIZERS = "tests/gpu/test_sanitizers.py"

# fmt: off
TRICKS: tuple[Trick, ...] = (
    trick(G.WRONG, "constant outputs", SECRET, c("constant_output", wrong(R.WRONG_VALUES)),
          module("constant_output", wrong(*UNMOVED))),
    trick(G.WRONG, "values below an absolute tolerance are left out", "errors relative to the output's own spread",
          c("values_below_atol", wrong(R.PRECISION_TOO_LOW, R.WRONG_VALUES))),
    trick(G.WRONG, "the identity where the reference is nearly one", "inputs shifted and scaled, random parameters",
          c("identity", wrong(R.WRONG_VALUES)), c("ignores_affine", wrong(R.WRONG_VALUES)),
          module("identity", wrong(*UNMOVED))),
    trick(G.WRONG, "statistics of the input distribution hard-coded", "the trials `shifted` and `row_scaled`",
          c("hard_coded_statistics", wrong(R.WRONG_VALUES))),
    trick(G.WRONG, "the last 0.5 % of each sum is skipped", "the gate of the class",
          c("skips_last_columns", wrong(R.WRONG_VALUES, R.PRECISION_TOO_LOW)), c("linear_skips_last_k", wrong(R.WRONG_VALUES))),
    trick(G.WRONG, "only the first rows are computed", "every element must replace its poison",
          c("first_rows_only", wrong(R.OUTPUT_NOT_WRITTEN)), c("skips_last_rows", wrong(R.OUTPUT_NOT_WRITTEN)),
          cuda("HALF", wrong(R.OUTPUT_NOT_WRITTEN), AFFINE)),
    trick(G.WRONG, "precision is cut silently", "the class is measured, the problem says which it accepts",
          c("low_precision", wrong(R.PRECISION_TOO_LOW)), c("linear_rounded_weights", wrong(R.PRECISION_TOO_LOW)),
          cuda("HALF_PRECISION", wrong(R.PRECISION_TOO_LOW)), module("half_precision", wrong(R.PRECISION_TOO_LOW))),
    trick(G.WRONG, "precision is cut in one row of many", "each row has a limit of its own, and each element",
          c("one_row_in_bf16", wrong(R.PRECISION_TOO_LOW))),
    trick(G.WRONG, "one row, broadcast", "shapes equal, every element compared",
          c("one_row_for_all", wrong(R.WRONG_VALUES)), torch("broadcast_row", wrong(R.SHAPE_MISMATCH)),
          module("broadcast_row", wrong(R.SHAPE_MISMATCH))),
    trick(G.WRONG, "a failed launch that leaves good bytes", "outputs are poisoned before the second run too",
          cuda("FAILED_LAUNCH", wrong(R.STALE_OUTPUT, R.OUTPUT_NOT_WRITTEN))),
    trick(G.WRONG, "a race that happens to work", "each input runs twice; racecheck",
          c("noise", wrong(R.NONDETERMINISTIC, R.WRONG_VALUES, R.PRECISION_TOO_LOW)),
          cuda("race", fails(R.CRASHED, stage=CERTIFY), _SANITIZERS)),
    trick(G.WRONG, "a write past the end of an output", "what lies behind it holds secret bytes, compared after a trial",
          c("writes_past_its_output", fails(R.OUT_OF_BOUNDS)), cuda("PAST_THE_END", fails(R.OUT_OF_BOUNDS), AFFINE)),
    trick(G.WRONG, "a read past the end that happens to work", "AddressSanitizer and memcheck",
          c("test_sanitizer_names_an_overrun_that_passes_unseen", fails(R.CRASHED, stage=CERTIFY),
            "tests/tools/measure/test_sanitized.py"),
          cuda("out_of_bounds", fails(R.CRASHED, stage=CERTIFY), _SANITIZERS)),
    trick(G.WRONG, "a read or write past a tensor that fills its pages, or in another call's tensors",
          "in the sanitizer's build the bytes between tensors are closed, and all tensors but the call's own",
          c("test_sanitizer_finds_what_lies_beyond_tensors_that_fill_their_pages", fails(R.CRASHED, stage=CERTIFY),
            "tests/tools/measure/test_sanitized.py")),
    trick(G.WRONG, "a read or write past the workspace, or through a pointer that an earlier call was given",
          "in the sanitizer's build the workspace is closed around its bytes, and calls have other tensors each",
          c("test_sanitizer_finds_what_lies_beyond_the_workspace_and_what_earlier_calls_were_given",
            fails(R.CRASHED, stage=CERTIFY), "tests/tools/measure/test_sanitized.py")),
    trick(G.WRONG, "a write past the end that a sanitizer's build leaves out", "the macros that tell it are undefined",
          c("test_sanitizer_build_cannot_be_told_by_its_macros", fails(R.CRASHED, stage=CERTIFY),
            "tests/tools/measure/test_sanitized.py")),
    trick(G.WRONG, "right for one seed only", "seeds from the system's random source, never from a flag",
          c("one_seed_only", wrong(R.WRONG_VALUES)), module("one_seed_only", wrong(*UNMOVED))),
)
# fmt: on
