"""The cost of calls: cached tokens at their own price, thought counted, an unknown price said and not shown as nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.graph.conftest import write_problem
from tests.graph.loopback import Answer, _body, serve
from tests.graph.memory_engine import MemoryEngine
from tests.graph.models.asked import FAST, KERNEL, PROTOCOLS, asked, model_of
from tests.graph.requests_made import kernel
from tests.graph.session.test_killed import reply_to
from tests.graph.session.test_session import SETTINGS

from ridgeline.checkpoints.report.figures import usd_text
from ridgeline.graph.models.allowance import prompt_tokens
from ridgeline.graph.models.failures import ModelUnavailable
from ridgeline.graph.models.prices import Tariff, price_of
from ridgeline.graph.models.registry import make_model
from ridgeline.graph.models.requests import Usage
from ridgeline.graph.session.options import SearchRequest
from ridgeline.graph.session.session import run_search
from ridgeline.problems.model_calls import PriceSettings
from ridgeline.problems.spec import Budget
from ridgeline.tools.errors import OutOfBudget

pytestmark = pytest.mark.usefixtures("keys")
ANSWER = Answer(KERNEL, input_tokens=1000, output_tokens=50, cached_tokens=800)


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_cached_tokens_cost_their_own_price_and_thought_is_counted(
    protocol: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve(lambda n, request: ANSWER) as server:
        monkeypatch.setattr("ridgeline.graph.models.registry.OPENAI_URL", f"{server.url}/v1")
        model = model_of(protocol, server)
        reply = await model.write(kernel())
        with asked(tmp_path, model) as given:
            await given.models.write("r1i0v0a0:write", model.name, kernel())
            stored = given.journal.stored("r1i0v0a0:write")
    usage = reply.usage
    assert (usage.input_tokens, usage.cached_tokens, usage.output_tokens, usage.reasoning_tokens) == (1000, 800, 50, 8)
    assert usage.usd == pytest.approx((200 * 1.0 + 800 * 0.5 + 50 * 10.0) / 1e6)
    assert stored is not None and (stored["cached_tokens"], stored["reasoning_tokens"]) == (800, 8)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("body", [b"<html>busy</html>", b'{"id": "c1", "choices": [{"mess', b"\xff\xfe\x00"])
async def test_an_answer_that_cannot_be_read_costs_at_least_what_was_sent(
    body: bytes, protocol: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve(lambda n, request: Answer(body=body)) as server:
        monkeypatch.setattr("ridgeline.graph.models.registry.OPENAI_URL", f"{server.url}/v1")
        model = model_of(protocol, server)
        with asked(tmp_path, model) as given:
            with pytest.raises(ModelUnavailable, match="no usable answer"):
                await given.models.write("r1i0v0a0:write", model.name, kernel())
            [call] = given.journal.calls("failed")
    sent = FAST.attempts * prompt_tokens(server.requests[0]["prompt"])
    assert len(server.requests) == FAST.attempts
    assert call.input_tokens == sent > 0 and call.output_tokens == 0
    assert call.usd == pytest.approx(sent * 1.0 / 1e6)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("body", [b"<html>busy</html>", b'{"id": "\xff", "choices": [{"mess', b"[" * 99_999])
async def test_an_answer_that_cannot_be_read_is_one_failed_attempt_which_is_paid(
    body: bytes, protocol: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve(lambda n, request: ANSWER if n else Answer(body=body)) as server:
        monkeypatch.setattr("ridgeline.graph.models.registry.OPENAI_URL", f"{server.url}/v1")
        model = model_of(protocol, server)
        with asked(tmp_path, model) as given:
            assert (await given.models.write("r1i0v0a0:write", model.name, kernel())).notes == "short"
            stored = given.journal.stored("r1i0v0a0:write")
    sent = prompt_tokens(server.requests[0]["prompt"])
    assert len(server.requests) == 2
    assert stored is not None and stored["input_tokens"] == 1000 + sent


BAD_COUNTS = {
    "beyond a float": f"1{'0' * 400}",
    "beyond what Python reads": f"1{'0' * 5000}",
    **{text: text for text in ("10000000000000", "1e308", "NaN", "12.5", "-5", '"many"', "true", "[5]")},
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("count", BAD_COUNTS)
async def test_counts_that_can_be_none_are_set_aside_and_the_text_is_kept(
    count: str, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(request: dict[str, Any]) -> Answer:
        body = _body(request["path"], ANSWER)
        name = "usageMetadata" if "usageMetadata" in body else "usage"
        body[name] = {key: each if isinstance(each, dict) else "BAD" for key, each in body[name].items()}
        text = json.dumps(body).replace('"BAD"', BAD_COUNTS[count])
        return Answer(body=text.encode())

    with serve(lambda n, request: answer(request)) as server:
        monkeypatch.setattr("ridgeline.graph.models.registry.OPENAI_URL", f"{server.url}/v1")
        reply = await model_of(protocol, server).write(kernel())
    sent = prompt_tokens(server.requests[0]["prompt"])
    assert len(server.requests) == 1 and json.loads(reply.text)["notes"] == "short"
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (sent, prompt_tokens(reply.text))


BESIDE_COUNTS = [7, "x", [], [7], {}, {"cached": [7]}, [{"modality": 7}]]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("odd", BESIDE_COUNTS, ids=str)
async def test_what_lies_between_the_counts_and_has_another_form_costs_no_answer(
    odd: Any, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(request: dict[str, Any]) -> Answer:
        body = _body(request["path"], ANSWER)
        usage = body["usageMetadata" if "usageMetadata" in body else "usage"]
        sides = ("prompt", "completion", "input", "output")
        usage |= {name: odd for side in sides for name in (f"{side}_tokens_details", f"{side}TokensDetails")}
        usage |= {"trafficType": odd, "cost": odd}
        return Answer(body=json.dumps(body).encode())

    with serve(lambda n, request: answer(request)) as server:
        monkeypatch.setattr("ridgeline.graph.models.registry.OPENAI_URL", f"{server.url}/v1")
        reply = await model_of(protocol, server).write(kernel())
    assert len(server.requests) == 1 and json.loads(reply.text)["notes"] == "short"
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (1000, 50)


@pytest.mark.parametrize(("encoding", "status", "is_paid"), [("br", 200, True), ("br", 500, False)])
async def test_only_an_answer_is_paid_and_no_error_of_the_server(encoding: str, status: int, is_paid: bool) -> None:
    answer = Answer(status=status, headers={"content-encoding": encoding}, body=b"x")
    with serve(lambda n, request: answer) as server, pytest.raises(ModelUnavailable, match="packed as") as caught:
        await model_of("chat", server).write(kernel())
    assert (caught.value.usage.input_tokens > 0) is is_paid


async def test_a_search_ends_at_its_budget_although_no_answer_can_be_read(tmp_path: Path) -> None:
    with serve(lambda n, request: Answer(body=b"<html>busy</html>")) as server:
        model = model_of("chat", server)
        with asked(tmp_path, model, budget=Budget(tokens=20_000)) as given:
            for number in range(60):
                with pytest.raises((ModelUnavailable, OutOfBudget)) as caught:
                    await given.models.write(f"r1i0v{number}a0:write", model.name, kernel())
                if isinstance(caught.value, OutOfBudget):
                    break
    assert isinstance(caught.value, OutOfBudget) and len(server.requests) < 60


@pytest.mark.parametrize("model", ["openai:o3", "google_genai:gemini-2.5-pro"])
def test_list_prices_know_cached_tokens(model: str) -> None:
    price = price_of(model)
    assert price is not None
    assert price.usd(1000, 0, 900) < 0.5 * price.usd(1000, 0)


def test_a_stated_price_without_one_for_cached_tokens_takes_them_as_others() -> None:
    assert PriceSettings(input=2.0, output=8.0).usd(1000, 0, 900) == pytest.approx(0.002)


def test_more_cached_tokens_than_input_are_a_server_s_mistake() -> None:
    tariff = Tariff(price=PriceSettings(input=2.0, output=8.0, cached_input=1.0))
    assert tariff.usd(Usage(input_tokens=100, cached_tokens=500)) == pytest.approx(100 / 1e6)


async def test_an_unknown_price_is_said_once_and_shown_as_unknown(tmp_path: Path) -> None:
    problem = write_problem(tmp_path / "problem", search=SETTINGS | {"rounds": 2})
    events: list[dict[str, object]] = []
    with serve(lambda n, request: Answer(reply_to(request))) as server:
        model = make_model(f"openai:loop@{server.url}/v1", policy=FAST)
        request = SearchRequest(problem=problem, run_dir=tmp_path / "run")
        result = await run_search(request, engine=MemoryEngine(), models=[model], on_event=events.append)  # type: ignore[arg-type]
    said = [str(e["message"]) for e in events if e["event"] == "warning" and "price" in str(e["message"])]
    assert len(said) == 1 and f"price of {model.name} is unknown: its cost counts as nothing" in said[0]
    assert result.report["unpriced_calls"] == 10
    assert [e["unpriced_calls"] for e in events if e["event"] == "round_done"] == [5, 10]
    page = (tmp_path / "run" / "report.html").read_text()
    assert "price unknown" in page and "$0.00" not in page


async def test_calls_that_all_failed_at_an_unknown_price_are_shown_as_such(tmp_path: Path) -> None:
    with serve(lambda n, request: Answer(body=b"<html>busy</html>")) as server:
        unpriced, priced = (model_of("chat", server, price=price) for price in (False, True))
        for model, is_unpriced in ((unpriced, True), (priced, False)):
            with asked(tmp_path / str(is_unpriced), model) as given:
                with pytest.raises(ModelUnavailable):
                    await given.models.write("r1i0v0a0:write", model.name, kernel())
                [call], totals = given.journal.calls("failed"), given.journal.totals()
            assert (call.unpriced, totals.unpriced, totals.tokens > 0) == (is_unpriced, is_unpriced, True)
            assert (usd_text(totals.usd, totals.unpriced) == "price unknown") is is_unpriced


def test_unknown_prices_in_words() -> None:
    assert [usd_text(0.0), usd_text(1.2), usd_text(0.031)] == ["$0.00", "$1.20", "$0.031"]
    assert [usd_text(0.0, 3), usd_text(1.2, 1)] == ["price unknown", "$1.20 and 1 call of unknown price"]


def test_a_batch_costs_half_the_models_price_and_an_unknown_one_stays_unknown() -> None:
    listed, batched = price_of("openai:gpt-4o"), price_of("openai:gpt-4o?batch")
    assert listed is not None and batched is not None
    assert batched.usd(1000, 100, 500) == pytest.approx(listed.usd(1000, 100, 500) / 2)
    assert price_of("openai:gpt-4o@http://localhost:1/v1?batch") is None
    assert price_of("openai:no-such-model?batch") is None
    stated = {"openai:mine": PriceSettings(input=2.0, output=8.0)}
    mine = price_of("openai:mine@http://localhost:1/v1?batch", stated)
    assert mine is not None and mine.usd(1_000_000, 0) == pytest.approx(1.0)
    stated["openai:mine?batch"] = PriceSettings(input=1.5, output=8.0)
    mine = price_of("openai:mine@http://localhost:1/v1?batch", stated)
    assert mine is not None and mine.usd(1_000_000, 0) == pytest.approx(1.5)
