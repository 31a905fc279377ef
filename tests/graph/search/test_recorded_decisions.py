"""How a search decides that replays nothing, how a strict replay does, and how one that goes on does."""

from __future__ import annotations

import pytest
from tests.graph.conftest import Search
from tests.graph.requests_made import ELITE

from ridgeline.checkpoints.calls.journal import Journal
from ridgeline.checkpoints.recording.recording import record
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.graph.models.recorded_answers import Answers
from ridgeline.graph.models.requests import IdeaDraft
from ridgeline.graph.search.context import SearchContext
from ridgeline.graph.search.decisions import Decisions, LiveDecisions
from ridgeline.graph.search.recorded_decisions import GuidedDecisions, RecordedDecisions, decisions_of
from ridgeline.graph.search.way_on import has_repair, repair_or_end
from ridgeline.graph.state import BranchState
from ridgeline.tools.records.vocabulary import Category

UNKNOWN = IdeaDraft(title="fewer passes", mechanism="reads once", category=Category.MEMORY_ACCESS, predicted_gain=1.5)


@pytest.fixture
async def recorded(search: Search) -> SearchContext:
    """Return the context of a search that is over, and in which nothing failed."""
    context = search.context(rounds=1, ideas=1, implementations=1, repairs=1)
    search.archive.save_run(RunRecord(problem=context.problem.model_dump(mode="json"), device=context.target.device))
    await search.run(context)
    return context


def decisions(context: SearchContext, *, is_strict: bool = False, is_alone: bool = True) -> Decisions:
    answers = Answers(record(context.archive), where="run", is_strict=is_strict, is_alone=is_alone)
    return decisions_of(answers, context.archive, context.models)


def first_branch(context: SearchContext) -> BranchState:
    idea = context.archive.ideas()[0]
    return {"idea_id": idea.id, "variation": 0, "model": context.models.names[0], "candidate_id": "r1i0v0a0"}


def first_idea(context: SearchContext) -> IdeaDraft:
    return IdeaDraft.model_validate(context.archive.ideas()[0].to_json())


@pytest.mark.parametrize(
    ("sends", "answer", "recorded_usd"),
    [
        ([None, None], 0.5, 0.5),  # what they cost is not known, and the answer's price is
        ([None], 0.0, 0.0),
        ([0.2], 0.5, 0.7),
        ([0.2], None, None),
        ([None], None, None),
        ([0.2, 0.1], "failed", 0.3),
        ([0.2, None], "failed", None),
    ],
)
async def test_the_price_of_a_call_is_known_where_its_answers_is(
    recorded: SearchContext, sends: list[float | None], answer: float | str | None, recorded_usd: float | None
) -> None:
    journal, call_id = Journal(recorded.archive), "r9:ideate:0"
    usage = {"input_tokens": 10, "output_tokens": 5}
    for send_usd in sends:
        journal.begin(call_id, model="openai:o3", prompt_sha256="aa", request={"round": 9})
        journal.fail(call_id, "502", usage | {"usd": send_usd})
    if answer != "failed":
        journal.begin(call_id, model="openai:o3", prompt_sha256="aa", request={"round": 9})
        journal.finish(call_id, usage | {"text": "{}", "usd": answer, "latency_s": 1.0, "raw": {}})
    [call] = [call for call in record(recorded.archive).calls if call.call_id == call_id]
    assert call.usage["usd"] == (None if recorded_usd is None else pytest.approx(recorded_usd))
    assert call.usage["input_tokens"] == 10 * (len(sends) + (answer != "failed"))


async def test_an_answer_that_took_no_tokens_costs_nothing(recorded: SearchContext) -> None:
    journal = Journal(recorded.archive)
    journal.begin("r9:ideate:0", model="mailbox", prompt_sha256="aa", request={"round": 9})
    journal.finish("r9:ideate:0", {"text": "{}", "usd": None, "raw": {}})
    assert record(recorded.archive).calls[-1].usage["usd"] == 0.0


async def test_each_kind_of_search_has_its_decisions(recorded: SearchContext) -> None:
    assert type(decisions_of(None, recorded.archive, recorded.models)) is LiveDecisions
    assert type(decisions(recorded, is_strict=True)) is RecordedDecisions
    assert type(decisions(recorded)) is GuidedDecisions
    assert isinstance(recorded.decisions, LiveDecisions)


@pytest.mark.parametrize(
    ("is_strict", "is_alone", "repairs"), [(True, True, True), (False, True, False), (False, False, True)]
)
async def test_a_kernel_goes_back_where_its_repair_was_recorded_or_a_model_answers(
    recorded: SearchContext, is_strict: bool, is_alone: bool, repairs: bool
) -> None:
    recorded.decisions = decisions(recorded, is_strict=is_strict, is_alone=is_alone)
    assert await has_repair(first_branch(recorded), recorded) is repairs


async def test_without_repairs_left_no_kernel_goes_back(recorded: SearchContext) -> None:
    branch = first_branch(recorded)
    assert await repair_or_end(branch, recorded) == {"stage": "write", "attempt": 1}
    assert await repair_or_end({**branch, "attempt": 1}, recorded) == {"stage": "done"}


async def test_a_replay_that_goes_on_takes_the_recorded_ideas_and_no_others(recorded: SearchContext) -> None:
    live, strict, guided = LiveDecisions(), decisions(recorded, is_strict=True), decisions(recorded)
    idea = first_idea(recorded)
    assert [each.is_taken(idea, 1, [], is_new=False) for each in (live, strict, guided)] == [False, False, True]
    assert not guided.is_taken(idea, 1, [idea], is_new=False)
    assert [each.is_taken(UNKNOWN, 1, [], is_new=True) for each in (live, strict, guided)] == [True, True, True]
    assert [each.has_kernel_of(idea, 1) for each in (live, strict, guided)] == [False, True, True]


async def test_a_replay_that_goes_on_gives_the_models_what_they_were_given(recorded: SearchContext) -> None:
    live, strict, guided = LiveDecisions(), decisions(recorded, is_strict=True), decisions(recorded)
    name, idea = recorded.models.names[0], recorded.archive.ideas()[0]
    assert [each.shares(1, "") for each in (live, strict, guided)] == [{}, {}, {name: 1}]
    assert [each.writer(idea, 0, "another") for each in (live, strict, guided)] == ["another", "another", name]
    assert guided.writer(idea, 7, "another") == "another"


async def test_a_model_may_name_what_it_was_shown_and_in_a_replay_what_was_shown_then(recorded: SearchContext) -> None:
    strict, guided = decisions(recorded, is_strict=True), decisions(recorded)
    own = {ELITE.candidate_id: ELITE.candidate_id}
    assert await LiveDecisions().nameable_kernels([ELITE], 1, [UNKNOWN]) == own
    assert await strict.nameable_kernels([ELITE], 1, [UNKNOWN]) == own
    assert await guided.nameable_kernels([ELITE], 1, [UNKNOWN]) == {"seed-naive": "seed-naive", **own}


async def test_only_a_replay_knows_of_repairs_that_were_and_says_that_its_recording_is_at_its_end(
    recorded: SearchContext,
) -> None:
    branch = first_branch(recorded)
    assert await LiveDecisions().recorded_repair(branch) == (None, False)
    assert await decisions(recorded, is_strict=True).recorded_repair(branch) == (None, False)
    assert LiveDecisions().why_no_idea(composes_alone=True) == "the offline model had no further idea"
    assert LiveDecisions().why_no_idea(composes_alone=False) == "no model had a further idea"
    assert decisions(recorded).why_no_idea(composes_alone=True) == "the recording has no further idea"
