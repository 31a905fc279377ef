"""Make the model that `provider:name` means; a provider's package is imported when one of its models is made."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from ridgeline.checkpoints.run_record import KEYLESS
from ridgeline.graph.models.langchain import LangChainModel
from ridgeline.graph.models.prices import price_of
from ridgeline.graph.models.retry import RetryPolicy, first_line
from ridgeline.tools.errors import ModelError

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from ridgeline.graph.models.requests import KernelModel
    from ridgeline.problems.spec import PriceSettings

OFFLINE = KEYLESS
LOCAL_KEY = "none"
"""The key sent to an OpenAI-compatible server without authentication; the client refuses to have none."""

REASONING = re.compile(r"^(o\d|gpt-5)")
"""OpenAI models that reason; on /chat/completions they reason less than through the Responses API."""

OPENAI_URL = "https://api.openai.com/v1"
GEMINI_KEYS = ("GOOGLE_API_KEY", "GEMINI_API_KEY")

PACKAGES = {
    "anthropic": "langchain-anthropic",
    "azure_ai": "langchain-azure-ai",
    "azure_openai": "langchain-openai",
    "bedrock": "langchain-aws",
    "bedrock_converse": "langchain-aws",
    "cohere": "langchain-cohere",
    "deepseek": "langchain-deepseek",
    "fireworks": "langchain-fireworks",
    "google_anthropic_vertex": "langchain-google-vertexai",
    "google_vertexai": "langchain-google-vertexai",
    "groq": "langchain-groq",
    "huggingface": "langchain-huggingface",
    "ibm": "langchain-ibm",
    "mistralai": "langchain-mistralai",
    "ollama": "langchain-ollama",
    "perplexity": "langchain-perplexity",
    "together": "langchain-together",
    "xai": "langchain-xai",
}
"""LangChain's further providers and their packages. No package is suggested for a provider that is not here: anybody may
have published a package under a misspelt name."""


def make_models(
    names: Sequence[str],
    *,
    prices: Mapping[str, PriceSettings] | None = None,
    needs_prices: bool = False,
    policy: RetryPolicy | None = None,
) -> list[KernelModel]:
    """Return one model for each name, checked before anything starts; without a name the keyless model.

    Raises:
        ModelError: one line; with `needs_prices` (a budget in USD) also for a model without a known price.
    """
    wanted = list(dict.fromkeys(names)) or [OFFLINE]
    if needs_prices:
        for name in wanted:
            if name != OFFLINE and price_of(name, prices) is None:
                raise ModelError(f"{name}: a budget in USD needs its price: add it under `prices:` in problem.yaml")
    return [make_model(name, prices=prices, policy=policy) for name in wanted]


def make_model(
    name: str,
    *,
    base_url: str | None = None,
    prices: Mapping[str, PriceSettings] | None = None,
    policy: RetryPolicy | None = None,
) -> KernelModel:
    """Return the model that `name` means: "offline", "openai:o3", "openai:mine@http://localhost:8000/v1", ….

    Raises:
        ModelError: one line; the name has another form, or its package or its key is missing.
    """
    if name == OFFLINE:
        from ridgeline.graph.offline import OfflineModel

        return OfflineModel()
    if name == "agent":
        raise ModelError("agent: not available yet; name a model as provider:name, or offline, which needs no key")
    bare, _, url = name.partition("@")
    provider, colon, model = bare.partition(":")
    if not colon or not provider or not model:
        meant = _did_you_mean(name, [OFFLINE])
        raise ModelError(
            f"model {name!r}: write provider:name, such as openai:o3, or offline, which needs no key{meant}"
        )
    policy = policy or RetryPolicy()
    _check_url(name, base_url or url)
    maker = _MAKERS.get(provider)
    chat = maker(name, model, base_url or url, policy) if maker else _any_provider(name, provider, model, url, policy)
    return LangChainModel(name, chat, price=price_of(name, prices), policy=policy)


def _openai(name: str, model: str, base_url: str, policy: RetryPolicy) -> BaseChatModel:
    base_url = base_url or _from_environment("OPENAI_BASE_URL")
    key = os.environ.get("OPENAI_API_KEY") or (LOCAL_KEY if base_url else "")
    if not key:
        raise ModelError(f"{name}: set OPENAI_API_KEY, or run with --model offline, which needs no key")
    import httpx
    from langchain_openai import ChatOpenAI

    # langchain-openai caches one async client per process, and a second event loop breaks it. A client of our own that
    # keeps no connection open belongs to no loop; a call takes seconds, so a new connection costs nothing
    client = httpx.AsyncClient(limits=httpx.Limits(max_keepalive_connections=0), timeout=policy.timeout_s)
    return ChatOpenAI(
        model=model,
        api_key=lambda: key,
        base_url=base_url or OPENAI_URL,
        max_retries=0,
        timeout=policy.timeout_s,
        http_async_client=client,
        use_responses_api=bool(REASONING.match(model)) and not base_url,
    )


def _from_environment(variable: str) -> str:
    url = os.environ.get(variable, "")
    _check_url(variable, url)
    return url


def _check_url(where: str, url: str) -> None:
    """Refuse a URL that no client takes; "" is none.

    Raises:
        ModelError: the URL is malformed, or of another scheme.
    """
    if not url:
        return
    import httpx

    reason = "it needs http:// or https:// and a host"
    try:
        read = httpx.URL(url)
        if read.scheme in ("http", "https") and read.host:
            return
    except (httpx.InvalidURL, ValueError) as error:
        reason = first_line(error)
    raise ModelError(f"{where}: {url!r} is no URL of a server ({reason}); write it as in http://localhost:8000/v1")


def _gemini(name: str, model: str, base_url: str, policy: RetryPolicy) -> BaseChatModel:
    key = next((os.environ[k] for k in GEMINI_KEYS if os.environ.get(k)), LOCAL_KEY if base_url else "")
    if not key:
        raise ModelError(f"{name}: set {GEMINI_KEYS[0]}, or run with --model offline, which needs no key")
    from langchain_google_genai import ChatGoogleGenerativeAI

    options: dict[str, Any] = {"base_url": base_url} if base_url else {}
    # max_retries=1 is one attempt; 0 means the SDK's default of five
    return ChatGoogleGenerativeAI(
        model=model, google_api_key=key, max_retries=1, timeout=policy.timeout_s, vertexai=False, **options
    )


_MAKERS = {"openai": _openai, "google_genai": _gemini}


def _any_provider(name: str, provider: str, model: str, base_url: str, policy: RetryPolicy) -> BaseChatModel:
    package = PACKAGES.get(provider, "")
    meant = "" if package else _did_you_mean(provider, [*_MAKERS, *PACKAGES])
    try:
        module = importlib.import_module("langchain.chat_models")
    except ImportError as error:
        if not package:
            known = f"; known are {', '.join(sorted([*_MAKERS, *PACKAGES]))}, others once langchain is installed"
            raise ModelError(f"{name}: unknown provider {provider!r}{meant or known}") from error
        raise ModelError(f"{name}: this provider needs its packages: pip install langchain {package}") from error
    options: dict[str, Any] = {"base_url": base_url} if base_url else {}
    try:
        chat: BaseChatModel = module.init_chat_model(
            model, model_provider=provider, max_retries=0, timeout=policy.timeout_s, **options
        )
    except ImportError as error:
        remedy = f"this provider needs its package: pip install {package}" if package else first_line(error)
        raise ModelError(f"{name}: {remedy}") from error
    except ValueError as error:  # an unknown provider, or the client's own complaint about a missing key
        raise ModelError(f"{name}: {first_line(error)}{meant}") from error
    return chat


def _did_you_mean(word: str, known: Iterable[str]) -> str:
    close = get_close_matches(word.lower(), known, n=1)
    return f"; did you mean {close[0]}?" if close else ""
