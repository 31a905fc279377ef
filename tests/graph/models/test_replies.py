"""Reading what models really send."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from ridgeline.graph.models.replies import UnreadableReply, read_ideas, read_kernel, wire_schema
from ridgeline.graph.models.requests import IdeaList, KernelDraft

IDEA = {"title": "Fuse both passes", "mechanism": "read each row only once", "category": "memory_access"}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"ideas": [IDEA]}),
        json.dumps([IDEA]),
        f"Here you go:\n```json\n{json.dumps({'ideas': [IDEA]})}\n```\nGood luck!",
        f"Thinking... {json.dumps({'ideas': [IDEA]})} done",
    ],
)
def test_ideas_are_found_however_they_are_wrapped(text: str) -> None:
    assert [idea.title for idea in read_ideas(text)] == ["Fuse both passes"]


def test_one_bad_idea_does_not_cost_the_others() -> None:
    bad = {**IDEA, "category": "magic"}
    assert len(read_ideas(json.dumps({"ideas": [bad, IDEA]}))) == 1


@pytest.mark.parametrize("stated", [["prefetch"], "prefetch", 7])
def test_a_composition_is_the_offline_models_alone_to_state(stated: object) -> None:
    claimed = json.dumps({"ideas": [{**IDEA, "composition": stated}]})
    assert [(idea.title, idea.composition) for idea in read_ideas(claimed)] == [("Fuse both passes", None)]
    assert "composition" not in json.dumps(wire_schema(IdeaList))


def test_a_composition_of_the_offline_model_is_read() -> None:
    text = json.dumps({"ideas": [{**IDEA, "composition": ["row-buffer", "prefetch"]}]})
    assert read_ideas(text, are_composed=True)[0].composition == ("row-buffer", "prefetch")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("no json", "no JSON object"),
        ('{"ideas": []}', "empty"),
        ('{"thoughts": 1}', 'no list "ideas"'),
        (json.dumps({"ideas": [{**IDEA, "category": "magic"}]}), "category"),
    ],
)
def test_reply_without_an_idea_says_why(text: str, problem: str) -> None:
    with pytest.raises(UnreadableReply, match=problem):
        read_ideas(text)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"source": "void run() {}\n", "notes": "n"}),
        json.dumps({"source": "```cpp\nvoid run() {}\n```"}),
        "The kernel:\n```cuda\nvoid run() {}\n```\nIt is fast.",
        '{"source": "void run() {}\n"}',  # a raw newline inside the string, as models send it
    ],
)
def test_kernel_is_found_as_json_or_as_one_code_block(text: str) -> None:
    assert read_kernel(text).source == "void run() {}\n"


@pytest.mark.parametrize("text", ["nothing", "```cpp\na\n```\n```cpp\nb\n```", '{"source": ""}'])
def test_reply_without_one_whole_kernel_is_unreadable(text: str) -> None:
    with pytest.raises(UnreadableReply):
        read_kernel(text)


@pytest.mark.parametrize("model", [IdeaList, KernelDraft])
def test_wire_schema_keeps_to_what_strict_modes_accept(model: type[IdeaList | KernelDraft]) -> None:
    def check(node: Any) -> None:
        if isinstance(node, dict):
            assert not {"$ref", "default", "minLength", "minimum", "maximum"} & set(node)
            if node.get("type") == "object":
                assert node["required"] == list(node["properties"])
                assert node["additionalProperties"] is False
            for child in node.values():
                check(child)
        elif isinstance(node, list):
            for child in node:
                check(child)

    check(wire_schema(model))


@pytest.mark.parametrize("piece", ["```", "``` ", "```c", "```c\n", "[", '{"a":', " ", "`"])
def test_a_reply_is_read_in_time_by_its_length(piece: str) -> None:
    text = (piece * (1 << 18))[: 1 << 18]
    started = time.process_time()
    for read in (read_ideas, read_kernel):
        for reply in (text, f"```{text}", f"{text}]" + "}"):
            with pytest.raises(UnreadableReply):
                read(reply)
    assert time.process_time() - started < 10.0
