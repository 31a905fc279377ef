"""Make the model that `provider:name` means; a provider's package is imported when one of its models is made."""

from __future__ import annotations

import dataclasses
import importlib
import os
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ridgeline.checkpoints.run_record import OFFLINE
from ridgeline.graph.models.batch.gemini_batches import GeminiBatches
from ridgeline.graph.models.batch.model import MOST_CALLS, BatchModel
from ridgeline.graph.models.batch.openai_batches import OpenAIBatches
from ridgeline.graph.models.langchain import LangChainModel
from ridgeline.graph.models.mailbox.model import MAILBOX_TRAITS, is_mailbox, make_mailbox
from ridgeline.graph.models.model_names import FORMS, PACKAGES, check_url, meant_provider, read_name
from ridgeline.graph.models.pacer import Pacer
from ridgeline.graph.models.prices import BATCH_SUFFIX, price_of
from ridgeline.graph.models.requests import COMPOSER, Traits
from ridgeline.graph.models.retry import RetryPolicy, first_line
from ridgeline.graph.models.search_model import AskedAtOnce, AskedInBatches
from ridgeline.tools.errors import ModelError
from ridgeline.tools.wording import option

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from ridgeline.graph.models.batch.service import BatchService
    from ridgeline.graph.models.search_model import SearchModel
    from ridgeline.graph.models.wire import KeepingTransport
    from ridgeline.problems.model_calls import PriceSettings

LOCAL_KEY = "none"
"""The key sent to an OpenAI-compatible server without authentication; the client refuses to have none."""

REASONING = re.compile(r"^(o\d|gpt-5)")
"""OpenAI models that reason; on /chat/completions they reason less than through the Responses API."""

OPENAI_URL = "https://api.openai.com/v1"
GEMINI_KEYS = ("GOOGLE_API_KEY", "GEMINI_API_KEY")


def traits_of(name: str) -> Traits:
    """Return how the model that `name` means differs from others."""
    return COMPOSER if name == OFFLINE else MAILBOX_TRAITS if is_mailbox(name) else Traits()


def make_models(
    names: Sequence[str],
    *,
    prices: Mapping[str, PriceSettings] | None = None,
    needs_prices: bool = False,
    policy: RetryPolicy | None = None,
    sends: bool = True,
) -> list[SearchModel]:
    """Return one model for each name, checked before anything starts; without a name the offline model.

    Without `sends` they are asked nothing, and OpenAI's and Gemini's may lack their keys.

    Raises:
        ModelError: one line; with `needs_prices` (a budget in USD) also for a model without a known price.
    """
    wanted = list(dict.fromkeys(names)) or [OFFLINE]
    if needs_prices:
        for name in wanted:
            if traits_of(name).is_metered and price_of(name, prices) is None:
                raise ModelError(f"{name}: a budget in USD needs its price: add it under `prices:` in problem.yaml")
    pacers: dict[str, Pacer] = {}
    return [make_model(name, prices=prices, policy=policy, pacers=pacers, sends=sends) for name in wanted]


def make_model(
    name: str,
    *,
    base_url: str | None = None,
    prices: Mapping[str, PriceSettings] | None = None,
    policy: RetryPolicy | None = None,
    pacers: dict[str, Pacer] | None = None,
    sends: bool = True,
) -> SearchModel:
    """Return the model that `name` means: "offline", "mailbox", "openai:o3", "openai:mine@http://localhost:8000/v1", ….

    With `?batch` at its end a model is asked through its provider's batches.

    Models of one provider at one address have one key, hence one limit of rate: they share one of `pacers`, which grows.

    Raises:
        ModelError: one line; the name has another form, or its package or its key is missing.
    """
    if name == OFFLINE:
        from ridgeline.graph.offline import OfflineModel

        return AskedAtOnce(OfflineModel())
    if is_mailbox(name):
        return make_mailbox(name, (prices or {}).get(name))
    provider, model, url = read_name(name)
    policy = policy or RetryPolicy()
    check_url(name, base_url or "")
    if name.endswith(BATCH_SUFFIX):
        batch = _make_batch(name, provider, model, base_url or url, prices=prices, policy=policy, sends=sends)
        return AskedInBatches(batch)
    maker = _MAKERS.get(provider)
    chat = (
        maker(name, model, base_url or url, policy, sends=sends)
        if maker
        else _any_provider(name, provider, model, url, policy)
    )
    place = f"{provider}@{base_url or url}" if base_url or url else provider
    pacer = ({} if pacers is None else pacers).setdefault(place, Pacer(place))
    return AskedAtOnce(_chat_model(name, provider, chat, prices=prices, policy=policy, pacer=pacer))


def _chat_model(
    name: str,
    provider: str,
    chat: BaseChatModel,
    *,
    prices: Mapping[str, PriceSettings] | None,
    policy: RetryPolicy,
    pacer: Pacer | None = None,
) -> LangChainModel:
    states_schema = provider == "openai" and not getattr(chat, "use_responses_api", None)
    price = price_of(name, prices)
    return LangChainModel(name, chat, price=price, policy=policy, pacer=pacer, states_schema=states_schema)


def _make_batch(
    name: str,
    provider: str,
    model: str,
    base_url: str,
    *,
    prices: Mapping[str, PriceSettings] | None,
    policy: RetryPolicy,
    sends: bool = True,
) -> BatchModel:
    """Return the model that is asked through its provider's batches.

    Raises:
        ModelError: the provider has none here, or the key is missing.
    """
    if provider not in _MAKERS:
        plain = name.removesuffix(BATCH_SUFFIX)
        raise ModelError(f"{name}: {' and '.join(_MAKERS)} alone have ?batch; {plain} asks without a batch")
    # a batch's answers come in one file; each is read, and limited, by itself
    whole = dataclasses.replace(policy, max_reply_chars=MOST_CALLS * policy.max_reply_chars)
    chat: Any = _MAKERS[provider](name, model, base_url, whole, sends=sends)
    service: BatchService
    service = OpenAIBatches(chat.root_async_client) if provider == "openai" else GeminiBatches(chat.client, model)
    asked = _chat_model(name, provider, chat, prices=prices, policy=policy)
    return BatchModel(name=name, chat=asked, service=service, policy=policy)


def _openai(name: str, model: str, base_url: str, policy: RetryPolicy, *, sends: bool) -> BaseChatModel:
    base_url = base_url or _from_environment("OPENAI_BASE_URL")
    key = os.environ.get("OPENAI_API_KEY") or (LOCAL_KEY if base_url or not sends else "")
    if not key:
        raise ModelError(f"{name}: set OPENAI_API_KEY, or run with {option('model', OFFLINE)}, which needs no key")
    import httpx
    from langchain_openai import ChatOpenAI

    # langchain-openai caches one async client per process, and a second event loop breaks it: a client of our own instead
    client = httpx.AsyncClient(transport=_transport(key, policy), timeout=policy.timeout_s)
    return ChatOpenAI(
        model=model,
        api_key=lambda: key,
        base_url=base_url or OPENAI_URL,
        max_retries=0,
        timeout=policy.timeout_s,
        max_completion_tokens=policy.max_output_tokens,
        http_async_client=client,
        use_responses_api=bool(REASONING.match(model)) and not base_url,
    )


def _from_environment(variable: str) -> str:
    url = os.environ.get(variable, "")
    check_url(variable, url)
    return url


def _gemini(name: str, model: str, base_url: str, policy: RetryPolicy, *, sends: bool) -> BaseChatModel:
    key = next((os.environ[k] for k in GEMINI_KEYS if os.environ.get(k)), LOCAL_KEY if base_url or not sends else "")
    if not key:
        raise ModelError(f"{name}: set {GEMINI_KEYS[0]}, or run with {option('model', OFFLINE)}, which needs no key")
    from langchain_google_genai import ChatGoogleGenerativeAI

    options: dict[str, Any] = {"base_url": base_url} if base_url else {}
    # max_retries=1 is one attempt; 0 means the SDK's default of five
    return ChatGoogleGenerativeAI(
        model=model,
        google_api_key=key,
        max_retries=1,
        timeout=policy.timeout_s,
        max_output_tokens=policy.max_output_tokens,
        vertexai=False,
        client_args={"transport": _transport(key, policy)},
        **options,
    )


def _transport(key: str, policy: RetryPolicy) -> KeepingTransport:
    from ridgeline.graph.models.wire import KeepingTransport  # httpx takes 0.1 s to import

    return KeepingTransport(secrets=[key], max_reply_chars=policy.max_reply_chars)


_CLIENTS_ERROR = "OpenAIError"
"""No ValueError, unlike the complaints of other clients; its library comes with langchain-openai, and is not imported here."""
_MAKERS = {"openai": _openai, "google_genai": _gemini}


def _any_provider(name: str, provider: str, model: str, base_url: str, policy: RetryPolicy) -> BaseChatModel:
    package = PACKAGES.get(provider, "")
    meant = "" if package else meant_provider(provider)
    known = f"; known are {', '.join(sorted([*_MAKERS, *PACKAGES]))}"
    try:
        module = importlib.import_module("langchain.chat_models")
    except ImportError as error:
        if not package:
            others = f"{known}, others once langchain is installed"
            raise ModelError(f"{name}: unknown provider {provider!r}{meant or others}") from error
        raise ModelError(f"{name}: this provider needs its packages: pip install langchain {package}") from error
    options: dict[str, Any] = {"base_url": base_url} if base_url else {}
    if policy.max_output_tokens:
        options["max_tokens"] = policy.max_output_tokens
    try:
        chat: BaseChatModel = module.init_chat_model(
            model, model_provider=provider, max_retries=0, timeout=policy.timeout_s, **options
        )
    except ImportError as error:
        remedy = f"this provider needs its package: pip install {package}" if package else first_line(error)
        raise ModelError(f"{name}: {remedy}") from error
    except Exception as error:  # an unknown provider, or the client's own complaint about a missing key
        if not isinstance(error, ValueError) and type(error).__name__ != _CLIENTS_ERROR:
            raise
        is_unknown = not package and "nsupported provider" in str(error)  # LangChain's own words
        why = f"unknown provider {provider!r}{meant or f'{known}; {FORMS}'}" if is_unknown else first_line(error)
        raise ModelError(f"{name}: {why}") from error
    return chat
