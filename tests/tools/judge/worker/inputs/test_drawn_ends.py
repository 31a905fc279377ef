"""The ranges that whole numbers are drawn from."""

import pytest
from tests.tools.judge.worker.made import SOURCE

from ridgeline.tools.judge.worker.inputs.drawn_ends import drawn_ends
from ridgeline.tools.judge.worker.reference import Reference


def ends(inputs: str, *names: str) -> dict[int, tuple[int, int]]:
    names = names or ("x",)
    body = f"        return {' + '.join(f'{n}.float().sum()' for n in names)}"
    return drawn_ends(Reference(SOURCE.format(names=", ".join(names), inputs=inputs, body=body)))


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        ("torch.randint(2**40, (8,))", (0, 2**40 - 1)),
        ("torch.randint(-5, 2**20, (8,), dtype=torch.int32)", (-5, 2**20 - 1)),
        ("torch.randint(2**20, (8,)).int()", (0, 2**20 - 1)),
        ("torch.randint(2**20, (8,)).view(2, 4).clone()", (0, 2**20 - 1)),
        ("torch.randint_like(torch.zeros(8, dtype=torch.int64), 2**20)", (0, 2**20 - 1)),
        ("torch.empty(8, dtype=torch.int64).random_(3, 2**20)", (3, 2**20 - 1)),
        ("torch.empty(8, dtype=torch.int64).random_(2**20)", (0, 2**20 - 1)),
        ("torch.randint(2**20, (2, 64)).index_fill_(1, torch.arange(9), -100)", (0, 2**20 - 1)),
        ("torch.randint(2**20, (2, 64)).masked_fill_(torch.arange(64) < 9, -100)", (0, 2**20 - 1)),
        ("torch.randint(2**20, (2, 64)).index_put_((torch.tensor(1),), torch.tensor(-100))", (0, 2**20 - 1)),
        ("(lambda x: [x, x[:, :9].fill_(-100)][0])(torch.randint(2**20, (2, 64)))", (0, 2**20 - 1)),
    ],
)
def test_what_torch_draws_has_its_range(inputs: str, expected: tuple[int, int]) -> None:
    assert ends(inputs) == {0: expected}


@pytest.mark.parametrize(
    "inputs",
    [
        "torch.randint(2**20, (8,)) * 2",
        "torch.randint(2**20, (8,)).mul_(2)",
        "torch.randint(2**20, (8,)).clamp_(max=9)",
        "torch.randint(2**20, (8,)).sort()[0]",
        "torch.randint(2**20, (8,)).float()",
        "torch.randint(2**20, (8,)).copy_(torch.arange(8))",
        "torch.randint(2, (8,)).fill_(7)",
        "torch.empty(8, dtype=torch.int64).random_()",
        "torch.arange(8)",
        "torch.tensor([1, 2, 3])",
    ],
)
def test_what_is_computed_has_none(inputs: str) -> None:
    assert ends(inputs) == {}


def test_each_input_has_its_own() -> None:
    inputs = "torch.randn(8), torch.randint(2**20, (8,)), torch.randint(2**30, (8,)), torch.arange(8)"
    assert ends(inputs, *"abcd") == {1: (0, 2**20 - 1), 2: (0, 2**30 - 1)}
