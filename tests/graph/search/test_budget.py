"""What a search is charged for its evaluations, by device."""

from __future__ import annotations

import dataclasses

import pytest
from tests.graph.conftest import Search

from ridgeline.graph.search.budget import Consumption, charge, exhausted
from ridgeline.graph.search.context import SearchContext
from ridgeline.problems.spec import Budget
from ridgeline.tools.records.results import Evaluation
from ridgeline.tools.records.vocabulary import DeviceKind, Purpose, ReasonCode, Status

WRONG = Evaluation(
    key="k",
    candidate_id="r1i0v0a0",
    purpose=Purpose.SEARCH,
    status=Status.WRONG,
    reason_code=ReasonCode.WRONG_VALUES,
    total_s=10.0,
)


def context_on(search: Search, kind: DeviceKind) -> SearchContext:
    context = search.context()
    context.target = dataclasses.replace(context.target, device=dataclasses.replace(context.target.device, kind=kind))
    return context


@pytest.mark.parametrize(
    ("budget", "told"),
    [
        (Budget(wall_s=75), "all 75 s of the budget's wall_s are used (82 s so far)"),
        (Budget(gpu_s=0.5), "all 0.5 s of the budget's gpu_s are used (0.512 s so far)"),
        (Budget(tokens=4000), "all 4,000 tokens of the budget's tokens are used (4,200 tokens so far)"),
        (Budget(usd=5), "all $5.00 of the budget's usd are used ($5.02 so far)"),
        (Budget(usd=6, wall_s=90), ""),
    ],
)
def test_a_spent_budget_is_told_in_the_words_of_its_option(budget: Budget, told: str) -> None:
    assert exhausted(budget, Consumption(usd=5.02, tokens=4200, wall_s=1e4, finding_s=82.4596, gpu_s=0.512)) == told


@pytest.mark.parametrize(("kind", "cpu_s", "gpu_s"), [(DeviceKind.CPU, 10.0, 0.0), (DeviceKind.CUDA, 7.0, 3.0)])
def test_only_a_gpu_s_own_part_of_an_evaluation_is_gpu_time(
    search: Search, kind: DeviceKind, cpu_s: float, gpu_s: float
) -> None:
    charge(context_on(search, kind), WRONG, on_device_s=3.0)
    totals = search.archive.ledger_totals()
    assert (totals["cpu_s"], totals["gpu_s"], totals["wall_s"]) == (cpu_s, gpu_s, 10.0)


def test_an_evaluation_is_charged_once_and_each_certificate_of_a_kernel_for_itself(search: Search) -> None:
    context = context_on(search, DeviceKind.CPU)
    for _ in range(2):
        charge(context, WRONG, on_device_s=3.0)
    certificate = dataclasses.replace(WRONG, purpose=Purpose.CERTIFY)
    for build_key in ("first", "second", "second"):
        charge(context, certificate, on_device_s=10.0, entry=build_key)
    assert search.archive.ledger_totals()["wall_s"] == 30.0


def test_an_evaluation_that_took_nothing_does_not_hide_a_later_one_s_cost(search: Search) -> None:
    context = context_on(search, DeviceKind.CPU)
    charge(context, dataclasses.replace(WRONG, total_s=0.0), on_device_s=0.0)
    charge(context, WRONG, on_device_s=3.0)
    assert search.archive.ledger_totals()["wall_s"] == 10.0
