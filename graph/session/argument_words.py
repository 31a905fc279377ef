"""The meaning of a search's arguments, in the same words for a program, a host's form and an agent's tools."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel

from ridgeline.problems.spec import Budget, SearchSettings


def _of_section(section: type[BaseModel], *names: str) -> dict[str, str]:
    """Return the words of keys of a problem.yaml, which states them as sentences."""
    return {name: _phrase(section.model_fields[name].description or "") for name in names}


def _phrase(sentence: str) -> str:
    """Return a sentence without its end, its first letter small but for that of a name (US)."""
    begin = sentence[:1] if sentence[1:2].isupper() else sentence[:1].lower()
    return (begin + sentence[1:]).removesuffix(".")


LIMITS: Mapping[str, str] = _of_section(Budget, *Budget.model_fields)
"""By the name of a budget's limit, what it counts."""

ARGUMENTS: Mapping[str, str] = {
    "device": "cpu, cuda or cuda:N",
    "models": "provider:name, as openai:o3; `offline` needs no key; left out: the problem's, else offline",
    **_of_section(SearchSettings, "rounds", "ideas", "implementations", "strategy"),
    "budget": "limits of finding kernels; timing PyTorch's compiled configurations and the certificate take minutes more",
    "rng_seed": "random seed of the search's choices",
    "park": "end where every branch waits for answers; a resumed search goes on",
    "bank": "a seed bank, the fastest kernels of earlier searches; left out: none",
}
"""By the name of an argument, what it means."""
MAX_ROUNDS = "extend a search that is over to this many rounds"
"""What `rounds` means where a search is resumed."""


def as_sentence(words: str) -> str:
    """Return words as a form shows them; what is no plain word, as `cpu,` or `provider:name`, keeps its letters."""
    begin = words[:1].upper() if words.partition(" ")[0].isalpha() else words[:1]
    return f"{begin}{words[1:]}."
