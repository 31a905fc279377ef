"""CUDA for a row program: constants, sums, one kernel or one for each sweep, and the launch."""

from __future__ import annotations

from ridgeline.graph.offline.program.ir import NotCovered, RowProgram
from ridgeline.graph.offline.program.schedule import SweepPlan, plan_sweeps
from ridgeline.graph.offline.rowwise.cuda.constants import write_constants
from ridgeline.graph.offline.rowwise.cuda.geometry import Demand, Mode, fit, staged
from ridgeline.graph.offline.rowwise.cuda.keeps import Keeps, keep_row, nothing
from ridgeline.graph.offline.rowwise.cuda.launch import write_board, write_run
from ridgeline.graph.offline.rowwise.cuda.split_rows import write_split_rows
from ridgeline.graph.offline.rowwise.cuda.structures import Structure
from ridgeline.graph.offline.rowwise.cuda.sweeps import write_sums
from ridgeline.graph.offline.rowwise.cuda.text import CudaText
from ridgeline.graph.offline.rowwise.cuda.whole_rows import write_whole_rows
from ridgeline.graph.offline.text.sections import needed_sections
from ridgeline.tools.records.dtypes import element_bytes
from ridgeline.tools.records.problem import Device, Signature

MARKS = {
    "vector": "rl_load<",
    "online": "rl_online",
    "moments": "rl_moments",
    "sum": "rl_sum",
    "prod": "rl_prod",
    "max": "rl_max",
    "min": "rl_min",
    "all": "rl_lanes<",
    "cluster": "rl_cluster",
    "team": "rl_put(",
    "bulk": "rl_bulk(",
    "exp": "rl_exp(",
    "rcp": "rl_rcp(",
    "div": "rl_div(",
    "sigmoid": "rl_sigmoid(",
    "silu": "rl_silu(",
    "sqrt": "rl_sqrt(",
}
"""Native sections by the text that calls for them."""


def write_source(
    program: RowProgram, signature: Signature, structures: frozenset[str], device: Device, variation: int = 0
) -> str:
    """Return the whole source but its first line. The structures must be compatible and applicable.

    Raises:
        NotCovered: the device cannot hold what the structures keep on the chip.
    """
    plan, keeps = planned(program, structures)
    geometry = fit(program, structures, demand(program, structures, keeps), device, variation)
    loads = staged(program) if Structure.ASYNC in structures else []
    text = CudaText(plan=plan, keeps=keeps, signature=signature, structures=structures, geometry=geometry, staged=loads)
    return _source(text, device)


def planned(program: RowProgram, structures: frozenset[str]) -> tuple[SweepPlan, Keeps]:
    """Return the sweeps and the values that they keep for each other.

    Raises:
        NotCovered: there is nothing to compute for each column.
    """
    plan = plan_sweeps(program, moments=Structure.MOMENTS in structures, online=Structure.ONLINE in structures)
    if not plan.sweeps:
        raise NotCovered("a result that does not depend on a row's elements")
    holds = Structure.REGISTERS in structures or Structure.SHARED in structures
    return plan, keep_row(plan) if holds else nothing(plan)


def demand(program: RowProgram, structures: frozenset[str], keeps: Keeps) -> Demand:
    """Return the space that a block needs for each column."""
    return Demand(
        register_slots=keeps.slots if Structure.REGISTERS in structures else 0,
        shared_slots=keeps.slots if Structure.SHARED in structures else 0,
        staged_bytes=sum(element_bytes(load.dtype) for load in staged(program)) if Structure.ASYNC in structures else 0,
    )


def _source(text: CudaText, device: Device) -> str:
    write_constants(text, device)
    constants, text.lines = text.lines, []
    for index, sweep in enumerate(text.plan.sweeps):
        if sweep.reductions:
            write_sums(text, index)
    write_board(text)
    if text.is_mode(Mode.SPLIT):
        write_split_rows(text)
    else:
        write_whole_rows(text)
    write_run(text)
    body = "\n".join(text.lines)
    names = [name for name, mark in MARKS.items() if mark in body]
    names += ["all"] if "rl_all<" in body else []
    if "online" in names and text.has(Structure.FAST):
        names.append("exp")
    native = needed_sections(names, "ridgeline.graph.offline.rowwise", "cuda.h")
    return "\n".join([*constants, "", native, body]) + "\n"
