"""The estimate of a search's model calls, as the command line prints it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ridgeline.graph.models.estimate import Shape, estimate, estimate_lines
from ridgeline.graph.models.mailbox.model import is_mailbox
from ridgeline.graph.models.pool import ModelPool
from ridgeline.graph.models.showing.shortening import with_short_lines
from ridgeline.graph.search.shape.ablation import Ablation
from ridgeline.graph.search.shape.plan import make_plan

if TYPE_CHECKING:
    from ridgeline.graph.models.prices import Tariff
    from ridgeline.graph.session.options import ResolvedSearch


MAILBOX_COST = "an answer from a mailbox costs what it states"


def tariffs_of(search: ResolvedSearch) -> list[Tariff]:
    """Return what is known of the cost of the models that state it; the offline model and mailboxes state none."""
    return list(ModelPool(search.models).tariffs.values())


def search_estimate(search: ResolvedSearch) -> list[str]:
    """Return the lines of the estimate; one that says so where no call costs anything.

    What a mailbox's answers will state nobody knows: of these requests the number is told.

    Raises:
        UncoveredError, BadReferenceError: the search would be refused so, once its reference had run.
    """
    tariffs, has_mailbox = tariffs_of(search), any(is_mailbox(name) for name in search.model_names)
    if not (tariffs or has_mailbox):
        _refuse_uncovered(search)
        return ["estimate of all rounds: no call of a language model, no tokens"]
    plan = make_plan(search.settings, search.max_rounds)
    shape = Shape(
        rounds=plan.rounds,
        ideas=plan.ideas,
        implementations=plan.implementations,
        repairs=search.settings.repairs,
        elites=plan.elites,
        remembers_ideas=Ablation.of(search.settings).has("memory"),
        reference_chars=len(with_short_lines(search.target.reference_source)),
    )
    if not tariffs:
        low, high = estimate(shape)
        return [f"estimate of all rounds: {low.calls:,} to {high.calls:,} requests; {MAILBOX_COST}"]
    lines = estimate_lines(shape, tariffs, search.budget)
    return [*lines, f"a part of these calls goes to a mailbox: {MAILBOX_COST}"] if has_mailbox else lines


def _refuse_uncovered(search: ResolvedSearch) -> None:
    """Refuse a new search that the offline model alone composes nothing for, as the search itself would."""
    from ridgeline.graph.cli.outlined import refuse_broken, tells_of_wait
    from ridgeline.graph.search.coverage import refuses_uncovered, why_uncovered
    from ridgeline.tools.judge.outline import outline_limit_s
    from ridgeline.tools.judge.outline_process import OutlineProcess

    target = search.target
    is_asked = refuses_uncovered(search.problem, target.device.kind, composes_alone=search.composes_alone) is not None
    if not is_asked or search.has_begun or search.replay is not None:
        return
    given = search.problem.reference_given
    limit_s = outline_limit_s(search.problem.call_timeout_s)
    with OutlineProcess(limit_s=limit_s, with_graphs=True, on_wait=tells_of_wait(given)) as outlines:
        found = outlines.outline(target.reference_source, target.tolerance)
    refuse_broken(found, search.problem, target.device.kind)
    refusal = why_uncovered(target.described(found.description)) if found.description else None
    if refusal is not None:
        raise refusal
