"""The options that a suite keeps in suite.json for its searches."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ridgeline.graph.cli.request import CALLS, SHAPE
from ridgeline.problems.mistakes import explain_mistake
from ridgeline.problems.model_calls import CallSettings
from ridgeline.problems.spec import Budget, SearchSettings
from ridgeline.tools.errors import RunError

LIMITS = {"max_usd": "usd", "max_tokens": "tokens", "max_wall_s": "wall_s", "max_gpu_s": "gpu_s"}
"""Options that are a limit of the budget, by its name there."""

RENEWED = ("model", *CALLS, *LIMITS, "bank", "park", "unsafe_no_sandbox")
"""Options that a resumed suite takes anew, as a resumed search does: a mistyped model need not cost the whole suite."""

OPTIONS = (*SHAPE, "device", "rng_seed", *RENEWED)
"""Options that each search of a suite takes over."""

_WORDS = {"device": str, "bank": str, "rng_seed": int, "park": bool, "unsafe_no_sandbox": bool}
_IN_WORDS = {str: "text", int: "a whole number", bool: "true or false"}


def given_options(words: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options among a command's words that were given, the bank with an absolute path.

    A suite may be resumed from another folder. A flag that was not given is False; 0, which equals it, is a value.
    """
    given = {name: words[name] for name in OPTIONS if words[name] is not None and words[name] is not False}
    bank = given.get("bank")
    return given | ({"bank": str(Path(bank).absolute())} if bank and bank != "none" else {})


def check_options(file: Path, options: Mapping[str, Any]) -> None:
    """Refuse options, read from suite.json, that no command line gives.

    Raises:
        RunError: an option is unknown, or its value has another type or is out of range.
    """
    mistake = _mistake(options)
    if mistake:
        raise RunError(f"{file}: is damaged: options: {mistake}; restore it or begin a new suite")


def _mistake(options: Mapping[str, Any]) -> str:
    """Return what is wrong with the options, or ""."""
    if unknown := sorted(options.keys() - set(OPTIONS)):
        return f"there is no option {unknown[0]!r}"
    if empty := [name for name, value in options.items() if value is None]:
        return f"{empty[0]} has no value"
    try:
        SearchSettings.model_validate({name: options[name] for name in SHAPE if name in options})
    except ValidationError as error:
        return explain_mistake(error.errors(), SearchSettings, {})
    try:
        Budget.model_validate({limit: options[name] for name, limit in LIMITS.items() if name in options})
    except ValidationError as error:
        return f"max_{explain_mistake(error.errors(), Budget, {})}"
    try:
        CallSettings.model_validate({name: options[option] for option, name in CALLS.items() if option in options})
    except ValidationError as error:
        return f"model_{explain_mistake(error.errors(), CallSettings, {})}"
    models = options.get("model", [])
    if not (isinstance(models, list) and all(isinstance(model, str) for model in models)):
        return f"model must be a list of text, got {models!r}"
    wrong = [name for name, kind in _WORDS.items() if name in options and type(options[name]) is not kind]
    return f"{wrong[0]} must be {_IN_WORDS[_WORDS[wrong[0]]]}, got {options[wrong[0]]!r}" if wrong else ""
