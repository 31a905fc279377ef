"""Room in a budget, reserved before a call is sent."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path
from typing import Any

import pytest
from tests.graph.loopback import Answer, serve
from tests.graph.models.asked import IDEAS, KERNEL, asked, model_of
from tests.graph.requests_made import ideation, kernel

from ridgeline.graph.models.allowance import prompt_tokens
from ridgeline.graph.models.prompts import render_request
from ridgeline.problems.spec import Budget
from ridgeline.tools.errors import OutOfBudget

pytestmark = pytest.mark.usefixtures("keys")
CALL_TOKENS = 3000
PROMPT = prompt_tokens(render_request(kernel()))


def answers(request: Any) -> Answer:
    return Answer(KERNEL, input_tokens=PROMPT, output_tokens=CALL_TOKENS - PROMPT, delay_s=0.05)


@pytest.mark.parametrize("calls", [1, 4, 16])
@pytest.mark.parametrize("budget", [Budget(tokens=10_000), Budget(usd=0.07)], ids=["tokens", "usd"])
async def test_a_budget_overshoots_by_one_call_at_most_whatever_the_parallelism(
    calls: int, budget: Budget, tmp_path: Path
) -> None:
    with serve(lambda n, request: answers(request)) as server:
        model = model_of("chat", server)
        with asked(tmp_path, model, budget=budget) as given:
            for batch in range(16 // calls):
                ids = [f"r1i{batch}v{n}a0:write" for n in range(calls)]
                ends = await asyncio.gather(
                    *(given.models.write(each, model.name, kernel()) for each in ids), return_exceptions=True
                )
            totals = given.journal.totals()
            used = {"tokens": totals.input_tokens + totals.output_tokens, "usd": totals.usd}
            (failed,) = [given.allowance.ended]
    assert {type(end) for end in ends if isinstance(end, BaseException)} == {OutOfBudget}
    one_usd = (PROMPT * 1 + (CALL_TOKENS - PROMPT) * 10) / 1e6
    one = {"tokens": CALL_TOKENS, "usd": one_usd}
    (limit,) = [(name, value) for name, value in budget.model_dump(exclude_none=True).items()]
    assert limit[1] - one[limit[0]] <= used[limit[0]] <= limit[1] + one[limit[0]]
    assert f"the budget's {limit[0]} " in failed
    assert len(server.requests) == round(used["tokens"] / CALL_TOKENS), "what does not fit is not sent"


async def test_calls_that_fit_together_are_sent_together(tmp_path: Path) -> None:
    with serve(lambda n, request: dataclasses.replace(answers(request), delay_s=0.5)) as server:
        model = model_of("chat", server)
        with asked(tmp_path, model, budget=Budget(tokens=10_000_000)) as given:
            await asyncio.gather(*(given.models.write(f"r1i{n}v0a0:write", model.name, kernel()) for n in range(8)))
    assert max(server.times) - min(server.times) < 0.5


async def test_a_prompt_larger_than_the_budget_is_never_sent(tmp_path: Path) -> None:
    with serve(lambda n, request: Answer(IDEAS)) as server:
        model = model_of("chat", server)
        with asked(tmp_path, model, budget=Budget(tokens=100)) as given:
            with pytest.raises(
                OutOfBudget, match=r"the next model call needs about .* of the budget's tokens are used"
            ):
                await given.models.propose("r1:ideate:0", model.name, ideation())
            assert given.journal.totals().calls == 0
    assert not server.requests


async def test_a_stored_reply_needs_no_room(tmp_path: Path) -> None:
    with serve(lambda n, request: Answer(KERNEL)) as server:
        model = model_of("chat", server)
        for budget in (None, Budget(tokens=1)):
            with asked(tmp_path, model, budget=budget) as given:
                assert await given.models.write("r1i0v0a0:write", model.name, kernel())
    assert len(server.requests) == 1
