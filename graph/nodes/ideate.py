"""Ask for the next round's ideas, given everything tried so far, and plan its branches."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from langgraph.types import Overwrite

from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.checkpoints.steering import USER
from ridgeline.graph.models.failures import ModelUnavailable, Unrecorded
from ridgeline.graph.models.requests import IdeaDraft, IdeationRequest, TriedIdea
from ridgeline.graph.search.events import emit, warn
from ridgeline.graph.search.ideas.blocks import building_blocks
from ridgeline.graph.search.ideas.digest import digest
from ridgeline.graph.search.ideas.earnings import author_outcomes, writer_outcomes
from ridgeline.graph.search.ideas.memory import tried_ideas, unwritten_branches
from ridgeline.graph.search.ideas.novelty import is_refused, is_repeated
from ridgeline.graph.search.ideas.offline_ideas import carried_out
from ridgeline.graph.search.ideas.recombination import named_as_shown, pair_to_recombine
from ridgeline.graph.search.ideas.user_ideas import user_drafts, users_ideas
from ridgeline.graph.search.judging.compiled import begin_compiled
from ridgeline.graph.search.ranking.elites import read_elites
from ridgeline.graph.search.rounds.seeds import take_up_seeds
from ridgeline.graph.search.rounds.stop_rules import Stop, outcome_state, tell_stop
from ridgeline.graph.search.running.gathering import gather_or_cancel
from ridgeline.tools.errors import ModelError, OutOfBudget
from ridgeline.tools.machine.logs import logger_of
from ridgeline.tools.machine.threads import run_whole
from ridgeline.tools.records.keys import CallId, idea_id
from ridgeline.tools.records.search import Idea
from ridgeline.tools.records.vocabulary import SearchOutcome

if TYPE_CHECKING:
    from ridgeline.graph.search.context import SearchContext
    from ridgeline.graph.search.shape.plan import Plan
    from ridgeline.graph.state import BranchPlan, SearchState

logger = logger_of(__name__)

Authored = tuple[str, IdeaDraft]
"""An idea behind the name of the model that proposed it."""

Failure = ModelError | ModelUnavailable | OutOfBudget
"""What a model may answer a request for ideas with in the place of some."""


async def ideate(state: SearchState, context: SearchContext) -> SearchState:
    """Store the next round's ideas and return its branches; without any idea the search is stalled.

    Branches of the last round that its budget left unwritten come first, when a resumed search has a larger one.
    """
    await begin_compiled(context)
    await run_whole(context.archive.save_run, RunRecord(stop_reason=""))  # a resumed search had one
    plan = context.plan(state.get("max_rounds"))
    if left := await unwritten_branches(context.archive, state):
        return _again(state, plan, left)
    round_ = state.get("round", 0) + 1
    with_seeds = await take_up_seeds(context, plan, round_)
    state = {**state, **with_seeds}
    try:
        ideas = await _ideas(context, state, plan, round_)
    except OutOfBudget as over:
        return {**with_seeds, **await _over_budget(context, round_, str(over))}
    await run_whole(context.archive.add_ideas, ideas)
    branches = await _branches(context, plan, ideas, round_)
    _announce_round(plan, round_, ideas=len(ideas), branches=len(branches))
    for idea in ideas:
        _announce(idea)
    why = context.decisions.why_no_idea(composes_alone=context.models.composes_alone)
    stop = None if ideas else Stop(SearchOutcome.STALLED, why)
    if stop:
        await tell_stop(context.archive, stop)
    return {
        **with_seeds,
        **outcome_state(stop),
        "round": round_ if ideas else round_ - 1,
        "ideas": [idea.id for idea in ideas],
        "branches": branches,
        "route": "",
        "finished": Overwrite([]),  # type: ignore[typeddict-item]  # empties a list that otherwise only grows
    }


def _again(state: SearchState, plan: Plan, left: list[BranchPlan]) -> SearchState:
    """Return the last round's unwritten branches as a round of their own number."""
    round_ = state.get("round", 0)
    _announce_round(plan, round_, ideas=len({branch["idea_id"] for branch in left}), branches=len(left))
    return {
        "round": round_,
        "branches": left,
        "route": "",
        "finished": Overwrite([]),  # type: ignore[typeddict-item]  # as in a new round
        **outcome_state(None),
    }


async def _over_budget(context: SearchContext, round_: int, reason: str) -> SearchState:
    """Return the end of a search whose budget allows no further ideas; a larger one takes the round up anew."""
    stop = Stop(SearchOutcome.BUDGET, reason)
    await tell_stop(context.archive, stop)
    return {
        **outcome_state(stop),
        "round": round_ - 1,
        "ideas": [],
        "branches": [],
        "route": "",
        "finished": Overwrite([]),  # type: ignore[typeddict-item]  # as in a new round
    }


def _announce_round(plan: Plan, round_: int, *, ideas: int, branches: int) -> None:
    emit(
        {
            "event": "round_started",
            "round": round_,
            "max_rounds": plan.told_rounds,
            "ideas": ideas,
            "branches": branches,
        }
    )


async def _ideas(context: SearchContext, state: SearchState, plan: Plan, round_: int) -> list[Idea]:
    """Return this round's ideas: those already stored (this node ran before), the user's first, then the models'."""
    stored = await run_whole(context.archive.ideas, round_)
    if stored:
        return stored
    emit({"event": "ideation", "round": round_, "max_rounds": plan.told_rounds})
    tried = await run_whole(tried_ideas, context.archive)
    pair = await _pair_to_recombine(context, tried)
    elites = await read_elites(context.archive, dict.fromkeys([*state.get("elites", []), *(pair or ())]))
    begun = await run_whole(context.archive.ideas)
    told = await users_ideas(context, round_)
    usable = carried_out(context, told, round_)
    drafts = [(USER, draft) for draft in user_drafts(usable, begun, plan.ideas, elites)]
    request = IdeationRequest(
        subject=context.subject,
        baselines=await context.told_baselines(round_),
        round=round_,
        count=plan.ideas - len(drafts),
        rng_seed=context.derived_seed(round_, "ideate"),
        tried=tried,
        elites=elites,
        user_ideas=told,
        implementations=plan.implementations,
        blocks=await run_whole(building_blocks, context),
        recombine=named_as_shown(pair, elites) if pair else None,
    )
    if request.count > 0:
        asked = context.ablation.of_ideas(request)
        drafts += await _new_drafts(context, asked, drafts, tried if context.ablation.has("novelty") else None)
    named = [draft for _, draft in drafts] if context.ablation.has("recombination") else []
    known = await context.decisions.nameable_kernels(elites, round_, named) if named else {}
    return [_idea(round_, n, model, draft, known) for n, (model, draft) in enumerate(drafts)]


async def _pair_to_recombine(context: SearchContext, tried: Sequence[TriedIdea]) -> tuple[str, str] | None:
    """Return the kernels that one of the round's ideas is to join; a model that composes ranks such pairs itself."""
    if not context.ablation.has("recombination") or context.models.composes_alone:
        return None
    return await run_whole(pair_to_recombine, context.archive, tried)


async def _new_drafts(
    context: SearchContext,
    request: IdeationRequest,
    taken: Sequence[Authored],
    tried: Sequence[TriedIdea] | None,
) -> list[Authored]:
    """Return up to `request.count` ideas; those that repeat one of `tried`, or one of this round, are asked for once more.

    With None for `tried` nothing is refused.
    """
    accepted: list[Authored] = []
    refused: list[str] = []
    for attempt in ("", ":more"):
        missing = request.count - len(accepted)
        if missing == 0 or (attempt and not refused):
            break
        asked = dataclasses.replace(_after(request, accepted), count=missing, refused=tuple(refused))
        is_needed = not (attempt and [*taken, *accepted])
        answers = await _ask_pool(context, asked, attempt, is_needed=is_needed)
        proposed = [draft for _, draft in answers]
        known = await context.decisions.nameable_kernels(request.elites, request.round, proposed)
        for model, answered in answers:
            draft = _of_known_parent(answered, known)
            is_new = tried is None or _is_new(draft, tried, [*taken, *accepted])
            others = [other for _, other in (*taken, *accepted)]
            if context.decisions.is_taken(draft, request.round, others, is_new=is_new):
                accepted.append((model, draft))
            else:
                refused.append(draft.title)
                logger.info("refused as a duplicate: %s", draft.title)
    return accepted[: request.count]


def _of_known_parent(draft: IdeaDraft, known: Mapping[str, str]) -> IdeaDraft:
    """Return the draft, without its parent where the model made that up."""
    return draft.model_copy(update={"parent_id": known.get(draft.parent_id or "")})


def _is_new(draft: IdeaDraft, tried: Sequence[TriedIdea], drafts: Sequence[Authored]) -> bool:
    is_of_round = is_repeated(draft, draft.parent_id, [(other, other.parent_id) for _, other in drafts])
    return not is_of_round and not is_refused(draft, tried)


def _after(request: IdeationRequest, drafts: Sequence[Authored]) -> IdeationRequest:
    """Return the request for further ideas of a round once these are there: whoever answers it sees them."""
    stated = tuple(f"{draft.title}: {draft.mechanism}" for _, draft in drafts)
    known = {elite.candidate_id for elite in request.elites}
    has_joined = any(draft.second_parent_id in known for _, draft in drafts)
    recombine = None if has_joined else request.recombine
    return dataclasses.replace(request, planned=(*request.planned, *stated), recombine=recombine)


async def _ask_pool(
    context: SearchContext, request: IdeationRequest, attempt: str, *, is_needed: bool
) -> list[Authored]:
    """Share `request.count` ideas among the models and return what they answer, in the pool's order.

    A call that the budget does not allow costs its share; without any idea then, OutOfBudget is raised.

    A model that does not answer loses its share. A model that cannot answer this search at all is dropped, and the others
    get its share. When no model answers, a ModelError is raised, unless the answer is not needed.
    """
    try:
        return await _ask_models(context, request, attempt, is_needed=is_needed)
    except ModelError as error:
        if is_needed:
            raise
        warn(str(error))
        return []


async def _ask_models(
    context: SearchContext, request: IdeationRequest, attempt: str, *, is_needed: bool
) -> list[Authored]:
    outcomes = await run_whole(author_outcomes, context.archive, request.round)
    rng_seed = context.derived_seed(request.round, "ideate", attempt)
    shares = Counter(context.decisions.shares(request.round, attempt))
    shares = shares or Counter(context.models.assign(request.count, outcomes, rng_seed))
    named = [name for name in context.models.names if shares[name]]
    asked = {name: dataclasses.replace(request, count=shares[name], recombine=None) for name in named}
    others = (name for name in named if not context.models.traits(name).composes)  # these rank such pairs themselves
    joining = next(others, named[0])
    asked[joining] = dataclasses.replace(asked[joining], recombine=request.recombine)
    calls = (_ask_one(context, each, name, attempt) for name, each in asked.items())
    answers = dict(zip(asked, await gather_or_cancel(*calls), strict=True))
    drafts = [(name, draft) for name, answer in answers.items() if isinstance(answer, list) for draft in answer]
    errors = {name: answer for name, answer in answers.items() if not isinstance(answer, list)}
    over = [error for error in errors.values() if isinstance(error, OutOfBudget)]
    for name, error in errors.items():
        if not isinstance(error, OutOfBudget):
            _expect_others(context, name, error)
    if over:
        if is_needed and not drafts:
            raise over[0]
        return drafts
    lost = sum(shares[name] for name, error in errors.items() if isinstance(error, ModelError))
    if lost:
        rest = dataclasses.replace(_after(request, drafts), count=lost)
        return drafts + await _ask_pool(context, rest, f"{attempt}:instead", is_needed=not drafts)
    if len(errors) == len(asked) and not all(isinstance(error, Unrecorded) for error in errors.values()):
        raise ModelError(f"no model answers, the search can be resumed later: {next(iter(errors.values()))}")
    return drafts


def _expect_others(context: SearchContext, name: str, error: Failure) -> None:
    """Warn that a model failed; drop a model that can never answer, and raise its error when it was the last one."""
    if isinstance(error, ModelError) and not context.models.drop(name):
        raise error
    dropped = "; the search goes on without it" if isinstance(error, ModelError) else ""
    warn(f"{error}{dropped}")


async def _ask_one(
    context: SearchContext, request: IdeationRequest, name: str, attempt: str
) -> list[IdeaDraft] | Failure:
    call = CallId(round=request.round, place=context.models.place(name), further=attempt)
    is_read = context.models.traits(name).reads_prompts
    tried = digest(request.tried, request.round) if is_read else request.tried
    rng_seed = context.derived_seed(request.round, "ideate", f"{call.place}{attempt}")
    request = dataclasses.replace(request, rng_seed=rng_seed, tried=tried)
    try:
        return await context.journalled_models.propose(str(call), name, request)
    except (ModelError, ModelUnavailable, OutOfBudget) as error:
        return error


def _idea(round_: int, number: int, model: str, draft: IdeaDraft, known: Mapping[str, str]) -> Idea:
    second = known.get(draft.second_parent_id or "")
    return Idea(
        id=idea_id(round_, number),
        round=round_,
        title=draft.title,
        mechanism=draft.mechanism,
        category=draft.category,
        predicted_gain=draft.predicted_gain,
        parent_id=draft.parent_id,
        second_parent_id=second if second != draft.parent_id else None,
        model=model,
        composition=draft.composition,
        plans=draft.plans,
        block=draft.block,
        stage=draft.stage,
    )


async def _branches(context: SearchContext, plan: Plan, ideas: Sequence[Idea], round_: int) -> list[BranchPlan]:
    """Return one branch per (idea, variation); the bandit says which model writes it."""
    outcomes = await run_whole(writer_outcomes, context.archive, round_)
    pairs = [(idea, variation) for idea in ideas for variation in range(plan.implementations)]
    names = context.models.assign(len(pairs), outcomes, context.derived_seed(round_, "branches"))
    return [
        {"idea_id": idea.id, "variation": variation, "model": context.decisions.writer(idea, variation, name)}
        for (idea, variation), name in zip(pairs, names, strict=True)
    ]


def _announce(idea: Idea) -> None:
    logger.info("%s: %s (%s)", idea.id, idea.title, idea.model)
    emit(
        {
            "event": "idea",
            "round": idea.round,
            "idea_id": idea.id,
            "title": idea.title,
            "category": idea.category.value,
            "model": idea.model,
        }
    )
