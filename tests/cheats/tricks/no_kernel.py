"""What is no kernel."""

from __future__ import annotations

from ridgeline.tools.records.vocabulary import Label
from tests.cheats.trick import (
    BUILD,
    Group,
    R,
    Trick,
    accepted,
    c,
    cuda,
    ended,
    harmless,
    labelled,
    module,
    torch,
    trick,
    wrong,
)

G = Group
_NO_GAIN = "timed as what it is: what the library is faster by, nothing over eager PyTorch's own"

# fmt: off
TRICKS: tuple[Trick, ...] = (
    trick(G.NO_KERNEL, "`try` a kernel, `except`: PyTorch", "timed as what it is; its kernels are named when it is certified",
          module("falls_back", accepted(_NO_GAIN))),
    trick(G.NO_KERNEL, "inheriting the reference", "the reference is not in the candidate's process",
          module("inherits_reference", ended(R.COMPILER_FAILED, stage=BUILD))),
    trick(G.NO_KERNEL, "calling `A @ B`, `nn.Linear`, a vendor library", "not linked; the process is looked into",
          c("calls_blas", ended(R.LINK_FAILED, stage=BUILD)),
          c("asks_for_a_library", ended(R.FLAG_NOT_ALLOWED, stage=BUILD)),
          c("loads_torch", harmless()), c("borrows_a_loader", labelled(Label.VENDOR_LIBRARY)),
          c("names_a_library_as_the_systems", labelled(Label.VENDOR_LIBRARY)),
          c("ends_its_first_thread", labelled(Label.VENDOR_LIBRARY)),
          cuda("LOADS_CUBLAS", accepted(_NO_GAIN)),
          torch("calls_torch", accepted(_NO_GAIN)), module("calls_torch", accepted(_NO_GAIN))),
    trick(G.NO_KERNEL, "global flags switched", "compared after each call; TF32 set explicitly on both sides",
          torch("switches_flags", wrong(R.STATE_CHANGED)), module("switches_flags", wrong(R.STATE_CHANGED))),
)
# fmt: on
