"""The pace of requests to one provider, learnt from its refusals."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest
from tests.graph.loopback import Answer, serve
from tests.graph.models.asked import FAST, KERNEL, PROTOCOLS, asked, model_of
from tests.graph.requests_made import kernel

from ridgeline.graph.models import pacer as pacing
from ridgeline.graph.models.call_in_hand import IN_HAND, CallInHand
from ridgeline.graph.models.failures import ModelUnavailable
from ridgeline.graph.models.pacer import Pacer
from ridgeline.graph.models.registry import make_models
from ridgeline.graph.models.retry import RetryPolicy
from ridgeline.problems.spec import Budget
from ridgeline.tools.errors import NotBegun, OutOfBudget

pytestmark = pytest.mark.usefixtures("keys")


def one_each(period_s: float, headers: dict[str, str]) -> Callable[[int, object], Answer]:
    """Return a script that admits one request each `period_s` and refuses the others for their rate."""
    lock, last = threading.Lock(), [-1e9]

    def script(number: int, request: object) -> Answer:
        with lock:
            now = time.monotonic()
            if now - last[0] < period_s:
                return Answer(status=429, headers=headers, error="slow down")
            last[0] = now
        return Answer(KERNEL)

    return script


def divide_times(monkeypatch: pytest.MonkeyPatch, by: int) -> None:
    for name in ("FIRST_INTERVAL_S", "NO_INTERVAL_S", "LONGEST_INTERVAL_S", "PATIENCE_S"):
        monkeypatch.setattr(pacing, name, getattr(pacing, name) / by)


@pytest.mark.first_case
@pytest.mark.parametrize("headers", [{}, {"Retry-After": "0.1"}], ids=["silent", "retry-after"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_all_of_16_branches_are_answered_by_a_server_that_admits_one_each_2_s(
    protocol: str, headers: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a twentieth of every time: the server admits one request each 0.1 s in the place of 2 s."""
    divide_times(monkeypatch, 20)
    with serve(one_each(0.1, headers)) as server:
        monkeypatch.setattr("ridgeline.graph.models.registry.OPENAI_URL", f"{server.url}/v1")
        model = model_of(protocol, server, RetryPolicy(attempts=5))
        with asked(tmp_path, model) as given:
            drafts = await asyncio.gather(
                *(given.models.write(f"r1i{n}v0a0:write", model.name, kernel()) for n in range(16))
            )
    assert len(drafts) == 16
    assert len(server.requests) < 16 * 4, "refusals are learnt from, not repeated"


async def test_a_limit_by_the_minute_that_is_used_up_costs_no_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a twentieth of every time: nothing is admitted for 0.5 s, nor before three refusals, which come within 0.2 s.

    Patience lasts 3 s, so that a machine on which a request takes half a second is no provider that admits nothing.
    """
    divide_times(monkeypatch, 20)
    asked_s: list[float] = []

    def script(number: int, request: object) -> Answer:
        asked_s.append(time.monotonic())
        is_over = asked_s[-1] - asked_s[0] > 0.5 and len(asked_s) > FAST.attempts
        return Answer(KERNEL) if is_over else Answer(status=429)

    with serve(script) as server:
        model = model_of("chat", server)
        with asked(tmp_path, model) as given:
            assert (await given.models.write("r1i0v0a0:write", model.name, kernel())).source
    assert FAST.attempts < len(server.requests) < 16


async def test_a_provider_that_admits_nothing_is_given_up_by_all_branches_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the first eight have to be under way before the wait that the first refusal sets ends
    divide_times(monkeypatch, 10)
    monkeypatch.setattr(pacing, "PATIENCE_S", 0.0)
    with serve(lambda n, request: Answer(status=429)) as server:
        model = model_of("chat", server)
        with asked(tmp_path, model) as given:
            calls = (given.models.write(f"r1i{n}v0a0:write", model.name, kernel()) for n in range(8))
            ends = await asyncio.gather(*calls, return_exceptions=True)
    assert {type(end) for end in ends} == {ModelUnavailable}
    assert "requests in a row for their rate" in str(ends[0])
    assert len(server.requests) <= 8 + FAST.attempts


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("form", ["seconds", "date"])
async def test_a_wait_beyond_the_budgets_time_ends_the_search_at_once_in_one_line(
    protocol: str, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = {"seconds": "7200", "date": format_datetime(datetime.now(UTC) + timedelta(hours=2), usegmt=True)}[form]
    with serve(lambda n, request: Answer(status=429, headers={"Retry-After": later})) as server:
        monkeypatch.setattr("ridgeline.graph.models.registry.OPENAI_URL", f"{server.url}/v1")
        model = model_of(protocol, server)
        with asked(tmp_path, model, budget=Budget(wall_s=60)) as given:
            began = time.monotonic()
            with pytest.raises(
                OutOfBudget, match=r"takes the next request in 7,\d\d\d s, and 60 s of the budget's wall_s"
            ):
                await given.models.write("r1i0v0a0:write", model.name, kernel())
            assert time.monotonic() - began < 10
            assert given.allowance.ended
    assert len(server.requests) == 1


async def test_a_wait_of_more_than_a_day_is_not_begun() -> None:
    with pytest.raises(OutOfBudget, match="more than a day"):
        await Pacer("slow").pause(86_401.0)


async def test_a_stop_ends_a_wait() -> None:
    stopping: list[bool] = []
    token = IN_HAND.set(CallInHand(keep=lambda body: asyncio.sleep(0), is_stopping=lambda: bool(stopping)))
    try:
        asyncio.get_running_loop().call_later(0.2, stopping.append, True)
        began = time.monotonic()
        with pytest.raises(NotBegun):
            await Pacer("slow").pause(3600.0)
        assert time.monotonic() - began < 5
    finally:
        IN_HAND.reset(token)


def test_models_of_one_provider_share_a_pacer_and_others_do_not() -> None:
    names = ["openai:a", "openai:b", "google_genai:c", "openai:d@http://localhost:1/v1"]
    pacers = [model.model._pacer for model in make_models(names)]  # type: ignore[attr-defined]
    assert pacers[0] is pacers[1]
    assert len({id(pacer) for pacer in pacers}) == 3


def test_the_interval_grows_with_refusals_of_new_requests_only_and_shrinks_with_admissions() -> None:
    pacer = Pacer("any")
    together = [pacing.Turn(time.monotonic()) for _ in range(5)]
    for turn in together:
        pacer.refused(turn, None)
    assert pacer._interval_s == pacing.FIRST_INTERVAL_S
    pacer.refused(pacing.Turn(time.monotonic() + 1), None)
    assert pacer._interval_s == 2 * pacing.FIRST_INTERVAL_S
    for _ in range(100):
        pacer.admitted()
    assert pacer._interval_s == 0.0
