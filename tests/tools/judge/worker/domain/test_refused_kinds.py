"""The kinds of a block's contents that a reference refuses: named where it takes nominal ones, else nobody's but the user's."""

from __future__ import annotations

import pytest
import torch
from tests.tools.judge.worker.test_renewal import N_SETS, Renewed

from ridgeline.tools.errors import BadReferenceError
from ridgeline.tools.judge.worker.domain.refused_kinds import as_skipped, refused_kinds
from ridgeline.tools.judge.worker.domain.timed_kinds import ParameterKind, TimedKinds
from ridgeline.tools.judge.worker.inputs.distributions import Distribution, SetKind
from ridgeline.tools.judge.worker.renewal import WAYS

KINDS = TimedKinds(
    inputs=(SetKind(Distribution.SHIFTED), SetKind(Distribution.OUTLIERS)),
    slow_inputs=(SetKind(Distribution.INTEGERS),),
    parameters=(ParameterKind.ORDER_ONE,),
)


def found(renewed: Renewed) -> dict[str, str]:
    renewal = renewed.renewal
    return refused_kinds(renewal.trial_sets, renewal.parameter_kind, renewed.reference, renewed.memory)


@pytest.mark.parametrize(
    "refuse",
    [
        "assert float(x.abs().max()) < 100, 'large'",
        "torch.cholesky_bad(x) if x.abs().max() > 100 else 0",
        "[None for _ in iter(lambda: float(x.abs().max()) > 100, False)]",  # a loop that never ends
    ],
)
def test_the_kind_is_named_that_the_reference_refuses(refuse: str) -> None:
    renewed = Renewed(work=refuse)
    renewed.renewal.kinds = KINDS
    renewed.renewal.write(range(N_SETS), ("shifted", "integers"), 2)
    assert found(renewed) == {}
    renewed.renewal.write(range(N_SETS), ("shifted", "outliers"), 2)
    refused = found(renewed)
    assert list(refused) == ["outliers"]
    [skipped] = as_skipped(refused)
    assert skipped.name == "timed outliers" and skipped.reason.startswith("forward() raised ")


def test_a_kind_on_which_the_reference_does_not_end_is_refused_before_anything_is_timed() -> None:
    renewed = Renewed(work="[None for _ in iter(lambda: float(x.abs().max()) > 100, False)]")
    kinds = renewed.find_kinds("shifted", "outliers")
    assert kinds.names == ("shifted",)
    assert "took longer than" in kinds.refused["outliers"]


def test_nominal_contents_that_are_refused_take_no_kind_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    renewed = Renewed(work="assert not hasattr(torch, 'refuses_in_this_test')")
    renewed.renewal.kinds = TimedKinds(inputs=KINDS.inputs)
    renewed.renewal.write(range(N_SETS))
    monkeypatch.setattr(torch, "refuses_in_this_test", True, raising=False)
    assert renewed.renewal.trial_sets and found(renewed) == {}


def test_a_kind_of_parameters_is_named_beside_nominal_inputs() -> None:
    renewed = Renewed(work="assert float(self.scale.abs().max()) < 0.1")
    renewed.renewal.kinds = KINDS
    renewed.renewal.write(range(N_SETS), ("parameter:order_one",), 2)
    refused = found(renewed)
    assert list(refused) == ["parameter:order_one"]
    assert as_skipped(refused)[0].name == "timed order_one of parameters"
    renewed.renewal.leave_out(refused)
    assert renewed.renewal.kinds.names == ("shifted", "outliers", "integers")
    assert renewed.renewal.kinds.refused == refused


def test_float64_alone_may_be_refused_too() -> None:
    renewed = Renewed(work="assert x.dtype == torch.float32 or float(x.abs().max()) < 100")
    renewed.renewal.kinds = KINDS
    renewed.renewal.write(range(N_SETS), ("outliers",), 1)
    assert list(found(renewed)) == ["outliers"]


def test_what_is_left_out_is_in_no_later_block() -> None:
    renewed = Renewed()
    renewed.renewal.kinds = TimedKinds(inputs=(SetKind(Distribution.OUTLIERS), SetKind(Distribution.SHIFTED)))
    renewed.renewal.leave_out({"outliers": "AssertionError"})
    for _ in range(6):
        renewed.renewal.write(range(N_SETS))
        assert set(renewed.renewal.trial_sets.values()) == {"shifted"}


def test_a_set_that_is_given_the_inputs_of_another_has_its_kind() -> None:
    renewed = Renewed(work="assert float(x.abs().max()) < 100")
    renewed.renewal.kinds = KINDS
    renewed.renewal.write(range(N_SETS), ("outliers",), 1)
    for _ in WAYS:  # in one of which parameters alone change
        renewed.renewal.draw_next()
        renewed.renewal.supersede(N_SETS - 1, 0)
    assert set(renewed.renewal.trial_sets) == {0, N_SETS - 1} and list(found(renewed)) == ["outliers"]
    for _ in WAYS:
        renewed.renewal.draw_next()
        renewed.renewal.supersede(0, 1)
    assert set(renewed.renewal.trial_sets) == {N_SETS - 1}


@pytest.mark.parametrize(
    ("work", "error"),
    [
        ("assert x.dtype == torch.float32 or float(x.abs().max()) < 100", "AssertionError"),
        ("torch.distributions.Uniform(x.min().double() - 1, 100 - x.max().double(), validate_args=True)", "ValueError"),
        ("torch.linalg.cholesky(torch.eye(2) * (100 - x.max().double()))", "LinAlgError"),
    ],
)
def test_what_is_refused_in_float64_alone_is_the_references_refusal(work: str, error: str) -> None:
    reference = Renewed(work=work).reference
    assert reference.in_double((torch.ones(32, 16),), {}) is not None
    with pytest.raises(BadReferenceError, match=f"in float64: _?{error}"):
        reference.in_double((torch.full((32, 16), 200.0),), {})
