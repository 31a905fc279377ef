"""Read ideas and kernels from a model's stored text, whichever way the model wrapped its JSON or its code."""

from __future__ import annotations

import json
import re
from typing import Any

from pydantic import ValidationError

from ridgeline.graph.models.requests import IdeaDraft, IdeaList, KernelDraft

FENCE = re.compile(r"```[ \t]*+([\w+#-]*+)[ \t]*+\n(.*?)```", re.DOTALL)
CODE_LANGUAGES = frozenset({"", "c", "c++", "cpp", "cc", "cu", "cuda", "py", "python"})


class UnreadableReply(ValueError):
    """A reply does not have the form that was asked for; the message can be sent back to the model."""


def _objects(text: str) -> list[Any]:
    """Return every JSON value that the text may mean: itself, its fenced blocks, its outermost braces."""
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
    if isinstance(item, dict) and isinstance(item.get("title"), str):
        return {**item, "title": item["title"].strip()[:160]}
    return item


def read_kernel(text: str) -> KernelDraft:
    """Return the kernel of a reply: the JSON of a KernelDraft, or exactly one fenced code block.

    Raises:
        UnreadableReply: the reply holds neither.
    """
    problem = "neither a JSON object nor a fenced code block was found"
    for value in _objects(text):
        try:
            draft = KernelDraft.model_validate(value)
        except ValidationError as error:
            problem = _first_problem(error)
        else:
            return draft.model_copy(update={"source": _unfenced(draft.source)})
    blocks = [body for language, body in FENCE.findall(text) if language.lower() in CODE_LANGUAGES]
    if len(blocks) == 1 and blocks[0].strip():
        return KernelDraft(source=blocks[0])
    if len(blocks) > 1:
        problem = f"{len(blocks)} code blocks were found where one whole source is wanted"
    raise UnreadableReply(problem)


def _unfenced(source: str) -> str:
    match = FENCE.fullmatch(source.strip())
    return match.group(2) if match else source


def wire_schema(model: type[IdeaList | KernelDraft]) -> dict[str, Any]:
    """Return the JSON schema that every provider's strict mode accepts.

    Strict modes want every property required, and refuse additional properties, bounds, defaults and `$ref` with
    siblings. The bounds are checked when the reply is read.
    """
    schema = model.model_json_schema()
    definitions = schema.pop("$defs", {})
    strict: dict[str, Any] = _strict(schema, definitions)
    strict["title"], strict["description"] = model.__name__, (model.__doc__ or model.__name__).splitlines()[0]
    return strict


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
