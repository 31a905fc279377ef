"""Nsight Compute's options and its output in both of its forms."""

import pytest

from ridgeline.tools.profile.gpu_counters import (
    DURATION_NS,
    METRICS,
    SPECIAL_PIPES,
    TENSOR_PIPES,
    WAVES,
    _counted,
    ncu_failure,
    ncu_options,
    read_ncu,
)

EFFICIENCY = "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct"
LOADS = "l1tex__t_{}_pipe_lsu_mem_global_op_ld.sum"

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
PIPES = f"""==PROF== Connected to process 1
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC",\
"{TENSOR_PIPES[0]}","{TENSOR_PIPES[2]}","{TENSOR_PIPES[3]}","{SPECIAL_PIPES[0]}","{SPECIAL_PIPES[1]}"
"","","","","","","","","","","","%","%","%","%","%"
"0","1","host","127.0.0.1","wgmma","1","7","(384, 1, 1)","(132, 1, 1)","0","9.0","62.40","5.50","2.75","41.00","38.50"
"1","1","host","127.0.0.1","other","1","7","(384, 1, 1)","(132, 1, 1)","0","9.0","n/a","nan","","nan","12.00"
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


def test_metrics_that_this_gpu_lacks_are_asked_for_no_more() -> None:
    asked: list[tuple[str, ...]] = []

    def attempt(metrics: tuple[str, ...]) -> tuple[bool, str]:
        asked.append(tuple(metrics))
        if TENSOR_PIPES[1] in metrics:
            return False, "".join(f"==ERROR== Failed to find metric {metric}\n" for metric in TENSOR_PIPES[1:])
        if WAVES in metrics:
            return False, f"==ERROR== Failed to find metric regex:^{WAVES}(\\.(sum|min))?$\n"
        return True, RAW

    launches, reason = _counted(attempt, METRICS)  # type: ignore[arg-type]  # sequences are passed as tuples here
    assert reason == "" and len(launches) == 2
    assert len(asked) == 3
    assert set(asked[0]) - set(asked[2]) == {*TENSOR_PIPES[1:], WAVES}


def test_an_unknown_metric_that_ncu_does_not_name_costs_those_alone_that_not_every_gpu_has() -> None:
    asked: list[tuple[str, ...]] = []

    def attempt(metrics: tuple[str, ...]) -> tuple[bool, str]:
        asked.append(tuple(metrics))
        is_refused = SPECIAL_PIPES[0] in metrics
        return (False, "==ERROR== Some metrics are not available on this device\n") if is_refused else (True, RAW)

    launches, reason = _counted(attempt, METRICS)  # type: ignore[arg-type]  # sequences are passed as tuples here
    assert reason == "" and len(launches) == 2
    assert [set(asked[0]) - set(metrics) for metrics in asked] == [set(), {*TENSOR_PIPES, *SPECIAL_PIPES}]


def test_of_several_metrics_of_a_pipe_the_largest_that_the_gpu_has_counts() -> None:
    """A wgmma is one instruction of many cycles: instructions alone say that an H100's tensor cores idle."""
    hopper, other = read_ncu(PIPES)
    assert (hopper.tensor_pct, hopper.special_pct) == (62.4, 41.0)
    assert (other.tensor_pct, other.special_pct) == (0.0, 12.0)
    assert other.largest(TENSOR_PIPES) is None


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
