"""Building blocks: kernels of other operations that ideation is shown, for what can be taken from them.

They are the problem's own `references`, then the best kernels of other families in the bank. Nobody compiles or judges
them. A search chooses them once: a resumed one shows the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.graph.models.prompts import WRITE_BLOCK_CHARS, describe_argument
from ridgeline.graph.models.showing.shortening import excerpt
from ridgeline.tools.records.search import BuildingBlock, Idea, KernelWork
from ridgeline.tools.records.vocabulary import Role

if TYPE_CHECKING:
    from ridgeline.checkpoints.archive import Archive
    from ridgeline.checkpoints.bank import BankedBlock
    from ridgeline.graph.search.context import SearchContext
    from ridgeline.tools.records.baselines import Floor
    from ridgeline.tools.records.problem import Description

BANK_BLOCKS = 2
"""Kernels of other families that the bank gives: each costs a thousand tokens of every request for ideas."""
_PEAKS = {"compute": "arithmetic peak", "memory": "memory bandwidth"}


def building_blocks(context: SearchContext) -> tuple[BuildingBlock, ...]:
    """Return the blocks of this search, chosen and stored at the first call; none, and no file read, without this part."""
    if not context.ablation.has("blocks"):
        return ()
    stored = context.archive.run().blocks
    if stored is not None or not context.models.reads_prompts:
        return stored or ()
    blocks = (*_references(context), *_banked(context))
    context.archive.save_run(RunRecord(blocks=blocks))
    return blocks


def block_of(archive: Archive, idea: Idea) -> BuildingBlock | None:
    """Return the block that an idea takes its means from, or None where it names none that was shown."""
    if idea.block is None:
        return None
    return next((block for block in archive.run().blocks or () if block.name == idea.block), None)


def work_of(description: Description, floor: Floor, median_ms: float | None) -> KernelWork:
    """Return what a kernel of this problem does, and its share of the device's measured peak.

    The share is of what the problem is bound by. A kernel with fewer operations than the reference's formula may pass the
    peak by that count: its share is not known then.
    """
    floor_ms = floor.highest_ms
    share = floor_ms / median_ms if median_ms else None
    inputs = [describe_argument(arg) for arg in description.signature.args if arg.role is not Role.OUTPUT]
    outputs = [describe_argument(arg) for arg in description.signature.with_role(Role.OUTPUT)]
    return KernelWork(
        arguments=f"{', '.join(inputs)} -> {', '.join(outputs)}",
        bound=floor.bound,
        share=share if share is not None and share <= 1 else None,
    )


def _references(context: SearchContext) -> list[BuildingBlock]:
    kind = context.target.device.kind.value
    return [
        BuildingBlock(
            name=name, words=words, language=name.rpartition(".")[2], source=excerpt(source, WRITE_BLOCK_CHARS)
        )
        for name, words, source in context.problem.reference_kernels(kind)
    ]


def _banked(context: SearchContext) -> list[BuildingBlock]:
    if context.bank is None:
        return []
    found = context.bank.blocks(context.family, context.target.device.arch, BANK_BLOCKS)
    return [
        BuildingBlock(
            name=block.candidate.id,
            words=words_of(block),
            language=block.candidate.language,
            source=excerpt(block.candidate.source, WRITE_BLOCK_CHARS),
        )
        for block in found
    ]


def words_of(block: BankedBlock) -> str:
    """Return a kernel of the bank in words: family, problem, time, share of the peak, arguments."""
    words = [f"the fastest {block.family} kernel known on this device ({block.problem})"]
    if block.median_ms is not None:
        words.append(f"{block.median_ms:.4g} ms")
    if block.work.share is not None:
        words.append(f"{block.work.share:.0%} of the {_PEAKS[block.work.bound]}")
    if block.work.arguments:
        words.append(block.work.arguments)
    return ", ".join(words)
