"""What is an answer to a request, and the one line for what is none."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.graph.requests_made import ideation, kernel

from ridgeline.checkpoints.calls.journal import Call
from ridgeline.checkpoints.recording.recording import question_of
from ridgeline.graph.models.mailbox.answers import RefusedAnswer, read_answer, read_value
from ridgeline.graph.models.mailbox.document import document_of
from ridgeline.graph.models.prompts import render_request
from ridgeline.graph.models.replies import read_ideas, read_kernel
from ridgeline.graph.models.requests import own_part
from ridgeline.graph.models.waiting_request import WaitingRequest, stem_of, stored_request

IDEA = {"title": "One pass", "mechanism": "keeps the row in registers", "category": "memory_access"}


def call_of(call_id: str, request: dict[str, Any]) -> Call:
    return Call(
        call_id=call_id, state="waiting", model="mailbox", prompt_sha256="", request=request, error="", sent=1,
        began_at="2026-01-01T00:00:00.000Z", ended_at=None, latency_s=None, input_tokens=0, output_tokens=0, usd=0.0,
        unpriced=0,
    )  # fmt: skip


def waiting(request: Any, call_id: str = "r1i0v0a0:write") -> WaitingRequest:
    stored = stored_request(request)
    return WaitingRequest.from_call(call_of(call_id, json.loads(json.dumps(stored))), render_request(request))


KERNEL, IDEAS = waiting(kernel()), waiting(ideation(), "r1:ideate:0")


@pytest.mark.parametrize(
    ("content", "suffix"),
    [
        ('{"source": "int a;", "notes": ""}', "json"),
        ("Here it is:\n\n```cpp\nint a;\n```\n", "md"),
        ("int a;", "cpp"),
        ("\ufeffint a;", "cpp"),
        ("```c++\nint a;\n```", ""),
    ],
)
def test_a_kernel_is_json_one_fenced_block_or_the_source(content: str, suffix: str) -> None:
    assert read_kernel(read_answer(KERNEL, content.encode(), suffix).text).source.strip() == "int a;"


def test_ideas_are_json_alone_or_in_markdown_and_may_state_their_tokens() -> None:
    text = json.dumps({"ideas": [IDEA], "usage": {"input_tokens": 7, "output_tokens": 3, "usd": 0.5}})
    answer = read_answer(IDEAS, text.encode(), "json")
    assert (answer.input_tokens, answer.output_tokens, answer.usd) == (7, 3, 0.5)
    markdown = f"---\nid: r1:ideate:0\ninput_tokens: 7\n---\n```json\n{json.dumps({'ideas': [IDEA]})}\n```\n"
    answer = read_answer(IDEAS, markdown.encode(), "md")
    assert [draft.title for draft in read_ideas(answer.text)] == ["One pass"]
    assert (answer.input_tokens, answer.usd) == (7, None)


@pytest.mark.parametrize(
    "value",
    [
        "!!timestamp ''",
        "!!int ''",
        "!!bool ''",
        "!!float ''",
        "1" + ":0" * 400 + ".0",
        '"\\UFFFFFFFF"',
        "*a",
        "&a [*a]",
        "[" * 900,
    ],
)
def test_a_fact_that_the_head_of_an_answer_does_not_need_may_be_any_text(value: str) -> None:
    text = f"---\nx: {value}\ninput_tokens: 7 # counted\nid: 'r1:ideate:0'\nusd:\n---\n{json.dumps({'ideas': [IDEA]})}"
    answer = read_answer(IDEAS, text.encode(), "md")
    assert (answer.input_tokens, answer.usd) == (7, None)


@pytest.mark.parametrize("value", ["!!int ''", "1:0", "1e999", "9" * 3000, "-1"])
def test_tokens_that_are_no_number_are_refused(value: str) -> None:
    with pytest.raises(RefusedAnswer, match="input_tokens: "):
        read_answer(IDEAS, f"---\ninput_tokens: {value}\n---\n{{}}".encode(), "md")


@pytest.mark.parametrize(
    ("request_", "content", "suffix", "says"),
    [
        (KERNEL, b"\x7fELF\x02\x01\x01\xff\xfe", "cpp", "no UTF-8 text"),
        (KERNEL, b"int a;\0", "cpp", "NUL"),
        (KERNEL, b" \n", "md", "is empty"),
        (KERNEL, b"int a;", "cu", "ends in .cu"),
        (KERNEL, b"int a;", "exe", "ends in .exe"),
        (IDEAS, b"int a;", "cpp", "ends in .cpp"),
        (KERNEL, b"x" * (50 * 2**20), "cpp", "has 50.0 MiB, 2 MiB are the most"),
        (KERNEL, b"x" * (2 * 2**20 + 1), "cpp", "has more than 2 MiB, 2 MiB are the most"),
        (KERNEL, b"int a;", "md", "neither a JSON object nor a fenced code block"),
        (KERNEL, b"```\na\n```\n```\nb\n```\n", "md", "2 code blocks"),
        (KERNEL, b'{"source": ""}', "json", "source"),
        (KERNEL, b'{"source": " "}', "json", "source is empty"),
        (KERNEL, b'{"source": "int a; \\ud800"}', "json", "unicode"),
        (IDEAS, b'{"ideas": []}', "json", "the list of ideas is empty"),
        (IDEAS, b'{"ideas": [{"title": "One pass"}]}', "json", "mechanism"),
        (IDEAS, b"---\n- a\n---\n{}", "md", "'name: value' lines"),
        (IDEAS, b"---\nid: r2:ideate:0\n---\n{}", "md", "is to r2:ideate:0"),
        (IDEAS, b"---\nid: r1:ideate:0\nx\n---\n{}", "md", "(line 3)"),
        (IDEAS, b"---\nid: \x1b[2Jr9\n---\n{}", "md", "is to  [2Jr9,"),
        (IDEAS, b'{"ideas": [], "usage": {"id": "\\ud800\\u001b"}}', "json", "is to   ,"),
        (IDEAS, b"---\nid: " + b"x" * 3000 + b"\n---\n{}", "md", "x" * 80 + ", the"),
        (IDEAS, b'{"ideas": [], "usage": {"input_tokens": -1}}', "json", "input_tokens"),
        (IDEAS, b'{"ideas": [], "usage": {"output_tokens": true}}', "json", "output_tokens: must be a number"),
        (IDEAS, b'{"ideas": [], "usage": {"usd": false}}', "json", "usd: must be a number"),
        (IDEAS, b"[" * 200_000, "json", "no JSON object"),
    ],
)
def test_what_is_no_answer_gets_one_line(request_: WaitingRequest, content: bytes, suffix: str, says: str) -> None:
    with pytest.raises(RefusedAnswer) as refused:
        read_answer(request_, content, suffix)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "value",
    [
        '{"source": "int a;"}',
        {"source": "int a;", "notes": ""},
        {"text": "```cpp\nint a;\n```", "usage": {"output_tokens": 4}},
    ],
)
def test_a_host_resumes_with_text_or_with_the_object(value: Any) -> None:
    assert read_kernel(read_value(KERNEL, value).text).source.strip() == "int a;"


@pytest.mark.parametrize("value", [None, 3, [], {"text": 3}, {1, 2}, "\ud800", {"text": "```cpp\n// \ud800\n```"}])
def test_a_value_of_another_kind_is_refused(value: Any) -> None:
    with pytest.raises(RefusedAnswer):
        read_value(KERNEL, value)


def test_the_document_holds_everything_that_an_answer_needs() -> None:
    document = document_of(KERNEL)
    assert KERNEL.prompt.strip() in document
    assert '"properties"' not in document, "the prompt tells the form"
    assert document.count('{"source": "the complete file"') == 1
    assert 'id: "r1i0v0a0:write"' in document
    assert all(name in document for name in KERNEL.answer_files)


@pytest.mark.parametrize("call_id", ["r1:ideate:0:more", "../x", "a/b", ".hidden", "a_b", "x\0y"])
def test_the_name_of_a_requests_file_stays_in_its_folder(call_id: str) -> None:
    stem = stem_of(call_id)
    assert not set(stem) & set("/.\0:")
    assert ":" not in call_id or stem != stem_of(call_id.replace(":", "_"))


EDITS = "<<<<<<< SEARCH\n// the seed\n=======\n// edited\n>>>>>>> REPLACE\n"


@pytest.mark.parametrize(("content", "suffix"), [(EDITS, "md"), (EDITS, ""), (EDITS, "cpp")])
def test_edits_of_a_source_that_the_request_shows_are_an_answer(content: str, suffix: str) -> None:
    answer = read_answer(KERNEL, content.encode(), suffix)
    assert read_kernel(answer.text, KERNEL.bases).source == "// edited"
    value = {"source": "", "edits": [{"search": "// the seed", "replace": "// edited"}], "notes": ""}
    assert read_kernel(read_value(KERNEL, value).text, KERNEL.bases).source == "// edited"


def test_edits_that_do_not_fit_are_refused_and_the_sources_are_not_shown_twice() -> None:
    with pytest.raises(RefusedAnswer, match=r"block 1 \(`// the tree`\) matches nowhere"):
        read_answer(KERNEL, EDITS.replace("seed", "tree").encode(), "md")
    without = waiting(kernel(parent=None))
    with pytest.raises(RefusedAnswer, match="no source to edit here"):
        read_answer(without, EDITS.encode(), "md")
    assert "bases" not in KERNEL.to_json()
    assert "SEARCH/REPLACE" in document_of(KERNEL).partition("# Prompt")[0]
    assert "SEARCH/REPLACE" not in document_of(without).partition("# Prompt")[0]


def test_a_request_that_waits_keeps_what_it_asks() -> None:
    for request in (kernel(), ideation()):
        assert question_of(stored_request(request)) == question_of(own_part(request)) is not None


def test_a_request_of_an_earlier_version_waits_on_without_edits() -> None:
    stored = stored_request(kernel())
    del stored["bases"]
    request = WaitingRequest.from_call(call_of("r1i0v0a0:write", stored), "the prompt")
    assert read_kernel(read_answer(request, b"int a;", "cpp").text).source == "int a;"
    with pytest.raises(RefusedAnswer, match="no source to edit here"):
        read_answer(request, EDITS.encode(), "md")


def test_the_schema_has_edits_only_where_there_is_a_source_to_edit() -> None:
    assert "edits" in KERNEL.schema["properties"] and "edits" in KERNEL.schema["required"]
    first = waiting(kernel(parent=None))
    assert set(first.schema["properties"]) == set(first.schema["required"]) == {"source", "notes"}
    assert "edits" not in json.dumps(first.schema)
    repair = waiting(kernel(parent=None, failure="wrong", failed_source="int broken;"))
    assert "edits" in repair.schema["properties"]


def test_a_fence_that_is_never_closed_is_told_by_its_line() -> None:
    for head, line in (("", 2), ("---\ninput_tokens: 7\n---\n", 5)):
        with pytest.raises(RefusedAnswer, match=f"a fence was opened at line {line} and never closed"):
            read_answer(KERNEL, f"{head}Here it is:\n```cpp\nint a;\n".encode(), "md")
