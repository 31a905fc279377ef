"""Requests as the nodes make them."""

from __future__ import annotations

from ridgeline.graph.models.requests import Elite, IdeaDraft, IdeationRequest, KernelRequest, Subject, TriedIdea
from ridgeline.tools.engine import BaselineTask
from ridgeline.tools.records.search import BuildingBlock
from ridgeline.tools.records.vocabulary import Category, Interface, PrecisionClass
from tests.graph.memory_engine import DESCRIPTION, DEVICE, MemoryEngine, target

BLOCK = BuildingBlock(
    name="gemm.cpp", words="a product at 88 % of the peak", language="cpp", source="int gemm;\n" * 999
)


def subject() -> Subject:
    """Return the toy problem's subject."""
    return Subject(
        problem_name="toy",
        reference_source="class Model: ...",
        header="// problem.h",
        interface=Interface.C,
        language="cpp",
        tolerance=PrecisionClass.FP32,
        device=DEVICE,
        description=DESCRIPTION,
    )


BASELINES = MemoryEngine()._baseline(BaselineTask(problem=target()))
ELITE = Elite(candidate_id="seed-naive", idea_title="seed kernel", source="// the seed", median_ms=8.0, speedup=1.25)
IDEA = IdeaDraft(
    title="Keep the row in registers", mechanism="one pass over memory instead of two", category=Category.MEMORY_ACCESS
)
TRIED = TriedIdea(
    id="r1i0",
    title="Unroll by four",
    mechanism="fewer branches",
    category=Category.CONTROL_FLOW,
    parent_id=None,
    best_candidate_id="r1i0v0a0",
    best_speedup=1.3,
)


def ideation(count: int = 2, **fields: object) -> IdeationRequest:
    """Return a request for ideas."""
    given = {"subject": subject(), "baselines": BASELINES, "round": 2, "count": count, "rng_seed": 7}
    given |= {"tried": (TRIED,), "elites": (ELITE,)}
    return IdeationRequest(**{**given, **fields})  # type: ignore[arg-type]


def kernel(**fields: object) -> KernelRequest:
    """Return a request for a kernel."""
    given = {"subject": subject(), "baselines": BASELINES, "idea": IDEA, "variation": 0, "rng_seed": 7, "parent": ELITE}
    return KernelRequest(**{**given, **fields})  # type: ignore[arg-type]
