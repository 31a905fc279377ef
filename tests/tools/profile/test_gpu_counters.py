"""Nsight Compute's output in both of its forms, and the sentences that its counters become."""

import pytest

from ridgeline.tools.profile.gpu_counters import (
    ACHIEVED_PCT,
    DURATION_NS,
    METRICS,
    POSSIBLE_PCT,
    TENSOR_PCT,
    WAVES,
    KernelCounters,
    _counted,
    bytes_of_a_call,
    counter_notes,
    ncu_failure,
    ncu_options,
    read_ncu,
)

LOADS = "l1tex__t_{}_pipe_lsu_mem_global_op_ld.sum"
EFFICIENCY = "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct"
WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"
LOCAL = "l1tex__t_bytes_pipe_lsu_mem_local_op_ld.sum"
PAGE = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"

RAW = """==PROF== Connected to process 4242 (/cache/host/host)
==PROF== Profiling "uncoalesced" - 0: 0%....50%....100% - 5 passes
the candidate may print "anything", too
==PROF== Disconnected from process 4242
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC",\
"dram__bytes_read.sum","gpu__time_duration.sum","l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",\
"l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum","smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct"
"","","","","","","","","","","","byte","ns","","","%"
"0","4242","host","127.0.0.1","uncoalesced","1","13","(256, 1, 1)","(4096, 1, 1)","0","9.0","4,194,304","21,344","32,768",\
"1,048,576","12.50"
"1","4242","host","127.0.0.1","uncoalesced","1","13","(256, 1, 1)","(4096, 1, 1)","0","9.0","4,194,304","20,000","32,768",\
"1,048,576","n/a"
"""
LONG = """==PROF== Connected to process 1
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC",\
"Section Name","Metric Name","Metric Unit","Metric Value"
"0","1","host","127.0.0.1","first","1","7","(256, 1, 1)","(4, 1, 1)","0","9.0","Command line profiler metrics",\
"gpu__time_duration.sum","ns","1,504"
"0","1","host","127.0.0.1","first","1","7","(256, 1, 1)","(4, 1, 1)","0","9.0","Command line profiler metrics",\
"dram__bytes_read.sum","byte","128"
"1","1","host","127.0.0.1","second","1","7","(256, 1, 1)","(4, 1, 1)","0","9.0","Command line profiler metrics",\
"gpu__time_duration.sum","ns","900"
"""


def test_raw_page_gives_a_launch_for_each_row_and_no_units() -> None:
    first, second = read_ncu(RAW)
    assert first.name == "uncoalesced"
    assert first.metrics == {
        "dram__bytes_read.sum": 4194304.0,
        DURATION_NS: 21344.0,
        LOADS.format("requests"): 32768.0,
        LOADS.format("sectors"): 1048576.0,
        EFFICIENCY: 12.5,
    }
    assert EFFICIENCY not in second.metrics  # "n/a"
    assert second.get(EFFICIENCY) == 0.0


def test_rows_of_single_metrics_are_gathered_by_launch() -> None:
    first, second = read_ncu(LONG)
    assert (first.name, first.get(DURATION_NS), first.dram_bytes) == ("first", 1504.0, 128.0)
    assert (second.name, second.metrics) == ("second", {DURATION_NS: 900.0})


@pytest.mark.parametrize("output", ["", "==ERROR== something\n", '"ID","Kernel Name"\n', "no table\n"])
def test_output_without_a_launch_is_none(output: str) -> None:
    assert read_ncu(output) == ()


def _notes(*launches: KernelCounters, ceiling: float = 4300.0, compulsory: int = 8 << 20) -> str:
    return "\n".join(counter_notes(launches, ceiling_gbps=ceiling, compulsory_bytes=compulsory))


def _kernel(name: str = "k", **metrics: float) -> KernelCounters:
    return KernelCounters(name=name, metrics={DURATION_NS: 1e6} | metrics)


def test_uncoalesced_loads_are_named_with_what_would_do() -> None:
    text = _notes(*read_ncu(RAW)[:1])
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
    text = _notes(_kernel(**{"dram__bytes_read.sum": 3.784e9, TENSOR_PCT: 34.0}), compulsory=4_000_000_000)
    assert "DRAM at 88% of the ceiling (3784 GB/s)" in text
    assert "tensor pipe 34 %: feed it earlier" in text


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


def test_metrics_that_this_gpu_lacks_are_asked_for_no_more() -> None:
    asked: list[tuple[str, ...]] = []

    def attempt(metrics: tuple[str, ...]) -> tuple[bool, str]:
        asked.append(tuple(metrics))
        if TENSOR_PCT in metrics:
            return False, f"==ERROR== Failed to find metric {TENSOR_PCT}\n"
        if WAVES in metrics:
            return False, f"==ERROR== Failed to find metric regex:^{WAVES}(\\.(sum|min))?$\n"
        return True, RAW

    launches, reason = _counted(attempt, METRICS)  # type: ignore[arg-type]  # sequences are passed as tuples here
    assert reason == "" and len(launches) == 2
    assert len(asked) == 3
    assert set(asked[0]) - set(asked[2]) == {TENSOR_PCT, WAVES}


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (
            "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access\n",
            "NVreg_RestrictProfilingToAdmin",
        ),
        ("==ERROR== Failed to initialize the profiler: LibraryNotLoaded\n", "LibraryNotLoaded"),
        ("", "it printed nothing"),
    ],
)
def test_profiler_that_does_not_work_is_one_line(output: str, said: str) -> None:
    launches, reason = _counted(lambda _: (False, output), METRICS)
    assert launches == ()
    assert reason.startswith("no hardware counters: ") and said in reason and "\n" not in reason
    assert said in ncu_failure(output)


def test_clocks_are_left_alone() -> None:
    options = ncu_options(("a__b.sum", "c__d.sum"))
    assert options[options.index("--clock-control") + 1] == "none"
    assert options[-1] == "a__b.sum,c__d.sum"
    assert len(set(METRICS)) == len(METRICS)
