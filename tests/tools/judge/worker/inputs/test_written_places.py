"""What a reference writes to places by index is uncertain where two numbers meet; what it adds, or fills in, is not."""

from __future__ import annotations

import pytest
from tests.tools.judge.worker.made import SOURCE

from ridgeline.tools.judge.worker.inputs.written_places import writes_to_places
from ridgeline.tools.judge.worker.reference import Reference

INPUTS = "torch.randn(8), torch.randperm(64)[:8]"


@pytest.mark.parametrize(
    ("body", "is_uncertain"),
    [
        ("torch.zeros(64).index_put((i,), x)", True),
        ("torch.zeros(64).index_copy(0, i, x)", True),
        ("torch.zeros(64).scatter(0, i, x)", True),
        ("torch.zeros(64).put(i, x)", True),
        ("(lambda out: (out.__setitem__(i, x), out)[1])(torch.zeros(64))", True),
        ("torch.zeros(64).scatter_add(0, i, x)", False),
        ("torch.zeros(64).index_put((i,), x, accumulate=True)", False),
        ("torch.zeros(64).index_fill(0, i, 2.0) + x.sum()", False),
        ("torch.zeros(64).scatter(0, i, 1.0) + x.sum()", False),
        ("(lambda out: (out.__setitem__(i, 1.0), out)[1])(torch.zeros(64)) + x.sum()", False),
        ("(lambda out: (out.__setitem__(x > 0, x[x > 0]), out)[1])(torch.zeros(8)) + i.sum()", False),
        ("torch.arange(64.0)[i] * x", False),
    ],
)
def test_numbers_that_are_written_by_index_are_uncertain_where_two_meet(body: str, is_uncertain: bool) -> None:
    reference = Reference(SOURCE.format(names="x, i", inputs=INPUTS, body=f"        return {body}"))
    assert writes_to_places(reference, reference.draw_inputs(1)) is is_uncertain


def test_a_reference_that_fails_may_write_anything() -> None:
    body = "        assert int(i[0]) < 64\n        return x * i"
    reference = Reference(SOURCE.format(names="x, i", inputs=INPUTS, body=body))
    x, i = reference.draw_inputs(1)
    assert writes_to_places(reference, (x, i + 64))
