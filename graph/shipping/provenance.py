"""Who wrote a kernel that is shipped, as far as its run recorded it."""

from __future__ import annotations

from ridgeline.checkpoints.run_record import OFFLINE
from ridgeline.checkpoints.winner import Winner
from ridgeline.graph.models.mailbox.model import is_mailbox
from ridgeline.tools.records.vocabulary import Origin

GIVEN = {
    Origin.SEED: "given to the search as a seed",
    Origin.BANK: "kept from an earlier search",
    Origin.FILE: "given as a file",
}
"""How a kernel that no model of its search wrote came into it."""


def provenance(winner: Winner) -> str:
    """Return who wrote the winner: what follows "the kernel was ". Tuning sets values of a kernel that somebody wrote."""
    root = next((step for step in winner.lineage if step["origin"] != Origin.TUNE), {})
    origin, writer = root.get("origin", ""), winner.best.candidate.model
    if origin in GIVEN:
        return f"{GIVEN[Origin(origin)]}: who wrote it is not recorded"
    if writer == OFFLINE:
        return "composed by Ridgeline's offline model: no language model wrote it"
    if is_mailbox(writer):
        return "written by whoever answered the search's mailbox, which may be a language model"
    if writer:
        return f"written by the language model {writer}"
    return "written in the search: by whom is not recorded, and a language model may have been"
