"""Replies that cannot be used: empty, withheld, cut off. Real clients of three protocols, through the journal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.graph.loopback import Answer, Server, serve
from tests.graph.models.asked import IDEAS, KERNEL, PROTOCOLS, Asked, asked, model_of
from tests.graph.requests_made import ideation, kernel

from ridgeline.graph.models.continuation import joined
from ridgeline.graph.models.failures import ModelUnavailable, NoText
from ridgeline.graph.models.replies import UnreadableReply
from ridgeline.graph.models.requests import KernelModel
from ridgeline.tools.records.vocabulary import ReasonCode

pytestmark = pytest.mark.usefixtures("keys")
Modelled = Callable[[Server], KernelModel]

UNUSABLE = {
    "empty": Answer(""),
    "refused": Answer("", refusal="I cannot help with that"),
    "filtered": Answer("", finish_reason="content_filter"),
    "thought": Answer("", finish_reason="length", output_tokens=400),
}
TOLD = {"empty": "it was empty", "refused": "withheld", "filtered": "withheld", "thought": "be brief"}


@pytest.fixture(params=PROTOCOLS)
def modelled(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Modelled:
    """Return what makes the model of a protocol at a server."""

    def make(server: Server) -> KernelModel:
        monkeypatch.setattr("ridgeline.graph.models.registry.OPENAI_URL", f"{server.url}/v1")
        return model_of(request.param, server)

    return make


async def ask(purpose: str, given: Asked, name: str) -> str:
    """Ask for an idea or a kernel and return its title or its source."""
    if purpose == "ideate":
        return (await given.models.propose("r1:ideate:0", name, ideation()))[0].title
    return (await given.models.write("r1i0v0a0:write", name, kernel())).source


@pytest.mark.parametrize("purpose", ["ideate", "write"])
@pytest.mark.parametrize("how", UNUSABLE)
async def test_a_reply_without_a_text_is_asked_for_once_more_with_the_reason(
    modelled: Modelled, how: str, purpose: str, tmp_path: Path
) -> None:
    good = Answer(IDEAS if purpose == "ideate" else KERNEL)
    with serve(lambda n, request: good if n else UNUSABLE[how]) as server:
        model = modelled(server)
        with asked(tmp_path, model) as given:
            assert await ask(purpose, given, model.name)
            totals = given.journal.totals()
    assert len(server.requests) == 2
    assert TOLD[how] in server.requests[1]["prompt"] and TOLD[how] not in server.requests[0]["prompt"]
    assert totals.output_tokens == good.output_tokens + UNUSABLE[how].output_tokens, "both were paid"


async def test_two_replies_without_a_text_fail_the_call_and_are_asked_anew_by_a_later_session(
    modelled: Modelled, tmp_path: Path
) -> None:
    with serve(lambda n, request: Answer("" if n < 2 else IDEAS)) as server:
        model = modelled(server)
        with asked(tmp_path, model) as given, pytest.raises(NoText, match="answered with nothing"):
            await ask("ideate", given, model.name)
        with asked(tmp_path, model) as given:
            assert await ask("ideate", given, model.name) == "Fuse both passes"


@pytest.mark.parametrize("purpose", ["ideate", "write"])
async def test_a_later_session_goes_on_with_the_second_ask_and_does_not_pay_the_first_again(
    modelled: Modelled, purpose: str, tmp_path: Path
) -> None:
    good = Answer(IDEAS if purpose == "ideate" else KERNEL)
    answers = [Answer(""), Answer(status=400, error="not now"), good]
    with serve(lambda n, request: answers[n]) as server:
        model = modelled(server)
        with asked(tmp_path, model) as given, pytest.raises(ModelUnavailable, match="not now"):
            await ask(purpose, given, model.name)
        with asked(tmp_path, model) as given:
            assert await ask(purpose, given, model.name)
            assert not given.journal.mismatches
    assert len(server.requests) == 3
    assert (
        server.requests[2]["prompt"] == server.requests[1]["prompt"] and "it was empty" in server.requests[2]["prompt"]
    )


async def test_a_later_session_asks_for_no_rest_that_did_not_come_once_the_whole_was_asked_for_again(
    tmp_path: Path,
) -> None:
    answers = [
        Answer(KERNEL[:30], finish_reason="length"),
        Answer(""),
        Answer(status=400, error="not now"),
        Answer(KERNEL),
    ]
    with serve(lambda n, request: answers[n]) as server:
        model = model_of("chat", server)
        with asked(tmp_path, model) as given, pytest.raises(ModelUnavailable, match="not now"):
            await ask("write", given, model.name)
        with asked(tmp_path, model) as given:
            assert await ask("write", given, model.name)
    assert len(server.requests) == 4
    assert server.requests[3]["prompt"] == server.requests[2]["prompt"]


@pytest.mark.parametrize("purpose", ["ideate", "write"])
async def test_a_reply_that_was_cut_off_is_continued_and_both_parts_are_stored(
    modelled: Modelled, purpose: str, tmp_path: Path
) -> None:
    whole = IDEAS if purpose == "ideate" else KERNEL
    parts = [
        Answer(whole[:40], finish_reason="length"),
        Answer(whole[40:60], finish_reason="length"),
        Answer(whole[60:]),
    ]
    with serve(lambda n, request: parts[n]) as server:
        model = modelled(server)
        with asked(tmp_path, model) as given:
            first = await ask(purpose, given, model.name)
            stored = [given.journal.stored(call.call_id) for call in given.journal.calls("finished")]
            assert await ask(purpose, given, model.name) == first
    assert len(server.requests) == 3, "the second time comes from the journal"
    assert whole[:40] in server.requests[1]["prompt"] and whole[:60] in server.requests[2]["prompt"]
    assert [reply["text"] for reply in stored if reply] == [whole[:40], whole[40:60], whole[60:]]


@pytest.mark.parametrize("purpose", ["ideate", "write"])
async def test_a_reply_that_is_never_finished_is_asked_for_in_a_shorter_form(
    modelled: Modelled, purpose: str, tmp_path: Path
) -> None:
    whole = IDEAS if purpose == "ideate" else KERNEL

    def script(number: int, request: dict[str, object]) -> Answer:
        if "give a shorter one" in str(request["prompt"]):
            return Answer(whole)
        return Answer(f'{{"source": "{number}', finish_reason="length")

    with serve(script) as server:
        model = modelled(server)
        with asked(tmp_path, model) as given:
            assert await ask(purpose, given, model.name)
    assert len(server.requests) == 4


async def test_a_provider_that_takes_no_conversation_is_asked_for_a_shorter_reply(tmp_path: Path) -> None:
    def script(number: int, request: dict[str, object]) -> Answer:
        if len(request["body"]["messages"]) > 1:  # type: ignore[index]
            return Answer(status=400, error="the last message must be the only one")
        return Answer(KERNEL) if number else Answer(KERNEL[:30], finish_reason="length")

    with serve(script) as server:
        model = model_of("chat", server)
        with asked(tmp_path, model) as given:
            assert await ask("write", given, model.name)
    assert len(server.requests) == 3


async def test_a_readable_reply_that_reached_its_limit_is_used_as_it_is(tmp_path: Path) -> None:
    with serve(lambda n, request: Answer(KERNEL, finish_reason="length")) as server:
        model = model_of("chat", server)
        with asked(tmp_path, model) as given:
            await ask("write", given, model.name)
    assert len(server.requests) == 1


async def test_a_kernel_that_is_unreadable_twice_is_a_failure_of_its_branch(tmp_path: Path) -> None:
    with serve(lambda n, request: Answer("no kernel")) as server:
        model = model_of("chat", server)
        with asked(tmp_path, model) as given, pytest.raises(UnreadableReply):
            await ask("write", given, model.name)
    assert "no kernel" in server.requests[1]["prompt"]


async def test_an_unreadable_repair_is_asked_for_again_with_the_source_that_failed_and_its_error(
    tmp_path: Path,
) -> None:
    repair = kernel(
        failed_source="int broken;", failure="wrong: row 3 differs", failure_code=ReasonCode.WRONG_VALUES, parent=None
    )
    with serve(lambda n, request: Answer(KERNEL if n else "no kernel")) as server:
        model = model_of("chat", server)
        with asked(tmp_path, model) as given:
            assert (await given.models.write("r1i0v0a1:write", model.name, repair)).source
    second = server.requests[1]["prompt"]
    assert "int broken;" in second and "wrong: row 3 differs" in second
    assert "Your last reply could not be used: neither a JSON object" in second


@pytest.mark.parametrize(
    ("partial", "rest", "whole"),
    [
        ("int a = 1;\nint b", " = 2;\n", "int a = 1;\nint b = 2;\n"),
        ("```cpp\nint a;\nint ", "```cpp\nb;\n```", "```cpp\nint a;\nint b;\n```"),
        ("for (int i = 0; i < n; ++i) {", "i = 0; i < n; ++i) {\n}", "for (int i = 0; i < n; ++i) {\n}"),
        ("    }\n", "    }\n", "    }\n    }\n"),
    ],
)
def test_a_continuation_is_joined_without_what_is_said_twice(partial: str, rest: str, whole: str) -> None:
    assert joined(partial, rest) == whole


UNFIT = "<<<<<<< SEARCH\n// a tree\n=======\n// edited\n>>>>>>> REPLACE\n"


async def test_edits_that_do_not_fit_are_asked_for_again_with_the_source_that_they_have_to_match(
    modelled: Modelled, tmp_path: Path
) -> None:
    fit = UNFIT.replace("a tree", "the seed")
    with serve(lambda n, request: Answer(fit if n else UNFIT)) as server:
        model = modelled(server)
        with asked(tmp_path, model) as given:
            assert await ask("write", given, model.name) == "// edited"
    first, second = (request["prompt"] for request in server.requests)
    assert "block 1 (`// a tree`) matches nowhere" in second and "matches nowhere" not in first
    assert "// the seed" in second and "<<<<<<< SEARCH\n// a tree" not in second


async def test_blocks_of_a_reply_that_was_cut_off_are_not_taken_for_all(modelled: Modelled, tmp_path: Path) -> None:
    first = UNFIT.replace("a tree", "the seed")
    rest = "<<<<<<< SEARCH\n// and more\n=======\n// edited too\n>>>>>>> REPLACE\n"
    parts = [Answer(first, finish_reason="length"), Answer(rest)]
    request = kernel(failed_source="// the seed\n// and more\n", failure="it failed")
    with serve(lambda n, _: parts[n]) as server:
        model = modelled(server)
        with asked(tmp_path, model) as given:
            draft = await given.models.write("r1i0v0a1:write", model.name, request)
            totals = given.journal.totals()
    assert draft.source == "// edited\n// edited too\n"
    assert totals.repair_input_tokens == totals.input_tokens > 0
