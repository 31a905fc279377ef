"""Cases are kept, held or made again, and a reference runs with what they give it."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch
from tests.tools.judge.worker.made import SOURCE, made

from ridgeline.tools.judge.worker.reference import Reference


@pytest.mark.parametrize(
    ("limits", "makings"),
    [
        pytest.param({}, 0, id="kept"),
        pytest.param({"budget_bytes": 0, "held_bytes": 1 << 20}, 2, id="held"),
        pytest.param({"budget_bytes": 0}, 6, id="neither"),
    ],
)
def test_a_case_that_is_not_kept_is_held_until_another_is_made(
    monkeypatch: pytest.MonkeyPatch, limits: dict[str, int], makings: int
) -> None:
    book = made("x", "torch.randn(8, 32)", "return 2 * x", **limits).book
    names = []
    contents = book.contents.of
    monkeypatch.setattr(book.contents, "of", lambda name: names.append(name) or contents(name))
    for name in ("shifted", "integers"):
        inputs = [book.case(name).inputs[0] for _ in range(3)]
        assert all(torch.equal(inputs[0], each) for each in inputs)
    assert len(names) == makings


def test_a_case_that_was_let_go_is_made_again() -> None:
    book = made("x", "torch.randn(8, 32)", "return 2 * x", budget_bytes=0, held_bytes=1 << 20).book
    first = book.case("shifted")
    assert book.case("shifted") is first
    book.let_go()
    assert book.case("shifted") is not first


@pytest.mark.parametrize(
    ("body", "runs"),
    [
        pytest.param("return x.exp()", 0, id="floats"),
        pytest.param("return x.exp(), x > 0", 1, id="a bool, which its own type decides"),
    ],
)
def test_a_case_that_is_made_again_is_as_it_was_and_runs_in_float64_alone(
    monkeypatch: pytest.MonkeyPatch, body: str, runs: int
) -> None:
    book = made("x", "torch.randn(8, 32)", body, budget_bytes=0, held_bytes=0).book
    first, ran = book.case("shifted"), []
    run = book._reference.run
    monkeypatch.setattr(book._reference, "run", lambda inputs: ran.append(1) or run(inputs))
    again = book.case("shifted")
    assert len(ran) == runs
    assert (again.fits, again.own) == (first.fits, first.own)
    pairs = [*zip(first.inputs, again.inputs, strict=True)]
    pairs += [(a.values, b.values) for a, b in zip(first.expected, again.expected, strict=True)]
    assert all(torch.equal(one, two) for one, two in pairs)


def test_under_another_secret_a_case_is_made_with_its_errors_and_its_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    book = made("x", "100 * torch.rand(8, 32, dtype=torch.float16)", "return x.exp()", budget_bytes=0).book
    assert not book.case("nominal_0").fits  # exp(100) is beyond float16
    monkeypatch.setattr(book.contents, "of", lambda name: ((torch.ones(8, 32, dtype=torch.float16),), {}))
    assert not book.case("nominal_0").fits
    book.forget_all()
    assert book.case("nominal_0").fits


NORM = """
import torch
from torch import nn
from torch.nn import functional


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(64))

    def forward(self, x):
        return functional.layer_norm(x.to(torch.float32), (64,), self.weight)  # refuses a weight in float64


def get_inputs():
    return [torch.randn(32, 64)]


def get_init_inputs():
    return []
"""


def test_a_reference_that_refuses_float64_runs_with_the_weights_it_is_given() -> None:
    reference = Reference(NORM)
    (inputs,) = (reference.draw_inputs(0),)
    weight = torch.linspace(-2, 2, 64)
    (found,) = reference.run_double(inputs, {"weight": weight})
    assert torch.allclose(found, torch.nn.functional.layer_norm(inputs[0], (64,), weight))
    assert torch.equal(reference.model.weight, torch.ones(64))


def test_draws_of_python_and_numpy_can_be_made_again() -> None:
    inputs = "torch.tensor([[random.random() for _ in range(32)]]), torch.from_numpy(numpy.random.rand(8, 32))"
    source = SOURCE.replace("import torch\n", "import random\nimport numpy\nimport torch\n", 1)
    reference = Reference(source.format(names="x, y", inputs=inputs, body="        return x + y"))
    first, again = reference.draw_inputs(7), reference.draw_inputs(7)
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not torch.equal(reference.draw_inputs(8)[1], first[1])


@pytest.mark.parametrize("aside_bytes", [None, 0])
def test_cases_come_back_after_another_secret_or_are_made_again_where_they_leave_no_room(
    aside_bytes: int | None,
) -> None:
    book = made("x", "torch.randn(8, 32)", "return 2 * x", aside_bytes=aside_bytes).book
    first = book.case("shifted")
    take_back = book.set_aside()
    assert book.case("shifted") is not first
    take_back()
    assert (book.case("shifted") is first) is (aside_bytes is None)
    assert torch.equal(book.case("shifted").inputs[0], first.inputs[0])


def test_cases_set_aside_are_freed_with_the_others() -> None:
    book = made("x", "torch.randn(8, 32)", "return 2 * x").book
    held = weakref.ref(book.case("shifted").expected[0].values)
    take_back = book.set_aside()
    book.forget_all()
    assert held() is not None, "another secret is drawn from while they are aside"
    book.free()
    gc.collect()
    assert held() is None
    take_back()
    assert torch.isfinite(book.case("shifted").expected[0].values).all()
