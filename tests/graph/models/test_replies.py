"""Reading what models really send."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from ridgeline.graph.models.replies import (
    GAIN,
    UnmatchedEdits,
    UnreadableReply,
    gain_of,
    kernel_schema,
    read_ideas,
    read_kernel,
    wire_schema,
)
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


def test_the_bounds_of_a_gain_are_in_words_where_a_schema_may_not_have_them() -> None:
    gain = wire_schema(IdeaList)["properties"]["ideas"]["items"]["properties"]["predicted_gain"]
    assert gain["description"].endswith("between 0.1 and 1000")


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


@pytest.mark.parametrize(
    ("words", "gain"),
    [
        ("1.5x", 1.5),
        ("1.5×", 1.5),
        ("2", 2.0),
        ("50 %", 1.5),
        ("50% faster", 1.5),
        ("+20%", 1.2),
        ("~1.3x faster", 1.3),
        ("1.2-1.8x", (1.2 * 1.8) ** 0.5),
        ("1.2x – 1.8× faster", (1.2 * 1.8) ** 0.5),
        ("between 1.2 and 1.8", (1.2 * 1.8) ** 0.5),
        ("10-20%", (1.1 * 1.2) ** 0.5),
        ("+10% to +20 percent", (1.1 * 1.2) ** 0.5),
        ("10%-20", (1.1 * 1.2) ** 0.5),
    ],
)
def test_a_gain_in_words_is_read(words: str, gain: float) -> None:
    (idea,) = read_ideas(json.dumps({"ideas": [IDEA | {"predicted_gain": words}]}))
    assert idea.predicted_gain == pytest.approx(gain)


@pytest.mark.parametrize("read", [GAIN.fullmatch, gain_of])
def test_a_gain_of_many_blanks_is_read_at_once(read: Any) -> None:
    began = time.process_time()
    for words in ("2" + " " * 3000 + "!", " " * 3000 + "!", "2x" + " " * 3000 + "to" + " " * 3000 + "!"):
        read(words)
    assert time.process_time() - began < 0.1, "a pattern that tries again takes 20 s"


def test_a_gain_that_is_null_is_none_stated() -> None:
    assert read_ideas(json.dumps({"ideas": [IDEA | {"predicted_gain": None}]}))[0].predicted_gain == 1.1


def test_a_gain_that_no_number_can_be_read_of_is_named() -> None:
    with pytest.raises(UnreadableReply, match="predicted_gain"):
        read_ideas(json.dumps({"ideas": [IDEA | {"predicted_gain": "a lot"}]}))


@pytest.mark.parametrize("thought", ["plain", '{"ideas": []} or {', "```cpp\nvoid old() {}\n```"])
def test_thought_before_the_answer_is_skipped(thought: str) -> None:
    before = f"<think>\n{thought}\n</think>\n"
    assert read_ideas(before + json.dumps({"ideas": [IDEA]}))[0].title == "Fuse both passes"
    assert read_kernel(before + '{"source": "void run() {}"}').source == "void run() {}"
    assert read_kernel(before + "```cpp\nvoid run() {}\n```").source == "void run() {}\n"


@pytest.mark.parametrize(("stated", "plans"), [(None, ()), ("by rows", ("by rows",)), (["a", "b"], ("a", "b"))])
def test_plans_in_another_form_do_not_cost_the_idea(stated: object, plans: tuple[str, ...]) -> None:
    idea = {"title": "Unroll", "mechanism": "fewer branches", "category": "control_flow_and_loops", "plans": stated}
    assert read_ideas(json.dumps({"ideas": [idea]}))[0].plans == plans


@pytest.mark.parametrize("thought", ["plain", "a brace { and a fence ```", 'so {"ideas": []} it is'])
def test_thought_whose_beginning_the_chat_template_wrote_is_skipped(thought: str) -> None:
    assert read_kernel(f'{thought}\n</think>\n\n{{"source": "void run() {{}}"}}').source == "void run() {}"
    assert read_kernel(f"{thought}\n</think>\n```cpp\nvoid run() {{}}\n```").source == "void run() {}\n"


def test_an_answer_that_names_the_end_of_thought_is_whole() -> None:
    source = 'void run() { puts("</think>{"); }'
    assert read_kernel(json.dumps({"source": source})).source == source


BASE = "int a();\nint b();\n"
EDITED = "int a();\nint c();\n"
BLOCK = "<<<<<<< SEARCH\nint b();\n=======\nint c();\n>>>>>>> REPLACE\n"


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"source": "", "edits": [{"search": "int b();\n", "replace": "int c();\n"}], "notes": ""}),
        json.dumps({"edits": [{"search": "int b();", "replace": "int c();"}]}),
        json.dumps({"source": BLOCK, "notes": "blocks in the place of the source"}),
        BLOCK,
        f"<think>{{</think>One line changes:\n\n```cpp\n{BLOCK}```\n",
        BLOCK.replace("\n", "\r\n"),
        json.dumps({"source": EDITED, "edits": []}),
        json.dumps({"source": EDITED, "edits": [{"search": "nothing", "replace": "that counts"}]}),
    ],
)
def test_edits_of_a_shown_source_are_as_good_as_the_whole_file(text: str) -> None:
    assert read_kernel(text, ["void failed();\n", BASE]).source == EDITED


@pytest.mark.parametrize(
    ("text", "bases", "says"),
    [
        (BLOCK, [], "no source to edit"),
        (BLOCK, ["int b();\nint b();\n"], "block 1 .* matches 2 places"),
        (BLOCK + BLOCK.replace("int b", "int x"), [BASE], "block 2 .* matches nowhere"),
        (BLOCK.replace("=======\n", ""), [BASE], "block 1 has no line ======="),
        (json.dumps({"source": "", "edits": [{"search": "", "replace": "x"}]}), [BASE], "searches for nothing"),
    ],
)
def test_edits_that_fit_no_shown_source_are_refused_by_their_number(text: str, bases: list[str], says: str) -> None:
    with pytest.raises(UnmatchedEdits, match=says):
        read_kernel(text, bases)


@pytest.mark.parametrize("left", ["", "\n"])
def test_edits_that_leave_nothing_are_no_kernel(left: str) -> None:
    blocks = f"<<<<<<< SEARCH\n{BASE}=======\n{left}>>>>>>> REPLACE\n"
    edits = json.dumps({"edits": [{"search": BASE, "replace": left}]})
    for text in (blocks, edits):
        with pytest.raises(UnmatchedEdits, match="the edits leave nothing of the source"):
            read_kernel(text, [BASE])


def test_a_reply_without_source_and_edits_says_so() -> None:
    for text in ("{}", '{"source": "", "edits": []}'):
        with pytest.raises(UnreadableReply, match="source is empty, and there are no edits"):
            read_kernel(text, [BASE])


def test_what_is_changed_in_a_schema_is_in_no_later_one() -> None:
    assert "edits" not in kernel_schema(has_bases=False)["properties"]
    assert "edits" in wire_schema(KernelDraft)["properties"]
    ideas = wire_schema(IdeaList)
    ideas["properties"]["ideas"].clear()
    assert wire_schema(IdeaList)["properties"]["ideas"]
