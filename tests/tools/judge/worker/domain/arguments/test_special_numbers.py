"""Whole numbers that stand for something else: none is tried that `get_inputs` never gives."""

from __future__ import annotations

import pytest
from tests.tools.judge.worker.made import made

from ridgeline.tools.judge.worker.domain.objections import OTHER_MEANING

CTC = (
    "full = lambda n: torch.full((x.shape[1],), n, dtype=torch.long)",
    "return nn.functional.ctc_loss(x.log_softmax(-1), y, full(x.shape[0]), full(y.shape[1]), blank=0, reduction='none')",
)


@pytest.mark.parametrize(
    ("inputs", "body"),
    [
        ("torch.randn(40, 8, 12), torch.randint(1, 12, (8, 5))", CTC),
        ("torch.randn(64, 9), torch.randint(1, 65, (512,))", ("return x[y - 1] * 2",)),
        ("torch.randn(64, 9), torch.randint(1, 33, (512,))", ("return x.new_zeros(64, 9).index_put((y - 1,), x[:1])",)),
    ],
)
def test_no_number_becomes_a_blank_or_an_index_below_0(inputs: str, body: tuple[str, ...]) -> None:
    found = made("x, y", inputs, *body)
    for seed in range(6):
        assert int(found.source.nominal(f"seed {seed}")[1].min()) >= 1


@pytest.mark.parametrize(
    ("inputs", "body"),
    [
        ("torch.randn(64, 9), torch.randint(1, 64, (512,))", ("return x[y] * 2",)),  # 0 is an index as any
        (
            "torch.randn(64, 9), torch.randint(0, 64, (512,))",
            ("return x[y - 1] * 2",),
        ),  # they come from the end as drawn
        ("torch.randn(64, 9), torch.randint(1, 64, (512,))", ("return x.gather(0, y[:, None]) * 2",)),
    ],
)
def test_what_is_an_index_like_any_other_is_tried(inputs: str, body: tuple[str, ...]) -> None:
    found = made("x, y", inputs, *body)
    assert OTHER_MEANING not in (found.domain.not_varied | found.domain.only_as_drawn).values()
    assert min(int(found.source.nominal(f"seed {seed}")[1].min()) for seed in range(6)) == 0


@pytest.mark.parametrize(
    ("inputs", "body"),
    [
        ("torch.randn(64, 9), torch.randint(0, 64, (40,))", "return x[y - 1] * 2"),
        (
            "torch.randn(8, 9), torch.where(torch.rand(8) < 0.1, -100, torch.randint(9, (8,)))",
            "return nn.functional.cross_entropy(x, y, reduction='none')",
        ),
    ],
)
def test_what_only_some_draws_have_as_given_is_no_new_meaning_under_any_secret(inputs: str, body: str) -> None:
    for secret in range(12):
        found = made("x, y", inputs, body, secret=b"%d" % secret)
        assert OTHER_MEANING not in (found.domain.not_varied | found.domain.only_as_drawn).values()
