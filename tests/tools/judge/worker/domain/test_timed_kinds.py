"""The kinds of contents that timed blocks have: those that the reference takes, the slow ones in blocks that do not count."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from tests.tools.judge.worker.made import made
from tests.tools.judge.worker.test_renewal import Renewed

from ridgeline.tools.judge.worker.domain.timed_kinds import ParameterKind, TimedKinds, inputs_apart
from ridgeline.tools.judge.worker.inputs.distributions import Distribution, SetKind


def test_a_distribution_on_which_the_reference_is_slow_is_for_blocks_that_do_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spent: list[float] = []  # what each call takes: no busy machine makes one of them slower
    monkeypatch.setattr(torch, "spent_in_this_test", spent, raising=False)
    monkeypatch.setattr("ridgeline.tools.judge.worker.device.time", SimpleNamespace(perf_counter=lambda: sum(spent)))
    renewed = Renewed(work="torch.spent_in_this_test.append(0.02 if bool((x.abs() > 60).any()) else 0.002)")
    found = renewed.find_kinds("nominal_0", "outliers", "integers")
    assert found.slow_inputs == (SetKind(Distribution.OUTLIERS),) and SetKind(Distribution.SHIFTED) not in found.inputs
    assert "outliers" in found.names


def test_parameters_of_other_signs_have_no_distribution_beside_them_but_their_trials() -> None:
    kinds = TimedKinds(inputs=tuple(map(SetKind, (Distribution.OUTLIERS, Distribution.MIXED_SIGNS))))
    assert kinds.beside(ParameterKind.MIXED_SIGNS) == [SetKind(Distribution.MIXED_SIGNS)]
    assert kinds.beside(ParameterKind.ORDER_ONE) == list(kinds.inputs)


def test_a_kind_that_is_refused_when_the_problem_is_loaded_is_named() -> None:
    kinds = Renewed(work="assert float(x.abs().max()) < 100").find_kinds("shifted", "outliers")
    assert kinds.names == ("shifted",) and list(kinds.refused) == ["outliers"]


def test_sets_are_apart_where_inputs_are_links_and_else_in_a_share_of_those_lifted_in_blocks() -> None:
    links = Renewed("torch.randn(32, 16), torch.randint(512, (512, 8))").find_kinds("blocked", "apart")
    assert links.names == ("blocked", "apart")
    assert Renewed().find_kinds("blocked", "apart").names == ("blocked",)


def test_inputs_come_apart_where_several_change() -> None:
    found = made("a, b", "torch.randn(9), torch.randn(9)", "return a * b")
    apart = inputs_apart(found.domain.names, found.book.changes.alone)
    assert apart == {"alone_a": frozenset({0}), "alone_b": frozenset({1})}
    single = made("a", "torch.randn(9)", "return a * 2")
    assert not inputs_apart(single.domain.names, single.book.changes.alone)
