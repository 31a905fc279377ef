"""Each parameter varies as widely as the reference takes it: one that is bounded keeps no other as it was."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tests.tools.judge.worker.made import made_of

from ridgeline.tools.errors import DeviceLostError
from ridgeline.tools.judge.worker.device import Cpu
from ridgeline.tools.judge.worker.domain.arguments.other_parameters import OtherParameters
from ridgeline.tools.judge.worker.domain.domain import Domain
from ridgeline.tools.judge.worker.grading.cases.case_book import CaseBook
from ridgeline.tools.judge.worker.inputs.source import SecretSource
from ridgeline.tools.judge.worker.inputs.values.structure import order_of
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.records.trial_names import AS_MADE, GIVEN, NOMINAL, TWEAKED

SOURCE = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {init}

    def forward(self, x):
        torch.runs_of_this_test = getattr(torch, "runs_of_this_test", 0) + 1
        {body}


def get_inputs():
    return [torch.randn(32, 4)]
"""
WEIGHT = "self.weight = nn.Parameter(torch.randn(32, 32) / 6)"
POINTS = "p = torch.randn(32, 8)"
COVARIANCE = "self.cov = nn.Parameter(torch.exp(-0.5 * (p[:, None] - p).square().sum(-1)) + 0.1 * torch.eye(32))"
SOLVE = "return torch.cholesky_solve(self.weight @ x, torch.linalg.cholesky(self.cov))"
SYMMETRIC = "assert torch.equal(self.cov, self.cov.mT); "


class Found:
    """What is known of a reference's parameters, by a domain as the judge makes it."""

    def __init__(self, init: str, body: str, fatal_attempts: frozenset[str] = frozenset()) -> None:
        self.reference = Reference(SOURCE.format(init=init, body=body))
        self.source = SecretSource(self.reference, b"secret")
        self.weights = self.source.weights
        self.memory: Any = SimpleNamespace(
            parameters={n: t.detach().clone() for n, t in self.reference.named_tensors().items()},
            inputs=[self.reference.draw_inputs(0)],
            n_sets=4,
            device=Cpu(),
        )  # no process to share memory with
        self.reference.bind(self.memory.parameters)
        self.book = CaseBook(self.reference, self.source, self.memory, budget_bytes=1 << 24)
        self.fatal_attempts = fatal_attempts

    def settled(self) -> Domain:
        return Domain(self.book, self.reference, self.source, self.memory, fatal_attempts=self.fatal_attempts)

    def takes(self, values: dict[str, torch.Tensor]) -> bool:
        self.book.place_parameters(values)
        return bool(torch.isfinite(self.reference.run(self.source.given(GIVEN))[0]).all())

    def changed_share(self, name: str, label: str = "a") -> float:
        """Return how much of a tensor a draw changes."""
        return float((self.weights.random(label)[name] != self.weights.defaults[name]).float().mean())


def test_a_definite_matrix_and_the_weight_beside_it_both_vary_wholly() -> None:
    found = Found(f"{POINTS}; {COVARIANCE}; {WEIGHT}", f"{SYMMETRIC}{SOLVE}")
    domain = found.settled()
    assert not domain.not_varied and not domain.skipped
    assert found.weights.varied == ("cov", "weight")
    for label in map(str, range(20)):
        drawn = found.weights.random(label)
        assert found.takes(drawn) and torch.equal(drawn["cov"], drawn["cov"].mT)
        assert found.changed_share("cov", label) > 0.9 and found.changed_share("weight", label) == 1
    spread = float((found.weights.random("a")["weight"] - found.weights.defaults["weight"]).std())
    assert spread > 0.5 * float(found.weights.defaults["weight"].std())


def test_a_definite_matrix_whose_halves_differ_by_rounding_is_a_symmetric_one() -> None:
    distances = "torch.exp(-0.5 * torch.cdist(p, p) ** 2) + 0.1 * torch.eye(32)"
    found = Found(f"{POINTS}; self.cov = nn.Parameter({distances}); {WEIGHT}", SOLVE)
    cov = found.weights.defaults["cov"]
    assert not torch.equal(cov, cov.mT) and not found.settled().not_varied
    assert all(found.takes(found.weights.random(str(i))) for i in range(20)) and found.changed_share("cov") > 0.9


def test_a_definite_matrix_that_is_read_in_half_is_not_random_by_chance() -> None:
    """Some draws of a small matrix around the identity are definite, and a block could have any other."""
    found = Found(
        f"self.cov = nn.Parameter(torch.eye(3) + 0.3); {WEIGHT}",
        "f = torch.block_diag(torch.linalg.cholesky(self.cov), torch.eye(29)); return f @ (self.weight @ x)",
    )
    found.settled()
    assert all(found.takes(found.weights.random(str(i))) for i in range(40))


@pytest.mark.parametrize("count", [20])
def test_one_place_of_a_definite_matrix_changes_and_it_stays_definite(count: int) -> None:
    found = Found(f"{POINTS}; {COVARIANCE}; {WEIGHT}", f"{SYMMETRIC}{SOLVE}")
    found.settled()
    values = found.weights.random("start")
    for i in range(count):
        cov = found.weights.with_one_place("cov", values["cov"], found.weights.random(f"other {i}")["cov"], str(i))
        assert not torch.equal(cov, values["cov"]) and torch.equal(cov, cov.mT)
        values["cov"] = cov
        assert found.takes(values)


def test_the_trial_that_differs_in_one_row_has_another_row_of_every_parameter() -> None:
    found = Found(f"{POINTS}; {COVARIANCE}; {WEIGHT}", f"{SYMMETRIC}{SOLVE}")
    assert TWEAKED[1] in found.settled().names
    before, after = (found.book.case(name).parameters for name in (NOMINAL[1], TWEAKED[1]))
    assert all(0 < int((before[n] != after[n]).sum()) <= 2 * 32 for n in ("cov", "weight"))


@pytest.mark.parametrize(
    ("default", "least", "most"),
    [("torch.ones(32)", 0.49, 1.0), ("torch.ones(32)", 0.9, 1.0), ("torch.ones(32)", 0.98, 1.0),
     ("torch.ones(32)", 1.0, 1.2), ("torch.tensor(1.0)", 0.9, 1.1)],
)  # fmt: skip
def test_a_parameter_of_which_a_bound_is_asserted_varies_within_it(default: str, least: float, most: float) -> None:
    init = f"self.rate = nn.Parameter({default}); {WEIGHT}"
    body = f"assert bool(((self.rate >= {least}) & (self.rate <= {most})).all()); return self.weight @ x * self.rate.mean()"
    found = Found(init, body)
    domain = found.settled()
    assert not domain.not_varied and TWEAKED[1] in domain.names
    placed = found.weights.random("start")
    for i in range(50):
        rate = found.weights.random(str(i))["rate"]
        placed["rate"] = found.weights.with_one_place("rate", placed["rate"], rate, str(i))
        assert found.takes(found.weights.random(str(i))) and found.takes(placed)
        assert not torch.equal(rate, found.weights.defaults["rate"])
    assert found.changed_share("weight") == 1


@pytest.mark.parametrize(
    ("init", "needs"),
    [
        ("torch.rand(32, 32).tril() + torch.eye(32)", "torch.equal(w, w.tril()) and bool((w.diagonal() > 0).all())"),
        ("torch.rand(32, 32).softmax(-1)", "bool((w.sum(-1) - 1).abs().max() < 1e-5)"),
        ("torch.linalg.qr(torch.randn(32, 32)).Q", "bool((w @ w.mT - torch.eye(32)).abs().max() < 1e-4)"),
        ("torch.rand(32, 32).sort().values", "bool((w.diff() >= 0).all())"),
        ("torch.corrcoef(torch.randn(32, 64)).fill_diagonal_(1).tril().add(0)", "torch.equal(w, w.tril())"),
        ("torch.eye(32)", "torch.equal(w, w.mT) and bool((torch.linalg.eigvalsh(w) > 0).all())"),
        ("-(torch.eye(32) + 0.1)", "torch.equal(w, w.mT) and bool((torch.linalg.eigvalsh(w) < 0).all())"),
        ("torch.zeros(32, 32)", "bool((w >= 0).all())"),
    ],
    ids=["triangular", "stochastic", "orthogonal", "in order", "lower", "identity", "negative", "zeros"],
)
def test_structure_that_a_reference_asserts_stays_and_the_values_vary(init: str, needs: str) -> None:
    body = f"w = self.w.float(); assert {needs}; return w @ (self.weight @ x)"
    found = Found(f"self.w = nn.Parameter({init}); {WEIGHT}", body)
    domain = found.settled()
    assert not domain.not_varied and found.changed_share("weight") == 1
    for label in map(str, range(20)):
        assert found.takes(found.weights.random(label)) and found.changed_share("w", label) > 0


def test_a_definite_matrix_that_begins_as_the_identity_gets_other_zeros_too() -> None:
    """A kernel that takes it for a diagonal one would spare the whole work."""
    found = Found(f"self.cov = nn.Parameter(torch.eye(32)); {WEIGHT}", f"{SYMMETRIC}{SOLVE}")
    found.settled()
    assert found.changed_share("cov") > 0.9


def test_a_buffer_that_the_reference_refuses_varies_as_a_parameter_does() -> None:
    buffer = COVARIANCE.replace("self.cov = nn.Parameter(", "self.register_buffer('cov', ")
    found = Found(f"{POINTS}; {buffer}; {WEIGHT}", f"{SYMMETRIC}{SOLVE}")
    assert not found.settled().not_varied and found.changed_share("cov") > 0.9


def test_a_parameter_that_cannot_vary_is_named_and_the_others_vary() -> None:
    init = f"self.fixed = nn.Parameter(torch.arange(32.0)); {WEIGHT}"
    body = "assert torch.equal(self.fixed.float(), torch.arange(32.0)), 'only these'; "
    body += "return self.weight @ x + self.fixed[:, None]"
    found = Found(init, body)
    domain = found.settled()
    assert list(domain.not_varied) == ["fixed"] and "only these" in domain.not_varied["fixed"]
    assert not domain.skipped and found.weights.varied == ("weight",) and found.weights.kept == ("fixed",)
    cases = [found.book.case(name).parameters for name in domain.names if name != AS_MADE]
    default = found.weights.defaults
    assert all(torch.equal(case["fixed"], default["fixed"]) for case in cases)
    assert not any(torch.equal(case["weight"], default["weight"]) for case in cases)


def test_where_nothing_varies_everything_is_named() -> None:
    init = "self.a = nn.Parameter(torch.full((8,), 2.0)); self.b = nn.Parameter(torch.full((8,), 3.0))"
    body = "assert bool((self.a == 2).all()) and bool((self.b == 3).all()); return x * self.a.sum() + self.b.sum()"
    found = Found(init, body)
    domain = found.settled()
    assert set(domain.not_varied) == {"a", "b"} and found.weights.varied == ()
    assert {NOMINAL[0], TWEAKED[0]} <= set(domain.names)


MANY = "self.many = nn.ParameterList([nn.Parameter(torch.randn(4, 4)) for _ in range(200)])"
ALL_OF_MANY = "return x @ torch.stack(list(self.many)).sum(0)"


def runs_to_settle(found: Found, **limits: Any) -> tuple[dict[str, str], int]:
    parameters = OtherParameters(found.source, found.book, found.reference, lambda _, attempt: attempt(), **limits)
    before = torch.runs_of_this_test  # type: ignore[attr-defined]
    kept = parameters.settle()
    return kept, torch.runs_of_this_test - before  # type: ignore[attr-defined]


@pytest.mark.thorough
def test_one_of_200_parameters_that_is_refused_takes_few_runs() -> None:
    guard = "assert bool((self.many[77] > 0.9).all()); " + ALL_OF_MANY
    found = Found(f"{MANY}; self.many[77].data.fill_(1.0)", guard)
    kept, runs = runs_to_settle(found)
    assert not kept and len(found.weights.varied) == 200 and runs < 150
    shares = {name: found.changed_share(name) for name in found.weights.varied}
    assert shares.keys() == {f"many.{i}" for i in range(200)} and min(shares.values()) > 0
    assert sum(share == 1 and found.weights._is_random(name) for name, share in shares.items()) == 199


def test_many_that_are_refused_are_narrowed_together_once_the_attempts_are_spent() -> None:
    found = Found(
        f"{MANY}; [p.data.fill_(1.0) for p in self.many]",
        f"assert all(bool((p <= 1).all()) for p in list(self.many)[::2]); {ALL_OF_MANY}",
    )
    kept, runs = runs_to_settle(found, most_halves=8)
    assert not kept and len(found.weights.varied) == 200 and runs < 100


def test_what_is_refused_together_and_not_looked_at_alone_is_named_so() -> None:
    body = f"assert bool((torch.stack(list(self.many)) == self.given).all()); {ALL_OF_MANY}"
    found = Found(f"{MANY}; self.given = torch.stack([p.data.clone() for p in self.many])", body)
    kept, runs = runs_to_settle(found, limit_s=0.0)
    assert len(kept) == 200 and all("want of time" in why for why in kept.values()) and runs < 40


def test_a_parameter_that_loses_the_gpu_is_left_out_the_next_time(monkeypatch: pytest.MonkeyPatch) -> None:
    lost: list[int] = []

    def settle(_device: Cpu) -> None:  # as CUDA does: every later call fails
        if lost:
            raise RuntimeError("CUDA error: device-side assert triggered")

    monkeypatch.setattr(Cpu, "settle", settle)
    monkeypatch.setattr(torch, "lost_for_this_test", lost, raising=False)
    body = "assert bool((self.rate <= 1).all()) or torch.lost_for_this_test.append(1); "
    body += "return self.weight @ x * self.rate.mean()"
    init = f"self.rate = nn.Parameter(torch.ones(32)); {WEIGHT}"
    fatal_attempts: frozenset[str] = frozenset()
    for what in ("random parameters", "other rate, way 0"):
        with pytest.raises(DeviceLostError, match=f"^{what}$"):
            Found(init, body, fatal_attempts).settled()
        fatal_attempts |= {what}
        lost.clear()
    found = Found(init, body, fatal_attempts)
    assert not found.settled().not_varied and found.changed_share("weight") == 1 and found.changed_share("rate") > 0


@pytest.mark.parametrize(
    "made", ["register_buffer('levels', LEVELS)", "levels = nn.Parameter(LEVELS, requires_grad=False)"]
)
@pytest.mark.parametrize("sign", [1, -1])
def test_levels_that_are_not_trained_stay_in_order_and_trained_ones_do_not(sign: int, made: str) -> None:
    """What is sought by bisection among levels that no order holds together depends on the way it is sought."""
    levels = f"{sign} * torch.linspace(0.01, 0.9, 12)"
    found = Found(
        f"self.{made}; self.weight = nn.Parameter({levels})".replace("LEVELS", levels),
        "return torch.bucketize(x, self.levels) + 0 * self.weight.sum()",
    )
    assert not found.settled().not_varied
    for label in map(str, range(10)):
        drawn = found.weights.random(label)
        signed = found.source.parameters_with_signs(drawn, "mixed_signs", frozenset({"levels"}), label)
        placed = found.weights.with_one_place("levels", drawn["levels"], found.weights.random("b")["levels"], label)
        assert all(order_of(each) == sign for each in (drawn["levels"], signed["levels"], placed))
        assert int((placed != drawn["levels"]).sum()) == 1 and found.changed_share("levels", label) == 1
        assert (signed["levels"] * sign < 0).any() and order_of(drawn["weight"]) == 0


def test_whole_numbers_of_a_buffer_are_nearly_all_the_lowest_in_some_draws() -> None:
    """Room for what is usual in each group is too little then."""
    found = Found(
        "self.register_buffer('groups', torch.randint(0, 8, (32,)))",
        "return torch.zeros(8, 4).index_add(0, self.groups, x)",
    )
    assert not found.settled().not_varied
    crowded = [int((found.weights.random(str(i))["groups"] == 0).sum()) > 24 for i in range(60)]
    assert 15 < sum(crowded) < 45


def test_parameters_vary_less_where_random_ones_leave_an_iteration_to_rounding() -> None:
    """sin(w y) comes to rest up to w = 2.7, and is chaos from there on."""
    body = "for _ in range(80): x = torch.sin(self.w * x)\n        return x"
    found = Found("self.w = nn.Parameter(torch.full((32, 1), 2.2))", body)
    assert not found.settled().not_varied
    drawn = [found.weights.random(str(i))["w"] for i in range(20)]
    assert max(float(w.max()) for w in drawn) < 2.7 and not torch.equal(drawn[0], drawn[1])


def test_a_usual_draw_at_which_the_reference_raises_does_not_end_the_load() -> None:
    probe = Found(WEIGHT, "return self.weight @ x")
    refused = float(probe.weights.random(NOMINAL[0])["weight"][0, 0])
    found = Found(WEIGHT, f"assert abs(float(self.weight[0, 0]) - {refused!r}) > 1e-6; return self.weight @ x")
    assert not found.settled().not_varied
    assert found.takes(found.weights.random(NOMINAL[0]))


def test_what_a_buffer_of_whole_numbers_may_hold_is_found_by_draws_that_are_never_as_made() -> None:
    buffer = 'self.register_buffer("order", torch.tensor([3.0, 1.0, 0.0, 2.0] * 8))'
    source = SOURCE.format(init=buffer, body="return x[:, self.order.long()] * 2")
    for secret in range(12):  # a way that half of the draws leave unused passes for one that is taken
        found = made_of(source, secret=bytes([secret]))
        assert not any("IndexError" in why for why in found.domain.skipped.values()) and not found.domain.not_varied
        order = found.source.weights.random("any")["order"]
        assert float(order.min()) >= 0 and float(order.max()) < 4
