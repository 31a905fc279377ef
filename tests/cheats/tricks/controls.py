"""Honest controls, and ordinary mistakes."""

from __future__ import annotations

from tests.cheats.trick import Group, R, Trick, c, cuda, fails, gainless, harmless, module, torch, trick
from tests.cheats.tricks.words import AFFINE

G = Group

# fmt: off
TRICKS: tuple[Trick, ...] = (
    trick(G.CONTROL, "an honest kernel", "nothing: it must pass and be timed",
          c("honest", gainless("itself")), c("linear_honest", gainless("itself")), c("derived_honest", gainless("itself")),
          cuda("HONEST", gainless("itself")),
          torch("honest", gainless("itself")), module("honest", gainless("itself")),
          cuda("waves_honest", gainless("itself")), cuda("small_honest", gainless("itself"))),
    trick(G.CONTROL, "an honest kernel of eight threads, which may be more than there are cores",
          "nothing: it must pass and be timed", c("has_eight_threads", gainless("itself"))),
    trick(G.CONTROL, "an honest kernel in two launches, the second begun early, that uses its workspace again",
          "nothing: it must pass and be timed", cuda("waves_in_stages", gainless("itself"))),
    trick(G.CONTROL, "an honest kernel whose launches are a CUDA graph of its own, given each call's pointers",
          "nothing: it must pass and be timed", cuda("waves_in_a_graph", gainless("itself"))),
    trick(G.CONTROL, "an honest kernel whose inputs are mostly always alike", "nothing: it must pass",
          c("given_honest", harmless())),
    trick(G.CONTROL, "an honest kernel with four outputs of different kinds", "nothing: it must pass and be timed",
          c("several_honest", gainless("itself"))),
    trick(G.CONTROL, "an honest kernel of a branch behind a scale of 1e-6, with index and scalar", "nothing: it must pass",
          c("hidden_honest", harmless())),
    trick(G.CONTROL, "an honest kernel whose input and gain are always positive", "nothing: it must pass and be timed",
          c("pooled_honest", gainless("itself"))),
    trick(G.CONTROL, "an honest kernel of a reference that is slow on the contents of a trial",
          "nothing: it must pass and be timed", c("loaded_honest", gainless("itself"))),
    trick(G.CONTROL, "an honest kernel of a reference that asserts a range, which some contents of a trial leave by chance",
          "nothing: it must pass and be timed", c("edge_honest", gainless("itself"))),
    trick(G.CONTROL, "an honest kernel of lengths and temperatures whose ranges are asserted", "nothing: it must pass",
          c("bounded_honest", harmless())),
    trick(G.CONTROL, "an honest kernel of a drawn mask and of whole numbers that come twice alike",
          "nothing: it must pass and be timed", c("drawn_honest", gainless("itself"))),
    trick(G.CONTROL, "an honest kernel of a map and a table that are always alike, beside a permutation and pixels",
          "nothing: it must pass and be timed", c("mapped_honest", gainless("itself"))),
    trick(G.CONTROL, "an honest kernel of groups of any size: values above 0, bags, a padded mask, the largest of a row",
          "nothing: it must pass", c("grouped_honest", harmless())),
    trick(G.CONTROL, "an honest kernel of sums, counts, largest numbers, masks, levels and groups however uneven",
          "nothing: it must pass", c("uneven_honest", harmless())),
    trick(G.CONTROL, "an honest kernel of all rounds of a propagation, and of padding wherever it lies",
          "nothing: it must pass", c("spread_honest", harmless())),
    trick(G.CONTROL, "an honest kernel of a power iteration between rows and columns, and of spreading over neighbours",
          "nothing: it must pass", c("apart_honest", harmless())),
    trick(G.CONTROL, "an honest kernel of an iteration to a fixed point, and of a recurrence with gates",
          "nothing: it must pass", c("settled_honest", harmless())),
    trick(G.CONTROL, "an honest kernel of a reservoir's state, and of walks with restart",
          "nothing: it must pass", c("lasting_honest", harmless())),
    trick(G.CONTROL, "an honest kernel of all rounds of what logits, logarithms, norms and gates let settle early",
          "nothing: it must pass", c("moved_honest", harmless())),
    trick(G.CONTROL, "an honest kernel of plain loops: products, exponentials, a loss, standardised rows, running products",
          "nothing: it must pass", c("plain_honest", harmless())),
    trick(G.CONTROL, "an honest kernel of a covariance that is always alike", "nothing: it must pass and be timed",
          c("paired_honest", gainless("itself"))),
    trick(G.CONTROL, "an honest kernel of rows whose sizes lie nine orders of magnitude apart",
          "nothing: it must pass and be timed", c("sized_honest", gainless("itself"))),
    trick(G.CONTROL, "an honest kernel in float64", "nothing: it must pass and be timed",
          c("double_honest", gainless("itself"))),
    trick(G.CONTROL, "a null pointer", "the host explains the fault",
          c("crash", fails(R.CRASHED)), torch("crash", fails(R.CRASHED)), cuda("ILLEGAL", fails(R.CUDA_ERROR), AFFINE)),
    trick(G.CONTROL, "it reads far past the end of an input", "unreadable memory around every region",
          c("overrun", fails(R.CRASHED))),
)
# fmt: on
