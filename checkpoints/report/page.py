"""report.html: one search on one page that loads nothing else; also the page of a search under way.

Text of models and users is escaped in five places: the template (autoescape), svg.py, diffs.py, kernels.py and
`colour_source`.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.history.chosen import chosen_words
from ridgeline.checkpoints.history.idea_results import idea_results
from ridgeline.checkpoints.history.lineage import certificate_of
from ridgeline.checkpoints.history.measured_again import measured_again_words
from ridgeline.checkpoints.history.over_pytorch import over_each
from ridgeline.checkpoints.history.progress import Progress
from ridgeline.checkpoints.history.right_kernels import why_none
from ridgeline.checkpoints.history.spending import spending
from ridgeline.checkpoints.report.certificate_rows import certificate_rows
from ridgeline.checkpoints.report.charts import judged_words, roofline_chart, status_bars, trajectory_chart
from ridgeline.checkpoints.report.figures import (
    bytes_text,
    count_text,
    exact_ratio_text,
    ms_text,
    plain_text,
    ratio_text,
    seconds_text,
    span_text,
    usd_text,
)
from ridgeline.checkpoints.report.floors import below_words, floors_words
from ridgeline.checkpoints.report.ideas import idea_rows, tally
from ridgeline.checkpoints.report.kernels import anchor, kernel_entries
from ridgeline.checkpoints.report.search_records import SearchRecords
from ridgeline.checkpoints.report.source_colours import colour_source, line_count
from ridgeline.checkpoints.report.tree import lineage_tree
from ridgeline.checkpoints.report.winner_use import winner_use
from ridgeline.checkpoints.report.wording import (
    COMPARED,
    EAGER_TIMES,
    NO_SPEEDUP,
    PROOF_CSS,
    PROOF_MARKS,
    RANKING,
    author_words,
    best_configuration,
    best_of_torch_doubt,
    doubt,
    labels_in_words,
    name_of_place,
    proof_words,
    replay_words,
    seed_words,
    stage_words,
    unproven_words,
    why_uncertified,
)
from ridgeline.checkpoints.result import BestKernel, choose_best
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.checkpoints.runs.folders import RESUMABLE, UNFINISHED
from ridgeline.checkpoints.stored_certificate import StoredCertificate, certifies, failures_of
from ridgeline.tools.records.printable import printable
from ridgeline.tools.records.reference_mode import mode_words
from ridgeline.tools.wording import baseline_note


def render_report(
    archive: Archive,
    result: dict[str, Any],
    *,
    state_words: str,
    version: str = "",
    now: Progress | None = None,
    notice: str = "",
) -> str:
    """Return the page for a search whose result.json is `result`; `state_words` say how it ended, or that it runs.

    `version` of a page that is served and asks its server for what is new (templates/live.js); "" of a file. `now` of a
    search that runs says how far it has come. `notice` stands above all else.
    """
    context = _context(archive, result)
    context |= {"state_words": state_words, "version": version, "progress": now, "notice": notice}
    return page_environment().get_template("report.html.j2").render(context)


@cache
def page_environment() -> Environment:
    """Return the templates' environment, which escapes every text; it keeps them compiled."""
    environment = Environment(
        loader=FunctionLoader(read_template),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    environment.filters.update(
        ms=ms_text,
        ratio=ratio_text,
        exact_ratio=exact_ratio_text,
        span=span_text,
        seconds=seconds_text,
        usd=usd_text,
        count=count_text,
        bytes=bytes_text,
    )
    environment.filters.update(author=author_words, proof=proof_words)
    environment.globals.update(PROOF_CSS=PROOF_CSS, PROOF_MARKS=PROOF_MARKS)
    return environment


def read_template(name: str) -> str:
    """Return a file of templates/."""
    folder = resources.files("ridgeline.checkpoints.report") / "templates"
    return (folder / name).read_text(encoding="utf-8")


def _shown(value: Any) -> Any:
    """Return a value as the page shows it: a text without what prints nothing."""
    if not isinstance(value, str):
        return value
    text = printable(value, keeps="\n\t")
    return Markup(text) if isinstance(value, Markup) else text


def _context(archive: Archive, result: dict[str, Any]) -> dict[str, Any]:
    records, best = SearchRecords.read(archive), BestKernel.read(result)
    spent = spending(archive)
    ideas, ideas_left_out = idea_rows(idea_results(archive), spent.by_idea)
    return {
        "result": result,
        "is_offline": records.run.is_offline,
        "replay_words": replay_words(result["replay"]),
        "device_name": (result["device"] or {}).get("name", "unknown device"),
        "environment": _environment_rows(records.run, result),
        **_about_floors(records, best),
        "statuses": Markup(status_bars(records)),
        "evaluated": sum(1 for e in records.found.values() if e),
        "evaluated_words": judged_words(records),
        "ideas": ideas,
        "ideas_left_out": ideas_left_out,
        "tally": tally(ideas),
        "stage_words": stage_words(**result["largest_stage"]),
        "found": records.found,
        "speedups": {candidate_id: e.speedup for candidate_id, e in records.found.items() if e},
        "certificate": certificate_rows(archive.certificate()),
        "anchors": {c.id: anchor(place) for place, c in enumerate(records.candidates)},
        **_about_best(archive, result, records, best),
        **_about_kernels(records, best.id if best else None),
        "calls": spent.by_candidate,
    }


def _about_floors(records: SearchRecords, best: BestKernel | None) -> dict[str, Any]:
    """Return the floors, in words too, and why the best kernel can be below the arithmetic one where it is."""
    floor = records.baselines.floor if records.baselines else None
    if floor is None:
        return {"floor": None, "floors_words": "", "below_floor": ""}
    both = (floor.floor_ms, floor.compute_floor_ms)
    return {
        "floor": floor,
        "floors_words": floors_words(*both, ms_text),
        "below_floor": below_words(best.median_ms if best else None, *both),
    }


def _about_best(
    archive: Archive, result: dict[str, Any], records: SearchRecords, best: BestKernel | None
) -> dict[str, Any]:
    best_id = best.id if best else None
    certificate = certificate_of(archive, best_id) if best_id else None
    is_certified = certifies(certificate, best_id)
    again = [entry.to_json() for entry in certificate.baselines] if certificate else []
    winner = archive.candidate(best_id) if best_id else None
    source = winner.source if winner else ""
    chart, ceilings = roofline_chart(records, best_id)
    certified = best.speedup if best and is_certified else None
    return {
        "best": best,
        "best_idea_id": winner.idea_id if winner else None,
        "is_certified": is_certified,
        "ranking": RANKING,
        "eager_times": EAGER_TIMES,
        "compared": COMPARED,
        "headline": _headline(best, result, archive.certificate()) if best else _no_headline(archive),
        "seed_words": seed_words(best, result["state"]).capitalize() if best else "",
        "chosen": chosen_words(archive, best_id),
        "measured_again": measured_again_words(archive, best_id),
        "place": name_of_place(result["state"], certified=is_certified).capitalize(),
        "best_configuration": best_configuration(best.baselines_failed if best else ()),
        "label_words": labels_in_words(best.labels) if best else "",
        "baselines": _baseline_rows(best, again or result["baselines"]),
        "is_measured_again": bool(again),
        "time_words": _time_words(result, certificate),
        "chart": Markup(trajectory_chart(records, certified)),
        "roofline": Markup(chart),
        "ceilings": ceilings,
        "use": winner_use(archive, choose_best(archive)),
        "source": Markup(colour_source(source)),
        "source_lines": line_count(source),
    }


def _about_kernels(records: SearchRecords, best_id: str | None) -> dict[str, Any]:
    tree = lineage_tree(records.candidates, records.found, best_id)
    first = [n.candidate.id for n in tree.nodes if n.is_on_path]
    first += [e.candidate_id for e in records.ranked]
    kernels, left_out = kernel_entries(records, first=first)
    return {
        "tree": tree,
        "gains": {k.candidate.id: k.gain for k in kernels if k.gain},
        "titles": records.titles,
        "second_parents": {i.id: i.second_parent_id for i in records.ideas if i.second_parent_id},
        "kernels": kernels,
        "kernels_left_out": left_out,
    }


def _no_headline(archive: Archive) -> dict[str, str]:
    """Return the headline of a page without a best kernel."""
    return {"figure": "—", "text": f"{why_none(archive).capitalize()}.", "css": "none"}


def _headline(best: BestKernel, result: dict[str, Any], certificate: StoredCertificate | None) -> dict[str, str]:
    is_certified = certifies(certificate, best.id)
    standing = "certified" if is_certified else doubt(best.speedup, best.speedup_ci95, certified=False)
    if not is_certified and result["state"] not in RESUMABLE:
        standing += f" ({why_uncertified(best, result['state'], failures_of(certificate), replay=result['replay'])})"
    unproven, configuration = unproven_words(best), f"PyTorch's {best_configuration(best.baselines_failed)}"
    doubts = [words for words in (unproven, best_of_torch_doubt(best, configuration)) if words]
    but = f", but {'; '.join(doubts)}" if doubts else ""
    figure = "—" if best.speedup is None else f"{best.speedup:.2f}×"
    over = NO_SPEEDUP if best.speedup is None else "as fast as eager PyTorch"
    span = f"; 95 % interval {span_text(best.speedup_ci95)}" if best.speedup is not None and best.speedup_ci95 else ""
    text = f"{over}{but}, {standing}{span}"
    precision = best.precision_class or "unknown"
    css = "gain" if is_certified and not unproven else "none"
    return {"figure": figure, "text": f"{text}, {precision} precision.", "css": css}


def _baseline_rows(best: BestKernel | None, entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return PyTorch's times, each with the best kernel's speedup over it, derived from the headline's speedup."""
    over = over_each(best.speedup, best.precision_class, entries) if best else {}
    return [
        entry
        | {"label": mode_words(entry["name"]), "speedup": over.get(entry["name"])}
        | {"stored": baseline_note(entry)}
        for entry in entries
    ]


def _time_words(result: dict[str, Any], certificate: StoredCertificate | None) -> str:
    """Return what took the time of a search beside its rounds; "" where these took all of it, as far as seconds tell.

    "" also of a search that is not over: its last round may be under way, or cut, and has no time of its own.
    """
    rounds_s = [entry["wall_s"] for entry in result["history"]]
    if result["state"] in UNFINISHED or None in rounds_s:
        return ""
    in_rounds_s = sum(rounds_s)
    certified_s = sum(certificate.seconds.values()) if certificate else 0.0
    left_s = (result["wall_s"] or 0.0) - in_rounds_s - certified_s
    if not rounds_s or left_s + certified_s < 1:
        return ""
    own = f", the certificate's steps {seconds_text(certified_s)}" if certified_s else ""
    return (
        f"Of {seconds_text(result['wall_s'])} in all the rounds took {seconds_text(in_rounds_s)}, the first with what came "
        f"before it{own}; PyTorch's configurations, the best kernels in turns and tries at a certificate took the rest."
    )


def _environment_rows(run: RunRecord, result: dict[str, Any]) -> list[tuple[str, str]]:
    device = {f"device {k}": v for k, v in (result["device"] or {}).items() if k in ("name", "kind", "arch", "cores")}
    known = dict(run.settings or {}) | run.to_json()  # an older archive has the strategy among its settings only
    settings = {
        k.replace("_", " "): known.get(k)
        for k in ("search_id", "models", "strategy", "without", "rng_seed", "sandbox_tier")
    }
    rows = device | result["versions"] | settings
    return [(str(key), plain_text(value)) for key, value in rows.items() if value not in (None, "", [])]
