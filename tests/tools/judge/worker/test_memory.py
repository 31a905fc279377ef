"""Where tensors lie in the judge's memory, what lies behind outputs, and what the sets take."""

from __future__ import annotations

from ridgeline.tools.judge.set_count import WORKING_SETS
from ridgeline.tools.judge.worker.device import Cpu
from ridgeline.tools.judge.worker.memory import ArenaMemory
from ridgeline.tools.judge.worker.regions import LEAST_BYTES
from ridgeline.tools.records.problem import ArgSpec, Signature
from ridgeline.tools.records.vocabulary import ArgKind, Role


def spec(name: str, role: Role, numel: int) -> ArgSpec:
    return ArgSpec(
        name=name, kind=ArgKind.TENSOR, role=role, dtype="float32", shape=(numel,), strides=(1,), source=name
    )


def memory_of(*specs: ArgSpec) -> ArenaMemory:
    return ArenaMemory(Signature(args=specs), device=Cpu(), cache_bytes=1 << 20, memory_bytes=1 << 30)


def test_all_bytes_from_an_output_s_last_one_to_the_next_tensor_are_behind_it() -> None:
    memory = memory_of(spec("a", Role.OUTPUT, 100), spec("b", Role.OUTPUT, LEAST_BYTES // 4))
    for i in range(memory.n_sets):
        (a, b), (behind_a, behind_b) = memory.outputs[i], memory.behind_outputs[i]
        assert behind_a.data_ptr() == a.data_ptr() + a.nbytes
        assert behind_a.data_ptr() + behind_a.nbytes == b.data_ptr()
        assert behind_b.data_ptr() == b.data_ptr() + b.nbytes
        assert behind_b.nbytes == LEAST_BYTES, "also where it ends with its page"
        if i + 1 < memory.n_sets:
            assert behind_b.data_ptr() + behind_b.nbytes == memory.outputs[i + 1][0].data_ptr()


def test_a_set_takes_its_inputs_and_outputs_and_all_sets_what_grading_needs_beside_them() -> None:
    memory = memory_of(
        spec("x", Role.INPUT, 100), spec("w", Role.PARAMETER, 100_000), spec("out", Role.OUTPUT, LEAST_BYTES // 4 + 1)
    )
    assert memory.set_bytes == (1 + 2) * LEAST_BYTES, "whole pages, no parameter and nothing behind a tensor"
    assert memory.taken_bytes == (memory.n_sets + WORKING_SETS) * memory.set_bytes
