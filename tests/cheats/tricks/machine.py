"""Attacks on the machine."""

from __future__ import annotations

from tests.cheats.trick import Group, R, Trick, c, cuda, ended, fails, harmless, trick
from tests.cheats.tricks.words import AFFINE

G = Group

# fmt: off
TRICKS: tuple[Trick, ...] = (
    trick(G.MACHINE, "keys sought in environments and files", "an environment of its own, other files closed",
          c("seeks_keys", harmless())),
    trick(G.MACHINE, "files left for a later candidate", "nothing outlives a runner", c("writes_outside", harmless())),
    trick(G.MACHINE, "a connection to a listener", "no sockets", c("sockets", harmless())),
    trick(G.MACHINE, "bombs of processes, threads, memory and files", "limits on the whole tree",
          c("fork_bomb", harmless()), c("thread_bomb", fails(R.SANDBOX_VIOLATION, R.CRASHED)),
          c("memory_bomb", fails(R.OUT_OF_MEMORY, R.CRASHED)), cuda("ALLOCATES", fails(R.CUDA_ERROR), AFFINE)),
    trick(G.MACHINE, "a disk filled", "tier A: limits on its own folder; tier B: it has none",
          c("disk_bomb", fails(R.SANDBOX_VIOLATION))),
    trick(G.MACHINE, "a process of its own session stays behind", "the guard ends the tree", c("orphan", harmless())),
    trick(G.MACHINE, "it never returns, or never finishes loading", "each call has a limit",
          c("spin", ended(R.CALL_TIMEOUT)), c("sleep_in_constructor", ended(R.LOAD_TIMEOUT)),
          cuda("ENDLESS", ended(R.CALL_TIMEOUT), AFFINE)),
    trick(G.MACHINE, "every call takes nearly as long as one may", "one deadline for all calls of a step",
          c("SLOW_WHEN_TIMED", ended(R.EVALUATION_DEADLINE), "tests/tools/local/test_judged_kernels.py")),
)
# fmt: on
