"""A captured graph counts only where it computes on contents that came after the capture."""

from collections.abc import Sequence

import pytest
from tests.tools.measure.answering import Answering

from ridgeline.tools.judge.messages import Check, Renew
from ridgeline.tools.judge.replies import Renewed
from ridgeline.tools.measure.graph_timing import CALLS, REPLAYS, time_graph, with_graph_time
from ridgeline.tools.records.results import Timing, Trial
from ridgeline.tools.records.vocabulary import DeviceKind, Label, ReasonCode, Status
from ridgeline.tools.runner.failures import RunnerFailure
from ridgeline.tools.runner.loop_time import LoopTime


class NumberJudge(Answering):
    """A judge of sets of one number each; an output is right when it is twice the input."""

    device_kind = DeviceKind.CUDA

    def __init__(self, n_sets: int) -> None:
        super().__init__(n_sets)
        self.renewals = 0
        self.inputs = [0.0] * n_sets
        self.outputs = [0.0] * n_sets

    def renew(self, _request: Renew) -> Renewed:
        self.renewals += 1
        self.inputs = [100.0 * self.renewals + i for i in range(self.n_sets)]
        self.outputs = [-1.0] * self.n_sets
        return Renewed(slowdown=0.0)

    def check(self, request: Check) -> Trial:
        passed = self.outputs[request.set_index] == 2 * self.inputs[request.set_index]
        return Trial(name="graph", rel_error=0.0 if passed else 1.0, gate=1e-5, passed=passed)


class Recorder:
    """A runner whose replays take 1 ms, 2 ms, 3 ms, …"""

    def __init__(self, judge: NumberJudge, *, can_capture: bool = True, is_stale: bool = False) -> None:
        self.judge = judge
        self.can_capture = can_capture
        self.is_stale = is_stale
        self.captured: tuple[int, ...] = ()
        self.kept: list[float] = []
        self.replays = 0

    def capture(self, sets: Sequence[int]) -> bool:
        self.captured = tuple(sets)
        self.kept = [2 * x for x in self.judge.inputs]
        return self.can_capture

    def replay(self) -> LoopTime:
        self.replays += 1
        self.judge.outputs = self.kept if self.is_stale else [2 * x for x in self.judge.inputs]
        return LoopTime(parent_s=1.0, own_s=1e-3 * self.replays)


@pytest.mark.parametrize(("n_sets", "calls"), [(512, CALLS), (5, 5)])
def test_a_call_takes_the_median_replay_over_its_calls(n_sets: int, calls: int) -> None:
    judge = NumberJudge(n_sets)
    runner = Recorder(judge)
    assert time_graph(runner, judge) == pytest.approx((REPLAYS + 1) / 2 / calls)
    assert runner.captured == tuple(range(calls))
    assert judge.renewals == runner.replays == REPLAYS


def test_calls_that_cannot_be_captured_have_no_time() -> None:
    judge = NumberJudge(8)
    runner = Recorder(judge, can_capture=False)
    assert time_graph(runner, judge) is None
    assert runner.replays == 0


def test_a_graph_that_replays_the_results_of_the_capture_has_no_time() -> None:
    judge = NumberJudge(8)
    runner = Recorder(judge, is_stale=True)
    assert time_graph(runner, judge) is None
    assert runner.replays == 1


class EndsWhenCaptured(Recorder):
    """A runner whose host ends in the capture."""

    def __init__(self, reason_code: ReasonCode) -> None:
        super().__init__(NumberJudge(8))
        self.reason_code = reason_code

    def capture(self, sets: Sequence[int]) -> bool:
        raise RunnerFailure(self.reason_code, "ended in the capture")


LAUNCH_BOUND = Timing(status=Status.OK, median_ms=0.01, labels=(Label.LAUNCH_BOUND,))


def test_only_a_gpus_launch_bound_kernel_has_a_graph_time() -> None:
    runner = Recorder(NumberJudge(8))
    assert with_graph_time(LAUNCH_BOUND, runner, runner.judge).graph_ms is not None
    busy = Timing(status=Status.OK, median_ms=1.0)
    assert with_graph_time(busy, runner, runner.judge) is busy
    runner.judge.device_kind = DeviceKind.CPU
    assert with_graph_time(LAUNCH_BOUND, runner, runner.judge) is LAUNCH_BOUND


def test_a_kernel_that_cannot_be_captured_has_a_time_and_no_graph_time() -> None:
    timing = with_graph_time(LAUNCH_BOUND, EndsWhenCaptured(ReasonCode.CUDA_ERROR), NumberJudge(8))
    assert (timing.status, timing.median_ms, timing.graph_ms) == (Status.OK, 0.01, None)


@pytest.mark.parametrize(
    "reason_code", [ReasonCode.CRASHED, ReasonCode.CALL_TIMEOUT, ReasonCode.PROTOCOL_VIOLATED, ReasonCode.EXITED]
)
def test_a_kernel_that_dies_otherwise_in_a_capture_has_failed(reason_code: ReasonCode) -> None:
    with pytest.raises(RunnerFailure) as failure:
        with_graph_time(LAUNCH_BOUND, EndsWhenCaptured(reason_code), NumberJudge(8))
    assert failure.value.finding.code is reason_code
