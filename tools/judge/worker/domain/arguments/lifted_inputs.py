"""Whole numbers that are lifted in blocks, near their places or chains, and masks of links: those that the reference takes."""

from __future__ import annotations

from typing import TypeVar

from ridgeline.tools.judge.worker.domain.halving import settle_inputs
from ridgeline.tools.judge.worker.domain.objections import Objection
from ridgeline.tools.judge.worker.grading.cases.case_book import CaseBook
from ridgeline.tools.judge.worker.inputs.source import SecretSource
from ridgeline.tools.records.trial_names import APART, BLOCKED

_How = TypeVar("_How")


def settle_lifts(source: SecretSource, book: CaseBook, names: tuple[str, ...], objection: Objection) -> dict[str, str]:
    """Note in the secret source which inputs change; return those that stay, by the trial and NAME with the reason."""
    refused: dict[str, str] = {}
    links = source.links
    links.masks |= {trial: dict.fromkeys(source.ways.masks, (0, 1)) for trial in links.masks}
    for trial, changed in ((BLOCKED, source.lifts), (APART, links.near), *links.masks.items()):
        refused |= _settle(trial, changed, book, names, objection)
    links.chains |= links.may_be_chains

    def objection_to_chains(trial: str, what: str) -> str:
        return objection(trial, f"chains, {what}")

    return refused | _settle(APART, links.chains, book, names, objection_to_chains)


def _settle(
    trial: str, changed: dict[int, _How], book: CaseBook, names: tuple[str, ...], objection: Objection
) -> dict[str, str]:
    """Leave in `changed` what the reference takes."""
    asked_for = dict(changed)

    def note(chosen: frozenset[int]) -> None:
        book.forget(trial)
        changed.clear()
        changed.update({i: how for i, how in asked_for.items() if i in chosen})

    return settle_inputs(trial, tuple(asked_for), names, note=note, objection=objection)
