"""Contents of timed blocks: those of trials in a secret share of the sets, parameters that change in one place."""

from __future__ import annotations

import random
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from ridgeline.tools.judge.set_count import MIN_SETS
from ridgeline.tools.judge.worker.device import Cpu
from ridgeline.tools.judge.worker.domain.timed_kinds import ParameterKind, TimedKinds, find_timed_kinds
from ridgeline.tools.judge.worker.grading.cases.case_book import CaseBook
from ridgeline.tools.judge.worker.inputs.distributions import Distribution, SetKind, choose_sets
from ridgeline.tools.judge.worker.inputs.parameters import ParameterSource
from ridgeline.tools.judge.worker.inputs.source import SecretSource
from ridgeline.tools.judge.worker.inputs.timed_sets import is_intact
from ridgeline.tools.judge.worker.inputs.trial_changes import TrialChanges
from ridgeline.tools.judge.worker.inputs.values.structure import is_binary, order_of
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.judge.worker.renewal import WAYS, Renewal
from ridgeline.tools.records.trial_names import SIGNED

SOURCE = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(16, 16))
        self.scale = nn.Parameter(torch.full((16,), 1e-6))
        self.register_buffer("index", torch.randperm(16))

    def forward(self, x, *others):
        {work}
        return (x @ self.weight * self.scale)[:, self.index]


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""
N_SETS = 24


class Renewed:
    """A renewal over plain memory."""

    def __init__(self, inputs: str = "torch.randn(32, 16)", *, work: str = "pass", n_sets: int = N_SETS) -> None:
        self.reference = Reference(SOURCE.format(inputs=inputs, work=work))
        self.source = SecretSource(self.reference, b"secret")
        self.parameters = {n: t.detach().clone() for n, t in self.reference.named_tensors().items()}
        self.reference.bind(self.parameters)
        sets = tuple(tuple(t.clone() for t in self.reference.draw_inputs(0)) for _ in range(n_sets))
        self.memory: Any = SimpleNamespace(parameters=self.parameters, inputs=sets, n_sets=n_sets, device=Cpu())
        book = CaseBook(self.reference, self.source, self.memory, budget_bytes=1 << 20)
        self.book = book
        self.renewal = Renewal(book, self.source, self.memory, kinds=TimedKinds(), poison=lambda index: None)

    def find_kinds(self, *names: str) -> TimedKinds:
        return find_timed_kinds(names, self.book, self.reference, self.source, self.memory)

    def changed(self) -> dict[str, int]:
        """Renew, and return how many rows of each parameter changed, elements where there are no rows."""
        before = {n: t.clone() for n, t in self.parameters.items()}
        self.renewal.write(range(len(self.memory.inputs)))
        differs = {n: (t != before[n]).view(len(t), -1).any(dim=1) for n, t in self.parameters.items()}
        return {n: int(d.sum()) for n, d in differs.items() if bool(d.any())}


def test_parameters_change_wholly_at_first_and_in_one_place_at_secret_times() -> None:
    renewed = Renewed()
    assert set(renewed.changed()) == {"weight", "scale", "index"}
    later = [renewed.changed() for _ in range(40)]
    in_one_place = [c for c in later if len(c) == 1]
    assert 15 < len(in_one_place) < 40 and {name for c in in_one_place for name in c} == {"weight", "scale", "index"}
    assert all(count == (2 if name == "index" else 1) for c in in_one_place for name, count in c.items())
    assert sorted(renewed.parameters["index"].tolist()) == list(range(16))


def test_a_trial_between_two_blocks_is_followed_by_a_whole_change() -> None:
    renewed = Renewed()
    for _ in range(6):
        renewed.renewal.forget()
        assert set(renewed.changed()) == {"weight", "scale", "index"}


def test_small_parameters_are_of_order_one_in_turns() -> None:
    renewed = Renewed()
    renewed.renewal.kinds = TimedKinds(parameters=(ParameterKind.ORDER_ONE,))
    sizes = set()
    for _ in range(12):
        renewed.changed()
        sizes.add(float(renewed.parameters["scale"].abs().median()) > 0.1)
    assert sizes == {True, False}


def test_a_share_of_the_sets_has_the_contents_of_trials() -> None:
    renewed = Renewed()
    renewed.renewal.kinds = TimedKinds(inputs=(SetKind(Distribution.OUTLIERS),))
    renewed.changed()
    large = {i for i, (x,) in enumerate(renewed.memory.inputs) if float(x.abs().max()) > 88.8}
    trial_sets, filling = renewed.renewal.trial_sets, renewed.renewal.filling
    assert set(trial_sets) == large and len(trial_sets) == N_SETS // 8 and min(trial_sets) < MIN_SETS
    assert filling is not None and all(is_intact(filling, i, renewed.memory.inputs[i]) for i in range(N_SETS))


@pytest.mark.parametrize("kind", list(Distribution))
def test_structure_stays_in_every_distribution(kind: Distribution) -> None:
    drawn = [
        "torch.randn(32, 16)",
        "torch.randn(16, 16).tril()",
        "(lambda a: a + a.mT)(torch.randn(16, 16))",
        "torch.randn(32, 16).sort().values",
        "(torch.randn(16, 16) > 0).float()",
        "torch.full((16, 16), float('-inf')).triu(1)",
        "torch.randint(9, (16,))",
        "(lambda a: (a + a.mT > 0).float())(torch.randn(16, 16))",
    ]
    renewed = Renewed(", ".join(drawn))
    inputs = frozenset({2, 7} if kind is Distribution.ALONE else range(4) if kind in SIGNED else ())
    renewed.renewal.kinds = TimedKinds(inputs=(SetKind(kind, inputs),))
    renewed.changed()
    for index in renewed.renewal.trial_sets:
        x, lower, symmetric, rising, mask, infinite, whole, adjacent = renewed.memory.inputs[index]
        assert bool(torch.isfinite(x).all())
        assert torch.equal(lower, lower.tril()) and torch.equal(symmetric, symmetric.mT)
        assert order_of(rising) == 1 and is_binary(mask)
        assert torch.equal(infinite, torch.full((16, 16), -torch.inf).triu(1)) and int(whole.min()) >= 0
        assert torch.equal(adjacent, adjacent.mT) and is_binary(adjacent)


def test_each_input_that_comes_apart_is_a_kind_of_its_own() -> None:
    renewed = Renewed(f"torch.randn(32, 16), {COPIES.format(draw='torch.randn(16, 16)')}")
    renewed.book.use(TrialChanges(alone={"alone_a": (1,), "alone_b": (2,)}))
    found = renewed.find_kinds("nominal_0", "alone_a", "alone_b")
    assert set(found.names) == {"alone_a", "alone_b"}
    renewed.renewal.kinds = found
    for name, (changed, same) in {"alone_a": (1, 2), "alone_b": (2, 1)}.items():
        renewed.renewal.write(range(N_SETS), (name,), 3)
        [(index, kind)] = renewed.renewal.trial_sets.items()
        given, nominal = renewed.memory.inputs[index], [torch.empty_like(t) for t in renewed.memory.inputs[index]]
        renewed.renewal.filling.filling.write(index, nominal)  # type: ignore[union-attr]
        assert kind == name and torch.equal(given[same], nominal[same])
        assert not torch.equal(given[changed], nominal[changed])


def test_kinds_of_one_distribution_share_its_weight() -> None:
    rng = random.Random(2)
    alone = [SetKind(Distribution.ALONE, frozenset({i}), f"alone_{i}") for i in range(9)]
    kinds = [SetKind(Distribution.SHIFTED), *alone]
    chosen = [kind for _ in range(400) for kind in choose_sets(kinds, 40, rng).values()]
    assert 0.4 < sum(kind in alone for kind in chosen) / len(chosen) < 0.6


def test_as_many_sets_are_chosen_every_time() -> None:
    rng = random.Random(1)
    chosen = [choose_sets([SetKind(Distribution.SHIFTED)], 40, rng) for _ in range(20)]
    assert {len(c) for c in chosen} == {4} and len({tuple(sorted(c)) for c in chosen}) == 20
    assert len(choose_sets([SetKind(Distribution.SHIFTED)], MIN_SETS, rng)) == 1
    assert choose_sets([], 40, rng) == {}


def test_superseded_contents_are_another_sets_or_newly_drawn_parameters_or_both_but_for_whole_numbers() -> None:
    renewed, ways = Renewed(), []
    for _ in range(2 * len(WAYS)):
        renewed.renewal.write(range(N_SETS))
        before = {name: view.clone() for name, view in renewed.parameters.items()}
        (old,) = (view.clone() for view in renewed.memory.inputs[3])
        renewed.renewal.draw_next()
        assert all(torch.equal(view, before[name]) for name, view in renewed.parameters.items())
        renewed.renewal.supersede(3, 5)
        (now,) = renewed.memory.inputs[3]
        assert torch.equal(now, old) or torch.equal(now, renewed.memory.inputs[5][0])
        assert torch.equal(renewed.parameters["index"], before["index"])
        has_other = any(not torch.equal(view, before[name]) for name, view in renewed.parameters.items())
        ways.append((not torch.equal(now, old), has_other))
    assert Counter(ways[: len(WAYS)]) == Counter(ways[len(WAYS) :]) == Counter(WAYS)
    assert ways[: len(WAYS)] != ways[len(WAYS) :]  # by this secret


def test_inputs_change_each_time_where_no_parameter_does(monkeypatch: pytest.MonkeyPatch) -> None:
    renewed = Renewed()
    monkeypatch.setattr(ParameterSource, "varied", ())
    monkeypatch.setattr(
        Renewal, "_other_parameters", lambda *_: {n: view.clone() for n, view in renewed.parameters.items()}
    )
    for _ in range(len(WAYS)):
        renewed.renewal.write(range(N_SETS))
        renewed.renewal.draw_next()
        renewed.renewal.supersede(3, 5)
        assert torch.equal(renewed.memory.inputs[3][0], renewed.memory.inputs[5][0])


def test_what_stays_of_a_parameter_is_not_written() -> None:
    """A processor's caches would show a candidate that all of it has been written."""
    renewed = Renewed()
    renewed.renewal.write(range(N_SETS))
    weight = renewed.parameters["weight"]
    for _ in range(len(WAYS)):
        for _ in range(2):  # in one place
            renewed.renewal.draw_next()
            weight.fill_(7.0)  # as nobody does meanwhile
            renewed.renewal.supersede(3, 5)
            assert int((weight != 7.0).sum()) <= weight.numel() // 16
        renewed.renewal.draw_next()


def test_one_thread_supersedes_and_all_go_on_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    renewed = Renewed()
    renewed.renewal.write(range(N_SETS))
    renewed.renewal.draw_next()
    threads, usual = [], torch.get_num_threads()
    copy = torch.Tensor.copy_
    monkeypatch.setattr(torch.Tensor, "copy_", lambda *given: (threads.append(torch.get_num_threads()), copy(*given)))
    torch.set_num_threads(2)
    try:
        renewed.renewal.supersede(3, 5)
        assert (set(threads), torch.get_num_threads()) == ({1}, 2)
    finally:
        torch.set_num_threads(usual)


def test_superseded_parameters_differ_in_one_place_of_one_and_each_third_time_wholly() -> None:
    renewed = Renewed()
    renewed.renewal.write(range(N_SETS))
    shares = []
    for _ in range(2 * len(WAYS)):
        before = {name: renewed.parameters[name].clone() for name in ("weight", "scale")}
        renewed.renewal.draw_next()
        renewed.renewal.supersede(3, 5)
        shares.append([float((renewed.parameters[name] != old).float().mean()) for name, old in before.items()])
    assert sum(each == [0.0, 0.0] for each in shares) == 2  # where inputs alone change
    of_one = [each for i, each in enumerate(shares) if i % 3 != 2 and any(each)]
    assert all(sum(share > 0 for share in each) == 1 and max(each) <= 1 / 16 for each in of_one)
    assert sum(each[0] > 0 for each in of_one) > len(of_one) / 2  # the larger one
    assert all(share == 1 for each in shares[2::3] if any(each) for share in each)


def test_wanted_kinds_are_among_the_sets_that_are_called_and_for_one_block() -> None:
    renewed = Renewed("torch.rand(32, 16)")
    signs = SetKind(Distribution.MIXED_SIGNS, frozenset({0}))
    renewed.renewal.kinds = TimedKinds(slow_inputs=(SetKind(Distribution.OUTLIERS), signs))
    slow = renewed.renewal.kinds.names
    order = tuple(reversed(range(N_SETS)))
    for calls in (1, 2, 7):
        renewed.renewal.write(order, slow, calls)
        trial_sets = renewed.renewal.trial_sets
        assert len(trial_sets) == min(calls, 2) and set(trial_sets) <= set(order[:calls])
        for index, kind in trial_sets.items():
            (x,) = renewed.memory.inputs[index]
            assert float(x.max()) > 88.8 if kind == Distribution.OUTLIERS else float(x.min()) < 0
    renewed.renewal.write(order)
    assert not renewed.renewal.trial_sets and all(float(x.min()) >= 0 for (x,) in renewed.memory.inputs)


def test_wanted_parameters_are_placed_for_one_block() -> None:
    renewed = Renewed()
    renewed.renewal.kinds = TimedKinds(slow_parameters=(ParameterKind.ORDER_ONE,))
    for _ in range(5):
        renewed.renewal.write(range(N_SETS), ("parameter:order_one", "outliers"), 3)
        assert renewed.renewal.parameter_kind == "parameter:order_one" and not renewed.renewal.trial_sets
        assert float(renewed.parameters["scale"].abs().median()) > 0.1
        renewed.renewal.write(range(N_SETS))
        assert renewed.renewal.parameter_kind == ""
        assert float(renewed.parameters["scale"].abs().median()) < 1e-4


COPIES = "*(lambda a: (a, a.clone()))({draw})"


@pytest.mark.parametrize("draw", ["torch.randn(16, 16)", "torch.randint(99, (16, 16))"])
@pytest.mark.parametrize("beside", ["torch.randn(32, 16)", "torch.randint(99, (32, 16)).float()"])
def test_copies_of_one_another_differ_in_the_sets_in_which_one_is_alone(draw: str, beside: str) -> None:
    renewed = Renewed(f"{beside}, {COPIES.format(draw=draw)}")
    alone = tuple(SetKind(Distribution.ALONE, frozenset({i}), f"alone_{i}") for i in (1, 2))
    renewed.renewal.kinds = TimedKinds(inputs=alone)
    renewed.changed()
    trial_sets, filling = renewed.renewal.trial_sets, renewed.renewal.filling
    assert trial_sets and set(trial_sets.values()) <= {kind.name for kind in alone}
    for index, (_, a, b) in enumerate(renewed.memory.inputs):
        assert (float((a != b).float().mean()) > 0.05) == (index in trial_sets)
        assert torch.equal(a, b) == (index not in trial_sets)
        in_part = (a != b).any(-1) & (a == b).any(-1)
        assert bool((in_part & (a[:, 0] == b[:, 0]) & (a[:, -1] == b[:, -1])).any()) == (index in trial_sets)
    assert filling is not None and all(is_intact(filling, i, renewed.memory.inputs[i]) for i in range(N_SETS))
