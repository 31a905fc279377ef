"""Which arguments get other signs: those that the reference takes, alone where others refuse, and with digits left."""

from __future__ import annotations

import pytest
from tests.tools.judge.worker.made import Made, made

from ridgeline.tools.judge.worker.domain.objections import Known
from ridgeline.tools.judge.worker.domain.sign_trials import SignTrials

TRIALS = ("mixed_signs", "few_signs", "opposite_signs")
TWO = "torch.rand(64, 32), torch.rand(64, 32) + 0.5"


def signed(found: Made) -> dict[str, set[object]]:
    return {trial: set(found.book.changes.signed.get(trial, ())) for trial in TRIALS}


def test_inputs_of_one_sign_get_both_and_others_have_no_such_trial() -> None:
    found = made("x, y", "torch.rand(64, 32), torch.randn(64, 32)", "return torch.relu(x) + y")
    assert signed(found) == {trial: {0} for trial in TRIALS}
    assert set(TRIALS) <= set(found.domain.names) and not found.domain.skipped
    assert not set(TRIALS) & set(made("x", "torch.randn(64, 32)", "return torch.relu(x)").domain.names)


def test_an_input_that_has_to_be_positive_stays_alone() -> None:
    found = made("x, y", TWO, "return torch.relu(x) + torch.log(y)")
    assert signed(found) == {trial: {0} for trial in TRIALS}
    assert {f"{trial} y": Known.OUTSIDE for trial in TRIALS}.items() <= found.domain.skipped.items()
    case = found.book.case("mixed_signs")
    assert bool((case.inputs[0] < 0).any()) and bool((case.inputs[1] > 0).all())


def test_inputs_that_may_not_both_change_leave_one() -> None:
    found = made("x, y", TWO, "return torch.sqrt(x * y)")
    assert signed(found)["mixed_signs"] == set() and signed(found)["opposite_signs"] == {0, 1}
    assert {n for n in found.domain.skipped if n.startswith("mixed")} == {"mixed_signs x", "mixed_signs y"}


def test_what_leaves_the_output_to_rounding_is_refused() -> None:
    found = made("x", "torch.rand(256, 1024)", "return x / x.sum(-1, keepdim=True)")
    assert "rounding" in found.domain.skipped["mixed_signs x"]
    assert signed(found) == {"mixed_signs": set(), "few_signs": {0}, "opposite_signs": {0}}


@pytest.mark.parametrize(
    "body",
    [
        "return torch.softmax(x, -1)",
        "return x @ x.mT",
        "return x.sum(-1)",
        "return F.layer_norm(x, (1024,))",
        "return F.elu(x)",
        "return x.cumsum(-1)",
        "return F.cosine_similarity(x, x.flip(0), dim=-1)",
        "return torch.logsumexp(x, -1)",
        "return (x - x.mean(-1, keepdim=True)).square().mean(-1)",
    ],
)
def test_ordinary_work_on_uniform_inputs_takes_every_sign(body: str) -> None:
    found = made("x", "torch.rand(256, 1024)", "F = torch.nn.functional", body)
    assert signed(found) == {trial: {0} for trial in TRIALS}, found.domain.skipped


def test_a_trial_that_the_reference_raises_at_is_skipped_with_its_words() -> None:
    found = made(
        "x", "torch.rand(64, 32)", "if bool((x < 0).any()):", "    raise ValueError('below zero')", "return x * 2"
    )
    assert all("below zero" in found.domain.skipped[f"{trial} x"] for trial in TRIALS)


def test_zeros_that_are_structure_and_order_stay() -> None:
    inputs = "torch.rand(64, 64).tril(), torch.rand(64, 32).sort().values"
    found = made("x, y", inputs, "return x @ y")
    for trial in TRIALS:
        lower, rising = found.book.case(trial).inputs
        assert bool((lower == lower.tril()).all()) and bool((rising.diff() >= 0).all())
        assert bool((lower < 0).any()) and bool((rising < 0).any())


def test_what_is_refused_together_is_not_halved_when_time_is_up() -> None:
    found = made("x, y", TWO, "return torch.relu(x) + torch.log(y)")
    asked: list[str] = []

    def refuse(name: str) -> str:
        asked.append(name)
        return Known.OUTSIDE

    trials = SignTrials(found.book, found.source, refuse, limit_s=0.0)
    assert trials.settle() == () and asked == list(TRIALS)
    assert all("want of time" in why for refused in trials.refused.values() for why in refused.values())


def test_the_mixture_trial_has_the_contents_of_a_timed_set() -> None:
    found = made("x", "torch.rand(256, 256)", "return x * 2")
    (nominal,), (mixture,) = found.book.case("nominal_0").inputs, found.book.case("mixture").inputs
    assert float(nominal.var()) == pytest.approx(1 / 12, rel=0.03)
    assert float(mixture.var()) == pytest.approx(0.58 / 12, rel=0.05)  # a weight of 0.15 to 0.85 for each element


FLOYD = ("d = w.clone()", "for k in range(32):", "    d = torch.minimum(d, d[:, k : k + 1] + d[k : k + 1])", "return d")
SWEEPS = (
    "d = torch.nn.functional.pad(torch.zeros(4, 1), (0, 15), value=1e6)",
    "for _ in range(32):",
    "    near = torch.nn.functional.pad(d, (1, 1), value=1e6)",
    "    d = torch.minimum(d, torch.minimum(near[:, :-2], near[:, 2:]) + w)",
    "return d",
)


@pytest.mark.parametrize(
    ("inputs", "body"), [("torch.rand(32, 32) * 10 + 0.1", FLOYD), ("torch.rand(4, 16) + 0.05", SWEEPS)]
)
def test_signs_that_keep_shortest_paths_from_coming_to_rest_are_refused(inputs: str, body: tuple[str, ...]) -> None:
    found = made("w", inputs, *body)
    assert signed(found)["mixed_signs"] == signed(found)["few_signs"] == set()
    assert "come to rest" in found.domain.skipped["mixed_signs w"]


@pytest.mark.parametrize(
    "body",
    [
        ("for i in range(8):", "    x = torch.maximum(x, x.new_zeros(())) * 1.5", "return x"),
        ("return torch.exp(-10 * x)",),
        ("return torch.maximum(torch.minimum(x, x.new_ones(())), x.new_zeros(()))",),
        ("m = x[0]", "for row in x[1:]:", "    m = torch.maximum(m, row)", "return m"),
    ],
)
def test_choices_that_are_no_iteration_take_every_sign(body: tuple[str, ...]) -> None:
    found = made("x", "torch.rand(64, 32)", *body)
    assert signed(found) == {trial: {0} for trial in TRIALS}, found.domain.skipped
