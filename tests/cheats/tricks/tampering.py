"""Tampering with what a candidate is given and with who judges it."""

from __future__ import annotations

from tests.cheats.trick import (
    BUILD,
    TIME,
    Group,
    R,
    Trick,
    c,
    cuda,
    ended,
    fails,
    gainless,
    harmless,
    module,
    torch,
    trick,
    untrusted,
    wrong,
)
from tests.cheats.tricks.words import AFFINE

G = Group
_ATTACKS = "tests/attacks"

# fmt: off
TRICKS: tuple[Trick, ...] = (
    trick(G.TAMPERING, "`torch.matmul` or the reference's globals patched", "the judge is another process; functions compared",
          torch("patched_matmul", wrong(R.STATE_CHANGED)), module("patched_matmul", wrong(R.STATE_CHANGED)),
          module("patched_reference", harmless())),
    trick(G.TAMPERING, "inputs or parameters modified", "mapped for reading only; a GPU's are compared too",
          c("input_modified", fails(R.INPUT_WRITTEN)), c("parameter_modified", fails(R.INPUT_WRITTEN)),
          cuda("WRITES_INPUT", fails(R.CUDA_ERROR), AFFINE), cuda("OPENS_INPUTS", fails(R.INPUT_WRITTEN, R.CUDA_ERROR)),
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
          cuda("EXITS", fails(R.EXITED), AFFINE), torch("exit_in_constructor", fails(R.EXITED)),
          module("exits_at_import", ended(R.COMPILER_FAILED, stage=BUILD))),
    trick(G.TAMPERING, "error counters reset after a failed launch", "outputs are looked at, not error codes",
          cuda("CLEARS_ERRORS", wrong(R.OUTPUT_NOT_WRITTEN))),
    trick(G.TAMPERING, "a `torch.py` dropped beside the harness", "nothing that another process reads can be written",
          c("drops_torch", harmless()), module("drops_torch", harmless())),
    trick(G.TAMPERING, "secrets read while the source is built", "the compiler is confined too",
          c("incbin", ended(R.COMPILER_FAILED, stage=BUILD)),
          c("test_a_secret_cannot_be_read_at_compile_time", ended(R.COMPILER_FAILED, stage=BUILD),
            f"{_ATTACKS}/test_secrets.py")),
)
# fmt: on
