"""Real provider clients against servers that speak their protocols."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from types import SimpleNamespace

import pytest
from tests.graph.loopback import Answer, Server, serve
from tests.graph.requests_made import ideation, kernel

from ridgeline.graph.models.failures import ModelUnavailable
from ridgeline.graph.models.registry import make_model, make_models
from ridgeline.graph.models.replies import read_ideas, read_kernel
from ridgeline.graph.models.requests import KernelModel
from ridgeline.graph.models.retry import RetryPolicy, retry_after_s, with_retries
from ridgeline.problems.model_calls import PriceSettings
from ridgeline.tools.errors import ModelError
from ridgeline.tools.wording import worded_for_command_line

IDEAS = json.dumps(
    {
        "ideas": [
            {
                "title": "Vectorise the inner loop",
                "mechanism": "use full registers for the row",
                "category": "compute_and_instructions",
                "predicted_gain": 1.4,
                "parent_id": "seed-naive",
                "second_parent_id": None,
            }
        ]
    }
)
KERNEL = json.dumps({"source": "void run() {}", "notes": "short"})
FAST = RetryPolicy(attempts=3, base_s=0.05, cap_s=2.0, timeout_s=2.0)
PROVIDERS = ["openai", "google_genai"]


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("GOOGLE_API_KEY", "test")


def model_at(provider: str, server: Server, policy: RetryPolicy = FAST, name: str = "test-model") -> KernelModel:
    url = f"{server.url}/v1" if provider == "openai" else server.url
    prices = {f"{provider}:{name}": PriceSettings(input=1.0, output=10.0)}
    return make_model(f"{provider}:{name}", base_url=url, prices=prices, policy=policy)


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_ideas_come_back_with_their_usage_and_cost(provider: str) -> None:
    with serve(lambda n, request: Answer(IDEAS)) as server:
        reply = await model_at(provider, server).propose(ideation())
    assert [idea.title for idea in read_ideas(reply.text)] == ["Vectorise the inner loop"]
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (100, 20)
    assert reply.usage.usd == pytest.approx(300 / 1e6)
    assert "Unroll by four" in server.requests[0]["prompt"]


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_the_request_carries_the_json_schema(provider: str) -> None:
    with serve(lambda n, request: Answer(KERNEL)) as server:
        reply = await model_at(provider, server).write(kernel())
    assert read_kernel(reply.text).source == "void run() {}"
    body = server.requests[0]["body"]
    config = body.get("generationConfig", {})
    schema = (
        body["response_format"]["json_schema"]["schema"]
        if provider == "openai"
        else config.get("responseJsonSchema") or config["responseSchema"]
    )
    assert set(schema["properties"]) == {"source", "edits", "notes"}


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_malformed_reply_is_returned_as_text_for_the_journal(provider: str) -> None:
    with serve(lambda n, request: Answer('Sure! {"ideas": [')) as server:
        reply = await model_at(provider, server).propose(ideation())
    assert reply.text == 'Sure! {"ideas": ['
    assert reply.usage.output_tokens == 20


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_rate_limit_is_retried_after_the_time_the_server_names(provider: str) -> None:
    def script(number: int, request: object) -> Answer:
        return Answer(KERNEL) if number else Answer(status=429, headers={"Retry-After": "1"})

    with serve(script) as server:
        await model_at(provider, server).write(kernel())
    assert len(server.requests) == 2
    assert server.times[1] - server.times[0] >= 0.95


async def test_gemini_names_the_time_to_wait_in_its_error() -> None:
    info = [{"@type": "type.googleapis.com/google.rpc.QuotaFailure"}]
    info += [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1.2s"}]
    error = {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "slow down", "details": info}
    refused = Answer(status=429, body=json.dumps({"error": error}).encode())
    with serve(lambda n, request: Answer(KERNEL) if n else refused) as server:
        await model_at("google_genai", server).write(kernel())
    assert len(server.requests) == 2
    assert server.times[1] - server.times[0] >= 1.15


class Limited(Exception):
    """What an SDK raises for a rate limit."""

    def __init__(self, retry_after: str) -> None:
        super().__init__()
        self.response = SimpleNamespace(headers={"retry-after": retry_after})


def test_a_server_may_name_the_time_to_wait_as_a_date() -> None:
    soon = retry_after_s(Limited(format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)))
    assert soon is not None
    assert 20 < soon <= 30
    assert retry_after_s(Limited("Fri, 31 Dec 1999 23:59:59 GMT")) == 0
    assert retry_after_s(Limited("in a while")) is None
    for digits in ("Mon, 01 Jan 2024 00:00:00 +99999999999999999999", "Mon, 01 Jan 99999999999999999999 00:00:00 GMT"):
        assert retry_after_s(Limited(digits)) is None


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_refused_key_is_a_model_error_at_once(provider: str) -> None:
    refused = pytest.raises(ModelError, match=f"{provider}:test-model: the key was refused")
    with serve(lambda n, request: Answer(status=401, error="invalid key")) as server, refused as caught:
        await model_at(provider, server).write(kernel())
    assert len(server.requests) == 1
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_timeout_is_retried_and_then_gives_up(provider: str) -> None:
    policy = RetryPolicy(attempts=2, base_s=0.05, timeout_s=1.0)
    given_up = threading.Event()

    def answer(number: int, request: object) -> Answer:
        given_up.wait(60)
        return Answer(KERNEL)

    with serve(answer) as server:
        with pytest.raises(ModelUnavailable, match="did not answer"):
            await model_at(provider, server, policy).write(kernel())
        deadline = time.monotonic() + 30
        while len(server.requests) < 2 and time.monotonic() < deadline:  # sent; a busy machine reads them later
            await asyncio.sleep(0.01)
        given_up.set()
    assert len(server.requests) == 2


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_server_errors_are_tried_a_bounded_number_of_times(provider: str) -> None:
    with serve(lambda n, request: Answer(status=503)) as server, pytest.raises(ModelUnavailable):
        await model_at(provider, server).write(kernel())
    assert len(server.requests) == FAST.attempts


async def test_server_without_structured_output_is_asked_for_plain_text() -> None:
    def script(number: int, request: dict[str, object]) -> Answer:
        body = request["body"]
        assert isinstance(body, dict)
        if "response_format" in body:
            return Answer(status=400, error="response_format json_schema is not supported")
        return Answer("Here it is:\n```cpp\nvoid run() {}\n```\n")

    with serve(script) as server:
        model = model_at("openai", server)
        reply = await model.write(kernel())
        await model.write(kernel())
    assert read_kernel(reply.text).source == "void run() {}\n"
    assert len(server.requests) == 3


async def test_reasoning_model_goes_to_the_responses_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve(lambda n, request: Answer(KERNEL)) as server:
        monkeypatch.setattr("ridgeline.graph.models.registry.OPENAI_URL", f"{server.url}/v1")
        reply = await make_model("openai:o3", policy=FAST).write(kernel())
    assert server.requests[0]["path"] == "/v1/responses"
    assert read_kernel(reply.text).source == "void run() {}"
    assert reply.usage.usd == pytest.approx((100 * 2 + 20 * 8) / 1e6)


async def test_base_url_in_the_name_reaches_that_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    with serve(lambda n, request: Answer(KERNEL)) as server:
        model = make_model(f"openai:my-model@{server.url}/v1", policy=FAST)
        await model.write(kernel())
    assert server.requests[0]["body"]["model"] == "my-model"
    assert model.name == f"openai:my-model@{server.url}/v1"


@pytest.mark.parametrize("url", ["http://[::1", "localhost:8000", "http://", "ftp://host/v1", "http://h:port/v1"])
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_url_that_no_client_takes_is_told(provider: str, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelError, match=r"is no URL of a server .*write it as in http://localhost:8000/v1"):
        make_model(f"{provider}:mine@{url}")
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    with pytest.raises(ModelError, match="^OPENAI_BASE_URL: .* is no URL of a server"):
        make_model("openai:o3")


@pytest.mark.parametrize("name", ["openai:m@http://me:s3cret-word@h/v1", "openai:m@http://s3cret-word@h/v1?batch"])
def test_an_address_with_a_password_is_refused_without_it(name: str) -> None:
    with pytest.raises(ModelError, match=r"^openai:m: its address holds a password") as caught:
        make_model(name)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "variable"), [("openai:o3", "OPENAI_API_KEY"), ("google_genai:gemini-2.5-pro", "GOOGLE_API_KEY")]
)
def test_missing_key_names_the_variable(name: str, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(variable)
    with pytest.raises(ModelError, match=f"^{name}: set {variable}"):
        make_model(name)


@pytest.mark.parametrize("name", ["o3", "gpt-5", ":", ""])
def test_unreadable_name_says_how_to_write_one(name: str) -> None:
    with pytest.raises(ModelError, match="provider:name"):
        make_model(name)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("offline:x", r"'offline:x': the offline model is one alone; did you mean offline\?$"),
        ("Offline", r"did you mean offline\?$"),
        ("offline@http://localhost:1/v1", r"did you mean offline\?$"),
        ("offline?batch", r"did you mean offline\?$"),
        ("Mailbox:me", r"did you mean mailbox:me\?$"),
        ("mailbox?batch", r"did you mean mailbox\?$"),
        ("agent:x", "--model mailbox, or mailbox:NAME$"),
        ("openai:o3?bach", r"'openai:o3\?bach': no model's name ends in \?bach; did you mean openai:o3\?batch\?$"),
        ("openai:o3?batch?batch", r"did you mean openai:o3\?batch\?$"),
        ("openai", "'openai': names a provider and no model; write openai:NAME, such as openai:o3$"),
        ("openai:", "names a provider and no model; write openai:NAME, such as openai:o3$"),
        ("anthropic:@http://localhost:1", "names a provider and no model; write anthropic:NAME, with the name that"),
        (":o3", "':o3': names no provider; write provider:o3, as in openai:o3$"),
        ("OpenAI:o3", r"unknown provider 'OpenAI'; did you mean openai:o3\?$"),
        ("google-genai:gemini-2.5-pro", r"did you mean google_genai:gemini-2\.5-pro\?$"),
        ("gemini:2.5", r"^gemini:2\.5: unknown provider 'gemini'; did you mean google_genai\?"),
        ("claude:opus", r"did you mean anthropic\?"),
        ("zzz:m", "^zzz:m: unknown provider 'zzz'; known are anthropic, .*openai"),
    ],
)
def test_a_name_that_is_none_says_what_to_write_instead(name: str, says: str) -> None:
    with worded_for_command_line(), pytest.raises(ModelError, match=says) as caught:
        make_model(name)
    assert "\n" not in str(caught.value)


def test_the_complaint_of_azure_s_client_about_a_missing_key_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("OPENAI_API_KEY", "AZURE_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(ModelError, match="^azure_openai:x: .*") as caught:
        make_model("azure_openai:x")
    assert "\n" not in str(caught.value)


def test_other_provider_without_its_package_gets_the_pip_command() -> None:
    with pytest.raises(ModelError, match=r"pip install .*langchain-mistralai"):
        make_model("mistralai:mistral-large")


def test_a_mistyped_provider_is_told_the_one_that_is_meant() -> None:
    with pytest.raises(ModelError, match=r"^opeani:gpt-5: unknown provider 'opeani'; did you mean openai\?$"):
        make_model("opeani:gpt-5")


@pytest.fixture
def without_langchain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langchain.chat_models", None)


@pytest.mark.usefixtures("without_langchain")
def test_a_mistyped_provider_is_never_a_package_to_install() -> None:
    with pytest.raises(ModelError, match=r"^opeani:gpt-5: unknown provider 'opeani'; did you mean openai\?$"):
        make_model("opeani:gpt-5")
    with pytest.raises(ModelError, match="unknown provider 'zzz'; known are anthropic, .*openai") as caught:
        make_model("zzz:m")
    assert "pip install" not in str(caught.value)


@pytest.mark.usefixtures("without_langchain")
def test_a_provider_whose_package_is_called_otherwise_gets_that_name() -> None:
    with pytest.raises(ModelError, match=r"pip install langchain langchain-aws$"):
        make_model("bedrock:nova")


def test_a_mistyped_offline_is_suggested() -> None:
    with pytest.raises(ModelError, match=r"did you mean offline\?$"):
        make_model("Offline")


def test_usd_budget_needs_a_price() -> None:
    with pytest.raises(ModelError, match="needs its price"):
        make_models(["openai:nobody-knows"], needs_prices=True)


async def test_an_empty_reply_carries_what_it_cost() -> None:
    with serve(lambda n, request: Answer("")) as server, pytest.raises(ModelUnavailable, match="nothing") as caught:
        await model_at("openai", server).write(kernel())
    assert (caught.value.usage.input_tokens, caught.value.usage.output_tokens) == (100, 20)
    assert caught.value.usage.usd == pytest.approx(300 / 1e6)


async def test_a_body_that_is_no_json_is_a_failed_call() -> None:
    def broken() -> None:
        json.loads("<html>")

    async def call() -> None:
        broken()

    with pytest.raises(ModelUnavailable, match="proxied gave no usable answer: JSONDecodeError"):
        await with_retries("proxied", call, FAST)


def test_agent_is_said_to_answer_through_the_mailbox() -> None:
    with pytest.raises(ModelError, match="^agent: .*models='mailbox'"):
        make_model("agent")


@pytest.mark.parametrize("name", ["mailbox", "mailbox:claude", "mailbox:me-2.1_x"])
def test_mailboxes_need_no_key_and_no_price_also_with_a_budget_in_usd(name: str) -> None:
    (model,) = make_models([name], needs_prices=True)
    assert model.name == name


@pytest.mark.parametrize("name", ["mailbox:", "mailbox:a b", "mailbox:../x", "mailbox:x@http://localhost:1/v1"])
def test_mailbox_of_another_name_gets_one_line(name: str) -> None:
    with pytest.raises(ModelError, match="write mailbox, or mailbox:NAME"):
        make_model(name)


def test_batches_are_openais_and_geminis_alone() -> None:
    with pytest.raises(ModelError, match="anthropic:x.batch: openai and google_genai alone have .batch") as caught:
        make_model("anthropic:x?batch")
    assert "\n" not in str(caught.value)
