"""The requests of a search of three rounds, made without a search: what prompts are measured and shown with.

The problems and the kernels are those that ship. Kernels of later rounds are relatives of a seed: a few of its lines are
changed, and a stretch is added.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ridgeline.graph.models.requests import Elite, IdeaDraft, IdeationRequest, KernelRequest, Subject, TriedIdea
from ridgeline.graph.search.context import subject_of
from ridgeline.problems.spec import load_problem, shipped_problems
from ridgeline.tools.records.baselines import Baseline, Baselines, Floor
from ridgeline.tools.records.keys import attempt_id, idea_id
from ridgeline.tools.records.problem import ArgSpec, DescribedTarget, Description, Device, DeviceFact, Signature
from ridgeline.tools.records.reference_mode import ReferenceMode
from ridgeline.tools.records.vocabulary import Category, DeviceKind, Interface, PrecisionClass, ReasonCode, Role

ROUNDS, IDEAS, IMPLEMENTATIONS = 3, 4, 2
CPU = Device(
    kind=DeviceKind.CPU, name="Intel(R) Xeon(R) Platinum 8481C", arch="sapphirerapids-1f0c", uuid="cpu", cores=8,
    memory_bytes=64 << 30, cache_bytes=105 << 20,
)  # fmt: skip
GPU = Device(
    kind=DeviceKind.CUDA, name="NVIDIA H200", arch="sm_90a", uuid="GPU-0", cores=132, memory_bytes=141 << 30,
    cache_bytes=50 << 20,
)  # fmt: skip
MECHANISM = (
    "Each thread keeps a tile of the output in registers across the inner loop and loads the operands of the next step "
    "before it multiplies those of this one, so that the loads' latency is hidden behind arithmetic. The tile is chosen "
    "to fill the registers without spilling, and the tail of the loop is handled by a second copy with bounds."
)
DIAGNOSIS = (
    "compute-bound, at 31% of the memory floor's rate, 212.4 GB/s, 814.0 GFLOP/s. vectorised with 512-bit registers. 38% of "
    "the time waits for loads that miss the second-level cache. The inner loop has 2 stores to the stack in each step."
)
FACTS = {
    DeviceKind.CPU: (
        ("instruction set", "AVX-512 (F, BW, DQ, VL, VNNI, BF16, FP16), AMX (int8, bf16), FMA"),
        ("vector registers", "32 of 64 bytes; 2 FMA units a core"),
        ("L1 data cache", "48 KiB a core"), ("L2 cache", "2 MiB a core"), ("L3 cache", "105 MiB"),
        ("memory bandwidth", "193 GB/s"), ("compiler", "g++ 12.2"),
    ),
    DeviceKind.CUDA: (
        ("shared memory", "227 KiB a block, 228 KiB a multiprocessor"), ("registers", "65536 a multiprocessor, 255 a thread"),
        ("L1 and shared memory", "256 KiB a multiprocessor"), ("L2 cache", "50 MiB"),
        ("warps", "64 a multiprocessor"), ("tensor cores, measured", "fp16 743 TFLOP/s, tf32 366 TFLOP/s"),
        ("memory bandwidth", "4230 GB/s"), ("compiler", "nvcc 12.8"),
    ),
}  # fmt: skip
CEILINGS = {DeviceKind.CPU: (193.4, 2600.0, "fp32"), DeviceKind.CUDA: (4230.0, 743_000.0, "fp16")}
TITLES = (
    "Tile the output in registers", "Pack the operand once", "Prefetch the next step", "Split the reduction in two",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One problem on one device, with a kernel that its search starts from."""

    name: str
    device: Device
    seed_kernel: str  # the stem of the seed kernel
    args: tuple[ArgSpec, ...]
    flops: int


def tensor(name: str, role: Role, *shape: int, dtype: str = "float32", source: str = "") -> ArgSpec:
    """Return a contiguous tensor."""
    strides: list[int] = [1]
    for size in shape[:0:-1]:
        strides.insert(0, strides[0] * size)
    return ArgSpec(name=name, role=role, dtype=dtype, shape=shape, strides=tuple(strides), source=source)


CASES = {
    "cpu_fp32": Case(
        name="quickstart", device=CPU, seed_kernel="fused", flops=0,
        args=(
            tensor("x", Role.INPUT, 2048, 768),
            tensor("residual", Role.INPUT, 2048, 768),
            tensor("bias", Role.PARAMETER, 768),
            tensor("norm_weight", Role.PARAMETER, 768, source="norm.weight"),
            tensor("norm_bias", Role.PARAMETER, 768, source="norm.bias"),
            tensor("out", Role.OUTPUT, 2048, 768),
        ),
    ),
    "cpu_convolution": Case(
        name="conv2d_relu_maxpool", device=CPU, seed_kernel="rolling_rows", flops=1_686_528_000,
        args=(
            tensor("x", Role.INPUT, 8, 3, 224, 224),
            tensor("conv_weight", Role.PARAMETER, 96, 3, 11, 11, source="conv.weight"),
            tensor("conv_bias", Role.PARAMETER, 96, source="conv.bias"),
            tensor("out", Role.OUTPUT, 8, 96, 27, 27),
        ),
    ),
    "cuda_half": Case(
        name="matmul_fp16", device=GPU, seed_kernel="mma_pipeline", flops=137_438_953_472,
        args=tuple(
            tensor(name, role, 4096, 4096, dtype="float16")
            for name, role in (("a", Role.INPUT), ("b", Role.INPUT), ("out", Role.OUTPUT))
        ),
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """The requests of one case, in the order in which a search sends them."""

    case: Case
    target: DescribedTarget
    seed_source: str

    @property
    def subject(self) -> Subject:
        """Return the problem, with a device's table."""
        facts = tuple(DeviceFact(name=name, value=value) for name, value in FACTS[self.case.device.kind])
        return dataclasses.replace(subject_of(self.target), facts=facts)

    @property
    def seed_kernel(self) -> Elite:
        """Return the kernel that the search begins with."""
        return Elite(
            candidate_id=f"seed-{self.case.seed_kernel}", idea_title="seed kernel", source=self.seed_source, median_ms=2.0,
            speedup=0.9, diagnosis=DIAGNOSIS,
        )  # fmt: skip

    def baselines(self, round_: int) -> Baselines:
        """Return PyTorch's times as a round is told them: eager alone in the first."""
        modes = (ReferenceMode.EAGER, ReferenceMode.COMPILE, ReferenceMode.MAX_AUTOTUNE)[: 1 if round_ == 1 else 3]
        entries = tuple(
            Baseline(name=mode, precision_class=PrecisionClass.FP32, median_ms=1.8 - 0.3 * n)
            for n, mode in enumerate(modes)
        )
        gbps, gflops, unit = CEILINGS[self.case.device.kind]
        floor_ms = self.target.description.compulsory_bytes / gbps / 1e6
        compute_ms = self.case.flops / gflops / 1e6
        floor = Floor(
            floor_ms=floor_ms, compute_floor_ms=compute_ms, bound="compute" if compute_ms > floor_ms else "memory",
            bandwidth_gbps=gbps, gflops=gflops, unit=unit,
        )  # fmt: skip
        return Baselines(device=self.case.device, entries=entries, floor=floor)

    def relative(self, round_: int, number: int) -> Elite:
        """Return a kernel of the seed's lineage."""
        lines = self.seed_source.splitlines()
        for past in range(1, round_):
            lines = _changed(lines, past, 0)
        swept = {
            "idea_id": idea_id(round_, number),
            "sweep": (
                "BLOCK=128: 1.70x (1.66-1.73)",
                "BLOCK=64: 1.57x (1.53-1.60)",
                "as written: 1.49x (1.45-1.52)",
            ),
        }
        return Elite(
            **_known(Elite, swept), candidate_id=attempt_id(idea_id(round_, number), 0, 0), idea_title=TITLES[number],
            source="\n".join(_changed(lines, round_, number)) + "\n", median_ms=1.6 - 0.3 * round_ - 0.02 * number,
            speedup=1.1 + 0.3 * round_,
            speedup_ci95=(1.07 + 0.3 * round_, 1.13 + 0.3 * round_),
            diagnosis=DIAGNOSIS.replace("31", str(30 * round_ + number)),
        )  # fmt: skip

    def elites(self, round_: int) -> tuple[Elite, ...]:
        """Return the kernels that a round starts from: the seed, then the four of the round before."""
        return (self.seed_kernel,) if round_ == 1 else tuple(self.relative(round_ - 1, n) for n in range(IDEAS))

    def tried(self, round_: int) -> tuple[TriedIdea, ...]:
        """Return the ideas of the rounds before: those of the last one in full, older ones as a digest."""
        return tuple(
            self._tried(past, n, is_last=past == round_ - 1) for past in range(1, round_) for n in range(IDEAS)
        )

    def _tried(self, round_: int, number: int, *, is_last: bool) -> TriedIdea:
        told: dict[str, Any] = {}
        best = self.relative(round_, number)
        if is_last:
            told = {
                "before": self.elites(round_)[0].diagnosis,
                "after": best.diagnosis,
                "ends": (
                    f"{best.candidate_id}: ok, {best.speedup:.3f}x eager",
                    f"{attempt_id(idea_id(round_, number), 1, 0)}: wrong (wrong_values): the last row of each block differs",
                ),
                "sweep": best.sweep,
            }
        return TriedIdea(
            id=idea_id(round_, number), title=TITLES[number], mechanism=MECHANISM, category=list(Category)[number],
            parent_id=self.elites(round_)[0].candidate_id, best_candidate_id=best.candidate_id,
            best_speedup=best.speedup, predicted_gain=1.3, gain=1.2, **told,
        )  # fmt: skip

    def ideation(self, round_: int) -> IdeationRequest:
        """Return a round's request for ideas."""
        given: dict[str, Any] = {
            "subject": self.subject, "baselines": self.baselines(round_), "round": round_, "count": IDEAS,
            "rng_seed": 7, "tried": self.tried(round_), "elites": self.elites(round_),
            "implementations": IMPLEMENTATIONS,
        }  # fmt: skip
        return IdeationRequest(**_known(IdeationRequest, given))

    def kernel(self, round_: int, number: int, variation: int, **fields: Any) -> KernelRequest:
        """Return the request for one kernel of a round; the first idea of the first round starts from nothing."""
        parent = None if (round_, number) == (1, 0) else self.elites(round_)[0]
        idea = IdeaDraft(
            title=TITLES[number], mechanism=MECHANISM, category=list(Category)[number], predicted_gain=1.3,
            parent_id=parent.candidate_id if parent else None,
        )  # fmt: skip
        plan = (
            f"Blocks of {32 << variation} rows, the operand packed by {'the caller' if variation else 'each thread'}."
        )
        return KernelRequest(
            subject=self.subject, baselines=self.baselines(round_), idea=idea, variation=variation,
            rng_seed=7, parent=parent, plan=plan, **fields,
        )  # fmt: skip

    def repair(self, round_: int, number: int) -> KernelRequest:
        """Return the request for a repair of the second implementation."""
        failure = "wrong (wrong_values): out differs in 12 % of its elements, all in the last row of each block of 32"
        failed = self.relative(round_, number).source
        return self.kernel(
            round_, number, 1, failure=failure, failed_source=failed, failure_code=ReasonCode.WRONG_VALUES
        )

    def requests(self) -> Iterator[IdeationRequest | KernelRequest]:
        """Yield every request in order, with a repair in each round."""
        for round_ in range(1, ROUNDS + 1):
            yield self.ideation(round_)
            for number in range(IDEAS):
                for variation in range(IMPLEMENTATIONS):
                    yield self.kernel(round_, number, variation)
            yield self.repair(round_, IDEAS - 1)


def scenario(name: str) -> Scenario:
    """Return the scenario of one of CASES."""
    case = CASES[name]
    problem = load_problem(shipped_problems()[case.name])
    kind = case.device.kind.value
    description = Description(
        signature=Signature(args=case.args), reference_graph=None, flops=case.flops, reference_sha256="",
        torch_version="2.13",
        compulsory_bytes=sum(4 * _numel(arg.shape) // (2 if arg.dtype == "float16" else 1) for arg in case.args),
    )  # fmt: skip
    target = DescribedTarget(
        name=case.name, reference_source=problem.reference_source(kind), interface=Interface.C,
        tolerance=PrecisionClass(problem.tolerance), device=case.device, description=description,
    )  # fmt: skip
    return Scenario(case=case, target=target, seed_source=dict(problem.seed_sources(kind))[case.seed_kernel])


def _changed(lines: Sequence[str], round_: int, number: int) -> list[str]:
    """Return a source with a constant changed and, but for a round's best, a twentieth of its lines rewritten."""
    count, at = len(lines) // 20 if number else 0, len(lines) * (number + 1) // (IDEAS + 2)
    rewritten = [f"{line}  // as in {round_}.{number}" for line in lines[at : at + count]]
    changed = [*lines[:at], *rewritten, *lines[at + count :]]
    changed[len(lines) // 12] += f"  // {8 << number}"
    return changed


def _numel(shape: Sequence[int]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def _known(record: type, given: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that the record has: the script also measures a version before some of them."""
    names = {field.name for field in dataclasses.fields(record)}
    return {name: value for name, value in given.items() if name in names}
