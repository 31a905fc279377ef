"""The device's table as every prompt of a search shows it: made once, so that a resumed search asks as before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.tools.build.toolchain import installed_version
from ridgeline.tools.machine.device_facts import device_facts

if TYPE_CHECKING:
    from ridgeline.graph.search.context import SearchContext
    from ridgeline.tools.records.baselines import Floor
    from ridgeline.tools.records.problem import DeviceFact


def device_table(context: SearchContext, floor: Floor | None) -> tuple[DeviceFact, ...]:
    """Return the table that this search shows, made and stored at the first call; nothing where nobody reads it."""
    stored = context.archive.run().facts
    if stored is not None or not context.models.reads_prompts:
        return stored or ()
    device = context.target.device
    facts = device_facts(device, floor=floor, compiler=installed_version(device.kind) or "")
    context.archive.save_run(RunRecord(facts=facts))
    return facts
