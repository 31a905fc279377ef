"""The sentences that Nsight Compute's counters become."""

from ridgeline.tools.profile.counter_notes import advice, rates
from ridgeline.tools.profile.gpu_counters import (
    ACHIEVED_PCT,
    DURATION_NS,
    FMA_PCT,
    POSSIBLE_PCT,
    SPECIAL_PIPES,
    TENSOR_PIPES,
    WAVES,
    KernelCounters,
    bytes_of_a_call,
)  # fmt: skip

LOADS = "l1tex__t_{}_pipe_lsu_mem_global_op_ld.sum"
EFFICIENCY = "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct"
WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"
LOCAL = "l1tex__t_bytes_pipe_lsu_mem_local_op_ld.sum"
PAGE = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"


def _notes(*launches: KernelCounters, ceiling: float = 4300.0, compulsory: int = 8 << 20) -> str:
    return "\n".join([*advice(launches, compulsory_bytes=compulsory), *rates(launches, ceiling_gbps=ceiling)])


def _kernel(name: str = "k", **metrics: float) -> KernelCounters:
    return KernelCounters(name=name, metrics={DURATION_NS: 1e6} | metrics)


def test_uncoalesced_loads_are_named_with_what_would_do() -> None:
    text = _notes(_kernel(**{LOADS.format("requests"): 32768.0, LOADS.format("sectors"): 1048576.0, EFFICIENCY: 12.5}))
    assert "uncoalesced global loads: 32 sectors a request where 4 would do" in text


def test_vector_loads_of_16_sectors_are_coalesced() -> None:
    wide = {LOADS.format("requests"): 100.0, LOADS.format("sectors"): 1600.0, EFFICIENCY: 100.0}
    assert "uncoalesced" not in _notes(_kernel(**wide))


def test_bank_conflicts_are_named_with_their_ways() -> None:
    assert "shared-memory bank conflicts: 16-way loads (94% of their passes)" in _notes(
        _kernel(**{WAVEFRONTS: 1600.0, CONFLICTS: 1500.0})
    )
    assert "bank conflicts" not in _notes(_kernel(**{WAVEFRONTS: 1000.0, CONFLICTS: 20.0}))


def test_local_memory_traffic_is_named_as_spills_and_a_trace_of_it_is_not() -> None:
    assert "register spills: 12.3 MB local memory traffic" in _notes(_kernel(**{LOCAL: 12.3e6}))
    assert "spills" not in _notes(_kernel(**{LOCAL: 1e3, LOADS.format("sectors"): 1e6}))


def test_occupancy_names_what_limits_it() -> None:
    text = _notes(
        _kernel(**{
            ACHIEVED_PCT: 24.0, POSSIBLE_PCT: 25.0, WAVES: 0.48, "launch__occupancy_limit_registers": 2.0,
            "launch__occupancy_limit_shared_mem": 5.0, "launch__occupancy_limit_warps": 8.0,
        })
    )  # fmt: skip
    assert "achieved occupancy 24 % of 25 % possible, limited by registers" in text
    assert "the grid fills 48% of the GPU's multiprocessors" in text


def test_memory_and_tensor_pipe_are_told_as_shares() -> None:
    text = _notes(_kernel(**{"dram__bytes_read.sum": 3.784e9, TENSOR_PIPES[0]: 34.0}), compulsory=4_000_000_000)
    assert "DRAM at 88% of the ceiling (3784 GB/s)" in text
    assert "tensor pipe 34 %: feed it earlier" in text


def test_a_busy_special_function_unit_is_named_and_what_to_do_where_it_limits() -> None:
    limiting = _notes(_kernel(**{SPECIAL_PIPES[0]: 81.0, TENSOR_PIPES[0]: 40.0}))
    assert "special function unit 81 %: special functions (exp, …) limit this kernel: do fewer" in limiting
    beside = _notes(_kernel(**{SPECIAL_PIPES[0]: 45.0, TENSOR_PIPES[0]: 70.0}))
    assert "special function unit 45 %" in beside and "limit this kernel" not in beside
    alike = _notes(_kernel(**{SPECIAL_PIPES[0]: 65.0, TENSOR_PIPES[0]: 64.9}))
    assert "special function unit 65 %" in alike and "limit this kernel" not in alike
    both = _notes(_kernel(**{SPECIAL_PIPES[0]: 65.0, FMA_PCT: 62.0}))
    assert "fp32 pipe 62 %" in both and "special function unit 65 %" in both and "limit" not in both
    assert "arithmetic on it limits" in _notes(_kernel(**{SPECIAL_PIPES[0]: 45.0, FMA_PCT: 70.0}))
    assert "limit this kernel" in _notes(_kernel(**{SPECIAL_PIPES[0]: 91.0, TENSOR_PIPES[0]: 85.0}))
    assert "special function" not in _notes(_kernel(**{SPECIAL_PIPES[0]: 5.0}))


def test_longest_wait_is_named_when_it_dominates() -> None:
    waits = {PAGE.format("long_scoreboard"): 8.0, PAGE.format("wait"): 2.0}
    assert "warps wait mostly for loads from global or local memory (80% of their waiting)" in _notes(_kernel(**waits))


def test_traffic_beyond_the_compulsory_bytes_is_counted_over_one_call() -> None:
    launches = [_kernel(name, **{"dram__bytes_read.sum": 10e6}) for name in ("a", "b") * 3]
    assert bytes_of_a_call(launches) == 20e6
    text = _notes(*launches, compulsory=8_000_000)
    assert "a call moves 20 MB through the GPU's memory, 2.5 x the compulsory bytes" in text
    assert "2 kernels: a 1000 us, b 1000 us" in text
    assert bytes_of_a_call(launches[:4]) is None  # not three whole calls
