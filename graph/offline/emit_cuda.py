"""CUDA for a row program: constants, what a thread accumulates, one kernel or one for each sweep, and their launch."""

from __future__ import annotations

from ridgeline.graph.offline.arithmetic import sections
from ridgeline.graph.offline.composer import header_of
from ridgeline.graph.offline.cuda_constants import write_constants
from ridgeline.graph.offline.cuda_geometry import Demand, fit, staged
from ridgeline.graph.offline.cuda_keeps import Keeps, keep_row, nothing
from ridgeline.graph.offline.cuda_kernels import write_kernels
from ridgeline.graph.offline.cuda_launch import write_board, write_run
from ridgeline.graph.offline.cuda_structures import CudaStructure as S
from ridgeline.graph.offline.cuda_sweeps import write_sums
from ridgeline.graph.offline.cuda_text import CudaText
from ridgeline.graph.offline.ir import NotCovered, RowProgram
from ridgeline.graph.offline.schedule import Plan, make_plan
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
"""What in the text calls for which native section."""


def emit(
    program: RowProgram, signature: Signature, structures: frozenset[str], device: Device, variation: int = 0
) -> str:
    """Return the whole source of a kernel with these structures; they must be compatible and applicable.

    Raises:
        NotCovered: the device cannot hold what the structures keep on the chip.
    """
    plan, keeps = planned(program, structures)
    geometry = fit(program, structures, demand(program, structures, keeps), device, variation)
    loads = staged(program) if S.ASYNC in structures else []
    text = CudaText(plan=plan, keeps=keeps, signature=signature, structures=structures, geometry=geometry, staged=loads)
    _name_loads(text)
    return _source(text, device)


def planned(program: RowProgram, structures: frozenset[str]) -> tuple[Plan, Keeps]:
    """Return the sweeps and what they keep for each other.

    Raises:
        NotCovered: there is nothing to compute for each column.
    """
    plan = make_plan(program, moments=S.MOMENTS in structures, online=S.ONLINE in structures)
    if not plan.sweeps:
        raise NotCovered("a result that does not depend on a row's elements")
    holds = S.REGISTERS in structures or S.SHARED in structures
    return plan, keep_row(plan) if holds else nothing(plan)


def demand(program: RowProgram, structures: frozenset[str], keeps: Keeps) -> Demand:
    """Return what a block holds for each column."""
    return Demand(
        register_slots=keeps.slots if S.REGISTERS in structures else 0,
        shared_slots=keeps.slots if S.SHARED in structures else 0,
        staged_bytes=sum(element_bytes(load.dtype) for load in staged(program)) if S.ASYNC in structures else 0,
    )


def _source(text: CudaText, device: Device) -> str:
    write_constants(text, device)
    constants, text.lines = text.lines, []
    for index, sweep in enumerate(text.plan.sweeps):
        if sweep.reductions:
            write_sums(text, index)
    write_board(text)
    write_kernels(text)
    write_run(text)
    body = "\n".join(text.lines)
    names = [name for name, mark in MARKS.items() if mark in body]
    names += ["all"] if "rl_all<" in body else []
    if "online" in names and text.has(S.FAST):
        names.append("exp")
    header = header_of(s for s in S if s in text.structures)
    native = sections(names, "rowcuda.h")
    return "\n".join([header, *constants, "", native, body]) + "\n"


def _name_loads(text: CudaText) -> None:
    counts: dict[str, int] = {}
    for value in text.program.values():
        if value.load is not None:
            argument = value.load.argument
            counts[argument] = counts.get(argument, 0) + 1
            again = f"_{counts[argument]}" if counts[argument] > 1 else ""
            text.pointers[value.load] = f"{argument}_at{again}"
