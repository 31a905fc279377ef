"""report.html: one search on one page that loads nothing else.

Text of models and users is escaped in three places: the template (autoescape), plots.py and `colour_source`.
"""

from __future__ import annotations

from collections import Counter
from importlib import resources
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.history.idea_results import idea_results
from ridgeline.checkpoints.history.lineage import certificate_of, finding, lineage
from ridgeline.checkpoints.history.over_pytorch import over_each
from ridgeline.checkpoints.report.certificate_rows import certificate_rows
from ridgeline.checkpoints.report.figures import count_text, ms_text, plain_text, ratio_text, seconds_text, usd_text
from ridgeline.checkpoints.report.plots import Dot, Line, bars, trajectory
from ridgeline.checkpoints.report.source_colours import colour_source
from ridgeline.checkpoints.report.wording import (
    RANKING,
    author_words,
    best_configuration,
    doubt,
    name_of_place,
    replay_words,
    seed_words,
)
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.checkpoints.stored_certificate import certifies
from ridgeline.tools.records.printable import printable
from ridgeline.tools.records.reference_mode import ReferenceMode
from ridgeline.tools.records.results import Baselines, Evaluation
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import SEARCHED, Origin, Status

_LABELS = {
    ReferenceMode.EAGER_TF32: "eager, TF32",
    ReferenceMode.COMPILE: "torch.compile",
    ReferenceMode.MAX_AUTOTUNE: "max-autotune",
}
"""Words for PyTorch's modes; any other is shown by its name."""


def render_report(archive: Archive, result: dict[str, Any], *, state_words: str) -> str:
    """Return the page for a search whose result.json is `result`; `state_words` say how it ended."""
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=_shown
    )
    environment.filters.update(ms=ms_text, ratio=ratio_text, seconds=seconds_text, usd=usd_text, count=count_text)
    folder = resources.files("ridgeline.checkpoints.report") / "templates"
    template = environment.from_string((folder / "report.html.j2").read_text(encoding="utf-8"))
    return template.render(_context(archive, result) | {"state_words": state_words})


def _shown(value: Any) -> Any:
    """Return a value as the page shows it: a text without what prints nothing."""
    if not isinstance(value, str):
        return value
    text = printable(value, keeps="\n\t")
    return Markup(text) if isinstance(value, Markup) else text


def _context(archive: Archive, result: dict[str, Any]) -> dict[str, Any]:
    best = result["best"]
    certificate = certificate_of(archive, best["id"]) if best else None
    is_certified = certifies(certificate, best["id"] if best else None)
    again = certificate.get("baselines") if certificate else None
    candidates = archive.candidates()
    found = {c.id: finding(archive, c.id) for c in candidates}
    source = archive.candidate(best["id"]).source if best else ""
    return {
        "result": result,
        "best": best,
        "is_certified": is_certified,
        "ranking": RANKING,
        "is_keyless": archive.run().is_keyless,
        "headline": _headline(best, certificate),
        "seed_words": seed_words(best, result["state"]).capitalize() if best else "",
        "place": name_of_place(result["state"], certified=is_certified).capitalize(),
        "best_configuration": best_configuration(best or {}),
        "replay_words": replay_words(result["replay"]),
        "device_name": (result["device"] or {}).get("name", "unknown device"),
        "environment": _environment_rows(archive.run(), result),
        "floor": archive.baselines(),
        "baselines": _baseline_rows(best, again or result["baselines"]),
        "is_measured_again": bool(again),
        "chart": Markup(_trajectory(archive, candidates, found, best["speedup"] if is_certified else None)),
        "statuses": Markup(_status_bars(found)),
        "evaluated": sum(1 for e in found.values() if e),
        "ideas": [r.to_json() | {"by": author_words(r.idea.model)} for r in idea_results(archive)],
        "speedups": {candidate_id: e.speedup for candidate_id, e in found.items() if e},
        "lineage": [
            step | {"by": author_words(step["model"]) if step["model"] else ""}
            for step in reversed(lineage(archive, best["id"]) if best else [])
        ],
        "source": Markup(colour_source(source)),
        "source_lines": source.count("\n") + 1,
        "certificate": certificate_rows(archive.certificate()),
    }


def _headline(best: dict[str, Any] | None, certificate: dict[str, Any] | None) -> dict[str, str]:
    if not best:
        return {"figure": "—", "text": "No kernel passed verification.", "css": "none"}
    speedup = best["speedup"] or 0.0
    low, high = best["speedup_ci95"] or (speedup, speedup)
    is_certified = certifies(certificate, best["id"])
    standing = "certified" if is_certified else doubt(best, certified=False)
    if certificate and not is_certified:
        standing += f" ({certificate['reason']})"
    elif not is_certified and low <= 1 <= speedup:
        standing += ": no verified gain"
    text = f"as fast as eager PyTorch, {standing}; 95 % interval {low:.2f} to {high:.2f}"
    precision = best["precision_class"] or "unknown"
    css = "gain" if is_certified else "none"
    return {"figure": f"{speedup:.2f}×", "text": f"{text}, {precision} precision.", "css": css}


def _baseline_rows(best: dict[str, Any] | None, entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return PyTorch's times, each with the best kernel's speedup over it, derived from the headline's speedup."""
    over = over_each(best["speedup"], best["precision_class"], entries) if best else {}
    return [
        entry | {"label": _LABELS.get(entry["name"], entry["name"]), "speedup": over.get(entry["name"])}
        for entry in entries
    ]


def _trajectory(
    archive: Archive, candidates: list[Candidate], found: dict[str, Evaluation | None], certified: float | None
) -> str:
    titles = {i.id: i.title for i in archive.ideas()}
    dots = []
    for candidate in sorted(candidates, key=lambda c: c.round):
        evaluation = found[candidate.id]
        speedup = evaluation.speedup if evaluation else None
        if evaluation:
            outcome = f"{speedup:.2f}×" if speedup else evaluation.status.value
            label = f"{candidate.id}: {outcome} {titles.get(candidate.idea_id or '', '')}".rstrip()
            dots.append(Dot(round=candidate.round, speedup=speedup, label=label, css=_dot_class(candidate)))
    steps = _best_so_far(archive, candidates)
    lines = _lines(archive.baselines())
    if certified:
        lines.append(Line(speedup=certified, label=f"certified {ratio_text(certified)}", css="certified"))
    return trajectory(dots, lines, steps)


def _best_so_far(archive: Archive, candidates: list[Candidate]) -> list[tuple[int, float]]:
    """Return by round the speedup of the kernel that the search ranks first by then; see checkpoints/ranking.py."""
    rounds = {candidate.id: candidate.round for candidate in candidates}
    ranked = [(rounds[e.candidate_id], e.speedup) for e in archive.ranking(SEARCHED) if e.candidate_id in rounds]
    first = {
        number: next((s for round_, s in ranked if round_ <= number), None) for number in sorted({*rounds.values()})
    }
    return [(number, speedup) for number, speedup in first.items() if speedup]


def _dot_class(candidate: Candidate) -> str:
    return {Origin.SEED: "dot seed", Origin.BANK: "dot seed", Origin.TUNE: "dot tuned"}.get(candidate.origin, "dot")


def _lines(baselines: Baselines | None) -> list[Line]:
    eager_ms = (
        next((b.median_ms for b in baselines.entries if b.name is ReferenceMode.EAGER), None) if baselines else None
    )
    if not baselines or not eager_ms:
        return []
    lines = [
        Line(speedup=eager_ms / b.median_ms, label=f"{_LABELS.get(b.name, b.name)} {ms_text(b.median_ms)}")
        for b in baselines.entries
        if b.median_ms
    ]
    if baselines.floor.floor_ms > 0:
        floor_ms = baselines.floor.floor_ms
        lines.append(Line(speedup=eager_ms / floor_ms, label=f"roofline floor {ms_text(floor_ms)}", css="floor"))
    return lines


def _status_bars(found: dict[str, Evaluation | None]) -> str:
    counts = Counter(e.status for e in found.values() if e)
    return bars(
        [(s.value.replace("_", " "), counts[s], "ok" if s is Status.OK else "bad") for s in Status if counts[s]]
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
