"""The comparison that a package and `use_kernel.py` share, and the limits that it is given."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.winner import Winner, winner_of
from ridgeline.graph.shipping.render import render_shipped
from ridgeline.tools.records.results import Trial, Verdict
from ridgeline.tools.records.vocabulary import PrecisionClass, Status

from .finished_run import signature, write_run

LIMITS = [("out", "output", 1e-5)]


@pytest.fixture(scope="module")
def shared() -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(render_shipped("package/_compare.py.j2"), names)  # Ridgeline's own template
    return names


def is_right(shared: dict[str, Any], found: list[torch.Tensor], wanted: list[torch.Tensor]) -> bool:
    lines, passed = shared["compared"](LIMITS * len(wanted), found, wanted, wanted)
    assert lines
    return bool(passed)


def test_an_equal_output_is_right(shared: dict[str, Any]) -> None:
    wanted = torch.tensor([1.0, math.nan, math.inf, 3.0])
    assert is_right(shared, [wanted.clone()], [wanted.double()])


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("at", [0, 1])
def test_a_number_that_is_not_finite_is_wrong_in_each_output(shared: dict[str, Any], odd: float, at: int) -> None:
    wanted = [torch.arange(64.0), torch.arange(64.0)]
    found = [tensor.clone() for tensor in wanted]
    found[at][3] = odd
    assert not is_right(shared, found, wanted)
    assert not is_right(shared, wanted, found)  # where the reference alone has it


def test_a_missing_output_is_wrong(shared: dict[str, Any]) -> None:
    wanted = [torch.arange(64.0), torch.arange(64.0)]
    assert not is_right(shared, wanted[:1], wanted)
    assert not is_right(shared, [], wanted)


def test_an_output_that_would_be_broadcast_is_wrong(shared: dict[str, Any]) -> None:
    wanted = torch.arange(8.0).repeat(4, 1)
    assert not is_right(shared, [wanted[0]], [wanted])
    assert not is_right(shared, [wanted[None]], [wanted])


def test_integers_are_equal_or_wrong(shared: dict[str, Any]) -> None:
    wanted = torch.arange(1000)
    off = wanted.clone()
    off[-1] += 1
    assert is_right(shared, [wanted], [wanted])
    assert not is_right(shared, [off], [wanted])
    assert not is_right(shared, [wanted.float()], [wanted])


def test_the_error_is_over_the_spread_and_not_over_a_large_mean(shared: dict[str, Any]) -> None:
    wanted = torch.linspace(-1, 1, 64, dtype=torch.float64) + 1000
    assert shared["error_of"](wanted + 0.01, wanted, "output") > 1e-2
    assert shared["error_of"](wanted + 0.01, wanted, "crfm") < 1e-4


def told_of_times(shared: dict[str, Any], ratio: float, *known: float, is_certified: bool = True) -> list[str]:
    lines: list[str] = shared["time_lines"]([[1e-3] * 3, [ratio * 1e-3] * 3], list(known), is_certified)
    assert f"): {ratio:.2f}x, the median of the ratios" in lines[0]
    return lines[1:]


def test_the_figure_of_the_run_stands_beside_the_times_and_where_they_are_far_apart_that_is_said(
    shared: dict[str, Any],
) -> None:
    assert told_of_times(shared, 4.0, 4.89, 2.93, 6.37) == ["certified: 4.89x (2.93 to 6.37)"]
    for ratio in (269.0, 1.5):
        beside, apart = told_of_times(shared, ratio, 4.89, 2.93, 6.37, is_certified=False)
        assert beside == "in its search: 4.89x (2.93 to 6.37)" and apart.startswith(
            "these are far apart: other programs"
        )
    assert told_of_times(shared, 4.0, 0.0) == []


class Scaled(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.plain = torch.full((4,), 0.1)  # an attribute, no buffer

    def forward(self, given: dict[str, torch.Tensor]) -> list[torch.Tensor]:
        return [given["x"] * self.plain]


def test_the_reference_is_computed_in_float64(shared: dict[str, Any]) -> None:
    (found,) = shared["run_double"](Scaled(), [{"x": torch.ones(4)}])
    assert found.dtype == torch.float64
    assert torch.equal(found, torch.full((4,), 0.1).double())


class InFloat32(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ torch.ones(4, 4, dtype=torch.float32)


def test_a_reference_that_refuses_float64_is_computed_in_its_own_type(shared: dict[str, Any]) -> None:
    (found,) = shared["run_double"](InFloat32(), [torch.ones(4, 4)])
    assert found.dtype == torch.float32


def made(tmp_path: Path, **verdict: Any) -> Winner:
    with Archive.open(write_run(tmp_path / "run"), create=False) as archive:
        winner = winner_of(archive, "run")
    assert winner is not None
    told = Verdict(status=Status.OK, **({"precision_class": PrecisionClass.FP32, "rel_error": 1e-7} | verdict))
    return replace(winner, best=replace(winner.best, evaluation=replace(winner.best.evaluation, verdict=told)))


def test_the_limit_is_the_judges_for_the_class_that_was_measured(tmp_path: Path) -> None:
    winner = made(tmp_path)
    out = signature().args[-1]
    assert winner.limit(out) == ("output", 1e-5)
    assert winner.limit(replace(out, dtype="int64")) == ("exact", 0.0)
    trials = tuple(
        Trial(name=f"nominal_{i}", rel_error=2e-5, gate=gate, passed=True) for i, gate in enumerate((3e-5, 4e-5))
    )
    told = Verdict(status=Status.OK, precision_class=PrecisionClass.FP32, rel_error=2e-5, trials=trials)
    worse = replace(winner, best=replace(winner.best, evaluation=replace(winner.best.evaluation, verdict=told)))
    assert worse.limit(out) == ("output", 4e-5)


@pytest.mark.parametrize(
    ("measured", "limit"),
    [
        (PrecisionClass.CRFM, ("crfm", 1e-2)),
        (PrecisionClass.EXACT, ("output", 1e-5)),
        (PrecisionClass.BF16, ("output", 8e-3)),
    ],
)
def test_each_class_has_its_own_limit(tmp_path: Path, measured: PrecisionClass, limit: tuple[str, float]) -> None:
    assert made(tmp_path, precision_class=measured).limit(signature().args[-1]) == limit
