"""A task's text, read by fixed rules for what it asks a search: no model reads it.

A key says it (`problem: softmax`, `rounds: 2`, `resume: RUN`). Without the key `problem`, the path of a problem.yaml in the
text is taken, else the one name of a problem that stands in it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from pathlib import Path

from ridgeline.graph.library.agents.agent_search import Wish
from ridgeline.problems.spec import FILE_NAME
from ridgeline.tools.errors import InputError

_KEY = re.compile(r"\b(problem|rounds|resume)\s*[:=]\s*[`'\"]?([^\s`'\",;]+)", re.IGNORECASE)
_WORD = re.compile(r"[^\s`'\"()<>\[\],;]+")


def read_task(text: str, names: Collection[str]) -> Wish:
    """Return what the text asks for; a problem that it does not name is None.

    Args:
        text: of the task.
        names: of the problems that may be meant.

    Raises:
        InputError: it names several problems, or a number of rounds that is none.
    """
    said = {key.lower(): value.rstrip(".") for key, value in _KEY.findall(text)}
    resume = said.get("resume")
    problem = said.get("problem") or (None if resume else _path_in(text) or _name_in(text, names))
    return Wish(problem=problem, rounds=_rounds(said.get("rounds")), resume=resume)


def _rounds(said: str | None) -> int | None:
    if said is None:
        return None
    if not re.fullmatch(r"[1-9]\d{0,5}", said):
        raise InputError(f"rounds: must be a whole number of 1 or more, got {said!r}")
    return int(said)


def _path_in(text: str) -> str | None:
    """Return the one path of a problem in the text: a YAML file's, or a folder's with a problem.yaml."""
    words = [word.rstrip(".:!?") for word in _WORD.findall(text)]
    return _single([word for word in words if word.endswith((".yaml", ".yml")) or _is_folder(word)])


def _is_folder(word: str) -> bool:
    # not Path.is_file, which raises where a word is too long for a name, as of base64, or a folder may not be looked into
    return "/" in word and os.path.isfile(Path(word) / FILE_NAME)


def _name_in(text: str, names: Collection[str]) -> str | None:
    """Return the one name of `names` in the text, in any case, with `_`, `-` or a space between its words.

    A name within a longer one that is there does not count.
    """
    found = []
    for name in sorted(names, key=len, reverse=True):
        words = r"[\s_-]".join(re.escape(word) for word in re.split("[_-]", name))
        pattern = re.compile(rf"(?<![\w./-]){words}(?![\w-])", re.IGNORECASE)
        if pattern.search(text):
            found.append(name)
            text = pattern.sub(" ", text)
    return _single(found)


def _single(found: list[str]) -> str | None:
    distinct = sorted(set(found))
    if len(distinct) > 1:
        raise InputError(f"several problems are named: {', '.join(distinct)}; name one, as `problem: {distinct[0]}`")
    return distinct[0] if distinct else None
