"""Read ideas and kernels from a model's stored text, whichever way the model wrapped its JSON or its code."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from pydantic import ValidationError

from ridgeline.graph.models.edits import UnfitEdit, apply_to_one, holds_edits, read_edits
from ridgeline.graph.models.requests import IdeaDraft, IdeaList, KernelDraft

FENCE = re.compile(r"```[ \t]*+([\w+#-]*+)[ \t]*+\n(.*?)```", re.DOTALL)
THOUGHT = re.compile(r"\A\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)
"""Thought that a model writes before its answer; open models do, and it may hold braces and fences of its own."""
THOUGHT_END = re.compile(r"</think(?:ing)?>\s*+(?=[{`<])")
ANSWER_STARTS = ("{", "`", "<")
_RATIO = r"(\d++(?:\.\d++)?+)\s*+(x|×|%|percent)?+"
# nothing is given back: the time grows with the length and no faster
GAIN = re.compile(
    rf"\s*+(?:by |about |between |~|≈|\+)?+\s*+{_RATIO}(?:\s*+(?:-|–|—|to|and)\s*+\+?+{_RATIO})?+\s*+(?:faster|more)?+\s*+",
    re.IGNORECASE,
)
LONGEST_GAIN = 80
"""Characters of a gain in words; what is longer says more than a gain."""
CODE_LANGUAGES = frozenset({"", "c", "c++", "cpp", "cc", "cu", "cuda", "py", "python"})


class UnreadableReply(ValueError):
    """A reply does not have the form that was asked for; the message can be sent back to the model."""

    def __init__(self, message: str, *, text: str = "") -> None:
        """`text` is the whole reply, where that is to go back too."""
        super().__init__(message)
        self.text = text


class UnmatchedEdits(UnreadableReply):
    """The edits of a reply fit no source that the request shows; the request is asked again as it was."""


def _answer(text: str) -> str:
    """Return a reply without its thought; where a chat template opens that, the reply holds its end alone."""
    if text.lstrip().startswith(ANSWER_STARTS):
        return THOUGHT.sub("", text)
    end = THOUGHT_END.search(text)
    return text[end.end() :] if end else text


def _objects(text: str) -> list[Any]:
    """Return every JSON value that the text may mean: itself, its fenced blocks, its outermost braces."""
    text = _answer(text)
    start, end = text.find("{"), text.rfind("}")
    braces = [text[start : end + 1]] if 0 <= start < end else []
    found: list[Any] = []
    for piece in [text, *(body for _, body in FENCE.findall(text)), *braces]:
        try:
            found.append(json.loads(piece, strict=False))
        except (ValueError, RecursionError):  # nested deeper than any kernel's or idea's JSON is
            continue
    return found


def _first_problem(error: ValidationError) -> str:
    detail = error.errors()[0]
    return f"{'.'.join(str(p) for p in detail['loc'])}: {detail['msg']}"


def read_ideas(text: str, *, are_composed: bool = False) -> list[IdeaDraft]:
    """Return the valid ideas of a reply.

    Only ideas that `are_composed` keep a composition: a language model states none, whatever else its reply holds.

    Raises:
        UnreadableReply: no idea is valid.
    """
    problem = "no JSON object was found"
    for value in _objects(text):
        listed = value.get("ideas") if isinstance(value, dict) else value
        if not isinstance(listed, list):
            problem = 'the object has no list "ideas"'
            continue
        drafts: list[IdeaDraft] = []
        for item in listed:
            try:
                drafts.append(IdeaDraft.model_validate(_trimmed(item if are_composed else _uncomposed(item))))
            except ValidationError as error:
                problem = _first_problem(error)
        if drafts:
            return drafts
        problem = problem if listed else "the list of ideas is empty"
    raise UnreadableReply(problem)


def _uncomposed(item: Any) -> Any:
    return {key: value for key, value in item.items() if key != "composition"} if isinstance(item, dict) else item


def _trimmed(item: Any) -> Any:
    """Return an idea with its title in length, and its gain as the number that the words mean."""
    if not isinstance(item, dict):
        return item
    if isinstance(item.get("title"), str):
        item = {**item, "title": item["title"].strip()[:160]}
    if isinstance(item.get("predicted_gain"), str):
        item = {**item, "predicted_gain": gain_of(item["predicted_gain"])}
    elif "predicted_gain" in item and item["predicted_gain"] is None:
        item = {key: value for key, value in item.items() if key != "predicted_gain"}
    return item


def gain_of(words: str) -> float | str:
    """Return the ratio that "1.5x", "1.5× faster", "50 %" or "50% faster" means; other words as they are.

    Of a range ("1.3-1.5x", "10 to 20%") it is the geometric mean of the ends, the middle of two ratios.
    """
    found = GAIN.fullmatch(words) if len(words) <= LONGEST_GAIN else None
    if found is None:
        return words
    low, low_unit, high, high_unit = found.groups()
    first = _ratio(low, low_unit or high_unit)
    return first if high is None else math.sqrt(first * _ratio(high, high_unit or low_unit))


def _ratio(number: str, unit: str | None) -> float:
    return 1 + float(number) / 100 if unit and unit.lower() in ("%", "percent") else float(number)


def read_kernel(text: str, bases: Sequence[str] = ()) -> KernelDraft:
    """Return the kernel of a reply: the JSON of a KernelDraft, SEARCH/REPLACE blocks, or exactly one fenced code block.

    Edits are of the first of `bases` that all of them match; the draft has the whole source then.

    Raises:
        UnreadableReply: the reply holds none of these.
        UnmatchedEdits: edits do not fit any of `bases`.
    """
    problem = "neither a JSON object nor a fenced code block was found"
    for value in _objects(text):
        try:
            draft = KernelDraft.model_validate(value)
        except ValidationError as error:
            problem = _first_problem(error)
            continue
        if draft.source.strip() or draft.edits:
            return _edited(draft, bases)
        problem = "source is empty, and there are no edits"
    answer = _answer(text)
    if holds_edits(answer):
        return _edited(KernelDraft(source=answer), bases)
    blocks = [body for language, body in FENCE.findall(answer) if language.lower() in CODE_LANGUAGES]
    if len(blocks) == 1 and blocks[0].strip():
        return KernelDraft(source=blocks[0])
    if len(blocks) > 1:
        problem = f"{len(blocks)} code blocks were found where one whole source is wanted"
    elif line := _open_fence(text):
        problem = f"a fence was opened at line {line} and never closed"
    raise UnreadableReply(problem)


def _open_fence(text: str) -> int:
    """Return the line, from 1 on, of the fence that is open at the end of a text; 0 where none is."""
    opened = 0
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("```"):
            opened = 0 if opened else number
    return opened


def _edited(draft: KernelDraft, bases: Sequence[str]) -> KernelDraft:
    """Return a draft with its whole source; blocks may stand in the place of the source too."""
    try:
        if holds_edits(draft.source):
            draft = draft.model_copy(update={"edits": read_edits(draft.source), "source": ""})
        if draft.source.strip():
            return draft.model_copy(update={"source": _unfenced(draft.source)})
        return draft.model_copy(update={"source": apply_to_one(bases, draft.edits)})
    except UnfitEdit as error:
        raise UnmatchedEdits(str(error)) from error


def _unfenced(source: str) -> str:
    match = FENCE.fullmatch(source.strip())
    return match.group(2) if match else source


def wire_schema(model: type[IdeaList | KernelDraft]) -> dict[str, Any]:
    """Return the JSON schema that every provider's strict mode accepts.

    Strict modes want every property required, and refuse additional properties, bounds, defaults and `$ref` with
    siblings. The bounds are checked when the reply is read.
    """
    schema = _json_schema(model)
    strict: dict[str, Any] = _strict(schema, schema.get("$defs", {}))
    strict["title"], strict["description"] = model.__name__, (model.__doc__ or model.__name__).splitlines()[0]
    return strict


@cache
def _json_schema(model: type[IdeaList | KernelDraft]) -> dict[str, Any]:
    """Return pydantic's own schema, not to be changed; it takes milliseconds, and each request of a model has one."""
    return model.model_json_schema()


def kernel_schema(*, has_bases: bool) -> dict[str, Any]:
    """Return the schema of a kernel's reply; edits are part of it only where there is a source to edit."""
    schema = wire_schema(KernelDraft)
    if not has_bases:
        del schema["properties"]["edits"]
        schema["required"].remove("edits")
        schema["properties"]["source"]["description"] = "the complete source file"
        schema["description"] = "One whole kernel source."
    return schema


def _strict(node: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_strict(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _strict(definitions[node["$ref"].rpartition("/")[2]], definitions)
    kept = {k: v for k, v in node.items() if k in ("type", "enum", "anyOf", "description", "items")}
    out = {k: _strict(v, definitions) for k, v in kept.items()}
    if "properties" in node:
        out["properties"] = {name: _strict(child, definitions) for name, child in node["properties"].items()}
        out["required"] = list(node["properties"])
        out["additionalProperties"] = False
    return out
