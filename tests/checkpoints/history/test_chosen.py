"""Why a kernel is the best although another one's own timing ranks before it."""

from __future__ import annotations

import dataclasses

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.history.chosen import chosen_words
from ridgeline.checkpoints.report.outputs import write_run_outputs
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.tools.records.keys import comparison_key
from ridgeline.tools.records.results import Comparison


def test_a_kernel_that_won_in_turns_says_over_which_it_was_chosen(filled: Archive) -> None:
    first = filled.run().best_id
    assert first is not None and chosen_words(filled, first) == "", "its own timing ranks first"
    assert chosen_words(filled, "r4i1v0a0") == "", "they were never timed in turns"
    faster = Comparison(ratio=1.06, ratio_ci95=(0.97, 1.16), first_ms=1.06, second_ms=1.0, blocks=9)
    filled.save("comparisons", comparison_key(first, "r4i1v0a0", "builds"), first, faster)
    words = "chosen over r4i1v0a0t3, 2.31x (2.26 to 2.36) by a timing of its own: in turns with it 1.06x (0.97 to 1.16) as fast"
    assert chosen_words(filled, "r4i1v0a0") == words
    filled.save_run(RunRecord(best_id="r4i1v0a0"))
    folder = filled.path.parent
    write_run_outputs(folder, filled)
    assert f"C{words[1:]}." in (folder / "report.html").read_text()
    slower = dataclasses.replace(faster, ratio=0.98)
    filled.save("comparisons", comparison_key(first, "r4i1v0a0", "later builds"), first, slower)
    assert chosen_words(filled, "r4i1v0a0") == ""
