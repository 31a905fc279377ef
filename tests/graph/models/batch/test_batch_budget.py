"""What a batch takes of a search's budget and time."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.graph.loopback import Answer
from tests.graph.loopback_batches import serve_batches
from tests.graph.models.asked import KERNEL
from tests.graph.models.batch.test_batches import session

from ridgeline.graph.models.later_replies import ReplyPending
from ridgeline.problems.spec import Budget
from ridgeline.tools.errors import OutOfBudget

pytestmark = pytest.mark.usefixtures("keys")


async def test_a_batch_holds_room_in_the_budget_in_every_session_until_its_answers_are_there(tmp_path: Path) -> None:
    answer = Answer(KERNEL, input_tokens=2000, output_tokens=1000)
    with serve_batches(lambda n, line: answer) as server:
        with session(tmp_path, server, parks=True, budget=Budget(tokens=80_000)) as search:
            await search.parked("r1i0v0a0:write", "r1i1v0a0:write", "r1i2v0a0:write")
            assert len(server.asked) == 2, "the third may use 32,000 tokens beside the two"
            assert search.journal.totals().batched == 3
        with session(tmp_path, server, parks=True, budget=Budget(tokens=80_000)) as search:
            await search.look()
            assert await search.write("r1i0v0a0:write")
            assert await search.write("r1i1v0a0:write")
            await search.parked("r1i2v0a0:write")
        assert server.asked == [f"r1i{n}v0a0:write" for n in range(3)]
        with session(tmp_path, server, parks=True, budget=Budget(tokens=6_000)) as search:
            await search.look()
            assert await search.write("r1i2v0a0:write"), "what is paid is taken up"
            with pytest.raises(ReplyPending):
                await search.write("r1i3v0a0:write")
            await search.look()
            with pytest.raises(OutOfBudget, match="the budget's tokens"):
                await search.write("r1i3v0a0:write")
            assert search.journal.call("r1i3v0a0:write") is None, "it was never sent"
    assert len(server.asked) == 3


async def test_the_end_of_the_searchs_time_ends_the_wait_and_the_call_waits_on(tmp_path: Path) -> None:
    with serve_batches(lambda n, line: Answer(KERNEL)) as server:
        server.looks_needed = 1_000_000
        with session(tmp_path, server, budget=Budget(wall_s=2.0)) as search:
            with pytest.raises(OutOfBudget, match="the budget's wall_s"):
                await search.write("r1i0v0a0:write")
            assert search.journal.totals().batched == 1
        server.looks_needed = 1
        with session(tmp_path, server, budget=Budget(wall_s=2.0), wall_used_s=-60.0) as search:
            assert await search.write("r1i0v0a0:write")
    assert len(server.asked) == 1
