"""Mistakes that pydantic found in a problem file, in the words of the person who wrote it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from ridgeline.problems import names
from ridgeline.problems.files import LONGEST_SHOWN, as_name, as_words
from ridgeline.problems.syntax import DTYPE_NAMES
from ridgeline.tools.errors import ProblemError

_PLAIN_TYPES = {
    "string_type": "text",
    "int_type": "a whole number",
    "float_type": "a number",
    "size_type": f"a number or one of {', '.join(DTYPE_NAMES)}",
    "size_range": "a number that a float can hold",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}

_MEANT = {
    "gpu": "cuda",
    "nvidia": "cuda",
    "float64": "fp64",
    "double": "fp64",
    "float32": "fp32",
    "tensorfloat32": "tf32",
    "float16": "fp16",
    "half": "fp16",
    "bfloat16": "bf16",
    "float8": "fp8",
    **dict.fromkeys(("cpp", "c++", "cxx", "cu", "native", "cuda"), "c"),
    "pytorch": "torch",
    **dict.fromkeys(("py", "python", "triton", "modelnew"), "module"),
}
"""Words for an allowed one that are not near it in letters."""

Stated = TypeVar("Stated", bound=BaseModel)
Sections = Mapping[str, type[BaseModel]]
"""The models of a file's nested parts, by the top-level key they are under."""


def explain_mistake(errors: Sequence[ErrorDetails], root: type[BaseModel], sections: Sections) -> str:
    """Return the `mistakes_of` a file as one line."""
    return told_together(mistakes_of(errors, root, sections))


def mistakes_of(errors: Sequence[ErrorDetails], root: type[BaseModel], sections: Sections) -> list[str]:
    """Return "field: what is wrong; the remedy" of each mistake.

    An unknown key comes first: it is usually a required one, misspelt, whose absence is then no mistake of its own.

    Args:
        errors: what pydantic found, in its order.
        root: the model of the whole file.
        sections: those of its nested parts.
    """
    unknown = [error for error in errors if error["type"] == _UNKNOWN]
    meant = {(*error["loc"][:-1], *_near(error, _known_keys(error, root, sections))[:1]) for error in unknown}
    others = [e for e in errors if e["type"] != _UNKNOWN and not (e["type"] == "missing" and e["loc"] in meant)]
    return [_explained(error, root, sections) for error in [*unknown, *others]]


def rest_of(
    data: Mapping[str, Any], root: type[Stated], place: object, sections: Sections
) -> tuple[Stated | None, list[str]]:
    """Return what a file's entries without a mistake state, None where that is nothing, and the mistakes.

    What the rest names is looked at for mistakes too; a name is made up for it where its own is wrong.
    """
    try:
        return root.model_validate(data, context=place), []
    except ValidationError as error:
        errors = error.errors()
    mistakes = mistakes_of(errors, root, sections)
    # what lacks a key is left out whole
    rest = _without(data, [e["loc"][:-1] if e["type"] == "missing" else e["loc"] for e in errors])
    try:
        return root.model_validate({"name": "unnamed", **rest}, context=place), mistakes
    except ValidationError:
        return None, mistakes


def _without(data: Mapping[Any, Any], wrong: Iterable[tuple[int | str, ...]]) -> dict[Any, Any]:
    below: dict[Any, list[tuple[int | str, ...]]] = {key: [] for key in data}
    for place in wrong:
        if place and place[0] in below:
            below[place[0]].append(place[1:])
    kept = {key: value for key, value in data.items() if not any(place in _WHOLE for place in below[key])}
    return {
        key: _without(value, below[key]) if isinstance(value, Mapping) else value
        for key, value in kept.items()
        if isinstance(value, Mapping) or not below[key]
    }


def told_together(mistakes: Sequence[str]) -> str:
    """Return mistakes in one line, each once: one as it is, several with their number."""
    each = list(dict.fromkeys(mistakes))
    if len(each) == 1:
        return each[0]
    numbered = [f"({number}) {mistake}" for number, mistake in enumerate(each[:_TOLD], 1)]
    more = [f"and {len(each) - _TOLD} more"] if len(each) > _TOLD else []
    return f"{len(each)} mistakes: {', '.join([*numbered, *more])}"


def refuse_together(given: Path, looks: Iterable[Callable[[], object]], others: Sequence[str] = ()) -> None:
    """Take all looks at what a problem file names.

    Raises:
        ProblemError: the mistakes that they found, told together, after the `others` that its text has.
    """
    faults: list[ProblemError] = []
    for look in looks:
        try:
            look()
        except ProblemError as error:
            faults.append(error)
    told = list(dict.fromkeys(map(str, faults)))
    if others or len(told) > 1:
        found = [*others, *(each.removeprefix(f"{given}: ") for each in told)]
        raise ProblemError(f"{given}: {told_together(found)}")
    if faults:
        raise faults[0]


_UNKNOWN = "extra_forbidden"
_WHOLE: tuple[tuple[str, ...], ...] = ((), ("[key]",))
"""The places of a mistake in an entry itself: in its value, or in its key."""
_TOLD = 20
"""Mistakes that one line tells; a list of many wrong entries has one for each."""


def _explained(error: ErrorDetails, root: type[BaseModel], sections: Mapping[str, type[BaseModel]]) -> str:
    place = error["loc"]
    if error["type"] == "literal_error" and isinstance(place[-1], int):
        place = place[:-1]  # a word of a list, which the message repeats: its number helps nobody
    field = ".".join(as_name(str(part)) for part in place if part != "[key]") or "problem"
    if error["type"] == _UNKNOWN:
        known = _known_keys(error, root, sections)
        near = _near(error, known)
        return f"{field}: unknown key; " + (f"did you mean `{near[0]}`?" if near else f"known are {', '.join(known)}")
    return f"{field}: {_remedy(error)}"


def _known_keys(error: ErrorDetails, root: type[BaseModel], sections: Mapping[str, type[BaseModel]]) -> list[str]:
    """Return the keys that are known where an unknown one stands."""
    section = sections.get(str(error["loc"][0]), root) if len(error["loc"]) > 1 else root
    return list(section.model_fields)


def _near(error: ErrorDetails, known: Sequence[str]) -> list[str]:
    """Return the key that an unknown one probably means, if any."""
    return get_close_matches(str(error["loc"][-1]), known, n=1, cutoff=0.5)


def _remedy(error: ErrorDetails) -> str:
    kind, given, context = error["type"], error["input"], error.get("ctx", {})
    if kind == "missing":
        return "is missing; add it"
    if kind == "literal_error":
        allowed = [word.strip("'") for word in str(context["expected"]).replace(" or ", ", ").split(", ")]
        said = given if isinstance(given, str) else as_words(given)
        meant = said.lower() if said.lower() in allowed else _MEANT.get(said.lower(), "")
        close = [meant] if meant in allowed else get_close_matches(said, allowed, n=1)
        hint = f"; did you mean {close[0]}?" if close else ""
        return f"must be one of {', '.join(allowed)}, got {as_words(given)}{hint}"
    if kind == "string_pattern_mismatch":
        return f"must be {names.IN_WORDS}, got {as_words(given)}"
    if kind in ("too_short", "string_too_short"):
        return "must not be empty; fill it or remove the key"
    if kind == "list_type" and isinstance(given, str):
        # `[*.cpp]` would be YAML's alias.
        is_plain = re.fullmatch(r"\w[\w./*-]*", given) and len(given) <= LONGEST_SHOWN
        item = given if is_plain else as_words(given)
        return f"must be a list: write [{item}]"
    if kind == "int_parsing_size":
        return f"must have fewer digits, got {as_words(given)}"
    if kind in _PLAIN_TYPES:
        return f"must be {_PLAIN_TYPES[kind]}, got {as_words(given)}"
    message = error["msg"].removeprefix("Input ").replace("should", "must", 1)
    return f"{message[0].lower()}{message[1:]}, got {as_words(given)}"
