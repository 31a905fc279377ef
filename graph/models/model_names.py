"""Names of models, `provider:name` and the two that need no key: what each means, and what was meant by one that means none.

A name is read without its provider's package, and without a key.
"""

from __future__ import annotations

from ridgeline.checkpoints.run_record import OFFLINE
from ridgeline.graph.models.mailbox.model import MAILBOX, check_mailbox, is_mailbox
from ridgeline.graph.models.prices import BATCH_SUFFIX
from ridgeline.graph.models.retry import first_line
from ridgeline.tools.errors import ModelError
from ridgeline.tools.wording import did_you_mean, option

OWN_PROVIDERS = ("openai", "google_genai")
"""Providers that Ridgeline itself asks; the others are LangChain's."""
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
_MEANT = {
    **dict.fromkeys(("gemini", "google"), "google_genai"),
    **dict.fromkeys(("gpt", "chatgpt"), "openai"),
    "claude": "anthropic",
    "grok": "xai",
    "mistral": "mistralai",
    "vertexai": "google_vertexai",
}
"""Words for a provider that are not near it in letters."""
FORMS = "write provider:name, such as openai:o3, or offline or mailbox, which need no key"
"""The forms of a model's name, for who wrote none."""


def check_name(name: str) -> None:
    """Refuse a name that means no model, whatever packages and keys are here.

    Raises:
        ModelError: one line that says what to write in its place.
    """
    if is_mailbox(name):
        check_mailbox(name)
    elif name != OFFLINE:
        read_name(name)


def is_name(name: str) -> bool:
    """Say whether a name means a model that Ridgeline makes; another is a program's own."""
    try:
        check_name(name)
    except ModelError:
        return False
    return True


def read_name(name: str) -> tuple[str, str, str]:
    """Return the provider, its model and the address ("": the provider's own) of a name that needs a key.

    Raises:
        ModelError: the name has another form.
    """
    if name.partition(":")[0] == "replay":
        raise ModelError(
            f"{name}: name the run whose answers are replayed: {option('replay', 'RUN')}, in the place of {option('model')}"
        )
    bare, _, url = name.removesuffix(BATCH_SUFFIX).partition("@")
    provider, _, model = bare.partition(":")
    _check_form(name, provider, model)
    check_url(name, url)
    _check_no_password(bare, url)
    return provider, model, url


def _check_form(name: str, provider: str, model: str) -> None:
    """Refuse a name that is no provider's and its model's, or that means something else.

    Raises:
        ModelError: one line that says what to write in its place.
    """
    word = provider.strip().lower().replace("-", "_")
    if word == OFFLINE:
        raise ModelError(f"model {name!r}: the offline model is one alone; did you mean {OFFLINE}?")
    if word == MAILBOX:
        named = f"{MAILBOX}:{model}" if model else MAILBOX
        raise ModelError(f"model {name!r}: write mailbox, or mailbox:NAME, in small letters; did you mean {named}?")
    if word == "agent":
        raise ModelError(f"{name}: an agent of your own answers through {option('model', 'mailbox')}, or mailbox:NAME")
    known = [*OWN_PROVIDERS, *PACKAGES]
    if provider and not model and word in known:
        example = f"such as {word}:o3" if word == "openai" else "with the name that its provider gives it"
        raise ModelError(f"model {name!r}: names a provider and no model; write {word}:NAME, {example}")
    asked, mark, suffix = model.partition("?")
    if mark:
        meant = f"{provider}:{asked}{BATCH_SUFFIX}"
        raise ModelError(f"model {name!r}: no model's name ends in ?{suffix}; did you mean {meant}?")
    if not provider and model:
        raise ModelError(f"model {name!r}: names no provider; write provider:{model}, as in openai:o3")
    if not provider or not model:
        meant = did_you_mean(name.lower(), [OFFLINE, MAILBOX], before="; ")
        raise ModelError(f"model {name!r}: {FORMS}{meant}")
    if word in known and word != provider:  # LangChain takes it for the other, with a client and a key of its own
        raise ModelError(f"{name}: unknown provider {provider!r}; did you mean {word}:{model}?")


def check_url(where: str, url: str) -> None:
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


def _check_no_password(bare: str, url: str) -> None:
    """Refuse an address with a password: the names of a run's models are in its files, its log and its report.

    Raises:
        ModelError: the address holds one, or a user's name.
    """
    if not url:
        return
    import httpx

    if httpx.URL(url).userinfo:
        raise ModelError(
            f"{bare}: its address holds a password, which every file of the run would show; set OPENAI_BASE_URL to the "
            "address, or give it without"
        )


def meant_provider(provider: str) -> str:
    """Return "; did you mean openai?" of a word that is near a provider's, or is its model's or its company's; else ""."""
    word = provider.lower()
    return (
        f"; did you mean {_MEANT[word]}?"
        if word in _MEANT
        else did_you_mean(word, [*OWN_PROVIDERS, *PACKAGES], before="; ")
    )
