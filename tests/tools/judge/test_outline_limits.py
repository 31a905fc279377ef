"""The limits of an outline are no shorter than those of the judge."""

from __future__ import annotations

import pytest

from ridgeline.tools.judge.hang_limit import reference_limit_s
from ridgeline.tools.judge.outline import LIMIT_S, OutlineRequest, outline_limit_s


@pytest.mark.parametrize("call_timeout_s", [1.0, 30.0, 120.0])
def test_a_step_may_take_as_long_as_before_the_judge(call_timeout_s: float) -> None:
    limit_s = outline_limit_s(call_timeout_s)
    assert limit_s >= LIMIT_S
    assert OutlineRequest(source="", limit_s=limit_s).step_limit_s >= reference_limit_s(call_timeout_s)
