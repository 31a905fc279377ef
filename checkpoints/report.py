"""report.html: one search on one page that needs nothing but itself.

Whatever a model or a user wrote is escaped: by the template (autoescape), by plots.py, and by `colour_source`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from html import escape
from importlib import resources
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.best_words import best_configuration, doubt, name_of_place, seed_words
from ridgeline.checkpoints.certificate_text import own_work_words, shape_rows
from ridgeline.checkpoints.lineage import certificate_of, finding, lineage
from ridgeline.checkpoints.over_pytorch import over_each
from ridgeline.checkpoints.plots import Dot, Line, bars, trajectory
from ridgeline.tools.records.results import Baselines, Evaluation
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import Origin, Status

_BASELINE_NAMES = {
    "eager": "eager",
    "eager_tf32": "eager, TF32",
    "compile": "torch.compile",
    "compile_max_autotune": "max-autotune",
}
# Not Pygments: its C++ lexer takes 5 s for 4000 lines of two spaces, growing with their square, and the source is a
# model's. It also takes CUDA for C.
_TOKEN = re.compile(
    r"(?P<com>//[^\n]*|/\*.*?\*/)|(?P<str>\"(?:\\.|[^\"\\\n])*\")|(?P<pre>^[ \t]*\#[^\n]*)"
    r"|(?P<key>\b(?:alignas|auto|bool|break|case|char|class|const|constexpr|continue|do|double|else|extern|float|for|if"
    r"|inline|int|long|namespace|return|short|signed|sizeof|static|static_assert|struct|switch|template|typename"
    r"|unsigned|using|void|while|__global__|__device__|__shared__|__restrict__|__launch_bounds__)\b)"
    r"|(?P<num>\b\d[\w.]*\b)",
    re.DOTALL | re.MULTILINE,
)


def render_report(archive: Archive, result: dict[str, Any], *, state_words: str) -> str:
    """Return the page for a search whose result.json is `result`; `state_words` say how it ended."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters.update(ms=_ms, ratio=_ratio, seconds=_seconds, usd=_usd, count=_count)
    folder = resources.files("ridgeline.checkpoints") / "templates"
    template = environment.from_string((folder / "report.html.j2").read_text(encoding="utf-8"))
    return template.render(_context(archive, result) | {"state_words": state_words})


def _context(archive: Archive, result: dict[str, Any]) -> dict[str, Any]:
    best = result["best"]
    certificate = certificate_of(archive, best["id"]) if best else None
    is_certified = bool(certificate and certificate["passed"])
    again = certificate.get("baselines") if certificate else None
    candidates = archive.candidates()
    found = {c.id: finding(archive, c.id) for c in candidates}
    source = archive.candidate(best["id"]).source if best else ""
    return {
        "result": result,
        "best": best,
        "is_certified": is_certified,
        "headline": _headline(best, certificate),
        "seed_words": seed_words(best, result["state"]).capitalize() if best else "",
        "place": name_of_place(result["state"], certified=is_certified).capitalize(),
        "best_configuration": best_configuration(best or {}),
        "device_name": (result["device"] or {}).get("name", "unknown device"),
        "environment": _environment_rows(archive.run(), result),
        "floor": archive.baselines(),
        "baselines": _baseline_rows(best, again or result["baselines"]),
        "is_measured_again": bool(again),
        "chart": Markup(_trajectory(archive, candidates, found, best["speedup"] if is_certified else None)),
        "statuses": Markup(_status_bars(found)),
        "evaluated": sum(1 for e in found.values() if e),
        "ideas": archive.tried_ideas(),
        "speedups": {candidate_id: e.speedup for candidate_id, e in found.items() if e},
        "lineage": list(reversed(lineage(archive, best["id"]))) if best else [],
        "source": Markup(colour_source(source)),
        "source_lines": source.count("\n") + 1,
        "certificate": _certificate_rows(archive.certificate()),
    }


def _headline(best: dict[str, Any] | None, certificate: dict[str, Any] | None) -> dict[str, str]:
    if not best:
        return {"figure": "—", "text": "No kernel passed verification.", "css": "none"}
    speedup = best["speedup"] or 0.0
    low, high = best["speedup_ci95"] or (speedup, speedup)
    is_certified = bool(certificate and certificate["passed"])
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
    """Return PyTorch's times, each with the best kernel's speedup over it, all on the headline's basis."""
    over = over_each(best["speedup"], best["precision_class"], entries) if best else {}
    return [
        entry | {"label": _BASELINE_NAMES.get(entry["name"], entry["name"]), "speedup": over.get(entry["name"])}
        for entry in entries
    ]


def _trajectory(
    archive: Archive, candidates: list[Candidate], found: dict[str, Evaluation | None], certified: float | None
) -> str:
    titles = {i.id: i.title for i in archive.ideas()}
    dots, best, reached = [], 0.0, {}
    for candidate in sorted(candidates, key=lambda c: c.round):
        evaluation = found[candidate.id]
        speedup = evaluation.speedup if evaluation else None
        best = max(best, speedup or 0.0)
        reached[candidate.round] = best
        if evaluation:
            outcome = f"{speedup:.2f}×" if speedup else evaluation.status.value
            label = f"{candidate.id}: {outcome} {titles.get(candidate.idea_id or '', '')}".rstrip()
            dots.append(Dot(round=candidate.round, speedup=speedup, label=label, css=_dot_class(candidate)))
    steps = [(number, speedup) for number, speedup in sorted(reached.items()) if speedup]
    lines = _lines(archive.baselines())
    if certified:
        lines.append(Line(speedup=certified, label=f"certified {_ratio(certified)}", css="certified"))
    return trajectory(dots, lines, steps)


def _dot_class(candidate: Candidate) -> str:
    return {Origin.SEED: "dot seed", Origin.BANK: "dot seed", Origin.TUNE: "dot tuned"}.get(candidate.origin, "dot")


def _lines(baselines: Baselines | None) -> list[Line]:
    eager_ms = next((b.median_ms for b in baselines.entries if b.name == "eager"), None) if baselines else None
    if not baselines or not eager_ms:
        return []
    lines = [
        Line(speedup=eager_ms / b.median_ms, label=f"{_BASELINE_NAMES.get(b.name, b.name)} {_ms(b.median_ms)}")
        for b in baselines.entries
        if b.median_ms
    ]
    if baselines.floor.floor_ms > 0:
        floor_ms = baselines.floor.floor_ms
        lines.append(Line(speedup=eager_ms / floor_ms, label=f"roofline floor {_ms(floor_ms)}", css="floor"))
    return lines


def _status_bars(found: dict[str, Evaluation | None]) -> str:
    counts = Counter(e.status for e in found.values() if e)
    return bars(
        [(s.value.replace("_", " "), counts[s], "ok" if s is Status.OK else "bad") for s in Status if counts[s]]
    )


def _certificate_rows(certificate: dict[str, Any] | None) -> list[tuple[str, str]]:
    rows = []
    for key, value in (certificate or {}).items():
        text = _CERTIFICATE_WORDS.get(key, _summary)(value) if value else _summary(value)
        if text and key not in ("schema_version", "baselines", "floor", "device"):  # these have their own tables
            rows.append((key.replace("_", " "), text))
    return rows


def _summary(value: Any) -> str:
    """Return a record of the certificate in a few words: its verdict, its timing, or its plain fields."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "; ".join(_summary(v) for v in value)
    if not isinstance(value, dict):
        return "" if value in (None, "", []) else _plain(value)
    if isinstance(value.get("verdict"), dict):
        return f"{value.get('build', '')}: {_summary(value['verdict'])}".lstrip(": ")
    if "trials" in value:
        return _verdict_words(value)
    if interval := value.get("speedup_ci95"):
        return f"{_ratio(value.get('speedup'))} ({interval[0]:.2f} to {interval[1]:.2f})"
    plain = {k: _plain(v) for k, v in value.items() if not isinstance(v, dict) and v not in (None, "", [])}
    return ", ".join(f"{k}: {v[:12] if k == 'key' else v}" for k, v in plain.items())


def _verdict_words(verdict: dict[str, Any]) -> str:
    trials = (
        f"{len(verdict['trials'])} {'trial' if len(verdict['trials']) == 1 else 'trials'}" if verdict["trials"] else ""
    )
    words = (verdict.get("status"), verdict.get("reason"), trials, verdict.get("precision_class"))
    return ", ".join(str(word) for word in words if word)


def _candidate_words(candidate: Any) -> str:
    parent = f", from {candidate['parent_id']}" if candidate.get("parent_id") else ""
    tuned = f" with {_plain(candidate['tunables'])}" if candidate.get("tunables") else ""
    return f"{candidate.get('id')}{parent}{tuned}"


def _audit_words(audit: Any) -> str:
    words = (
        "passed" if audit["passed"] else audit["reason"],
        audit["verification"] and _summary(audit["verification"]),
    )
    return "; ".join([*(str(word) for word in words if word), *(_summary(timing) for timing in audit["timings"])])


def _leader_words(leaders: Any) -> str:
    words = [f"{leader['candidate_id']} {_ratio(leader['ratio'])}" for leader in leaders]
    return f"of {', '.join(words)} the fastest in alternating runs" if len(words) > 1 else ""


def _times_as_fast(comparison: Any) -> str:
    """Return how many times as fast as the second the first of two compared kernels is: the inverse of their times."""
    low, high = comparison["ratio_ci95"]
    if low <= 0:
        return "not measured"
    return f"{_ratio(1 / comparison['ratio'])} ({1 / high:.2f} to {1 / low:.2f})"


def _environment_rows(run: dict[str, Any], result: dict[str, Any]) -> list[tuple[str, str]]:
    device = {f"device {k}": v for k, v in (result["device"] or {}).items() if k in ("name", "kind", "arch", "cores")}
    known = (run.get("settings") or {}) | run  # an older archive has the strategy among its settings only
    settings = {
        k.replace("_", " "): known.get(k) for k in ("search_id", "models", "strategy", "rng_seed", "sandbox_tier")
    }
    rows = device | result["versions"] | settings
    return [(str(key), _plain(value)) for key, value in rows.items() if value not in (None, "", [])]


def _count(value: int | None) -> str:
    return "—" if value is None else f"{value:,}"


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        return ", ".join(f"{k}: {_plain(v)}" for k, v in value.items())
    if isinstance(value, list):
        are_flags = any(str(v).startswith("-") for v in value)
        return (" " if are_flags else ", ").join(_plain(v) for v in value)
    return "—" if value is None else str(value)


def colour_source(source: str) -> str:
    """Return C++ or CUDA source as HTML with comments, strings, keywords and numbers marked, all of it escaped."""
    parts, end = [], 0
    for token in _TOKEN.finditer(source):
        parts.append(escape(source[end : token.start()]))
        parts.append(f'<i class="{token.lastgroup}">{escape(token[0])}</i>')
        end = token.end()
    return "".join([*parts, escape(source[end:])])


def _ms(value: float | None) -> str:
    return "—" if value is None else f"{value:.3f} ms" if value >= 0.1 else f"{value * 1000:.1f} µs"


def _ratio(value: float | None) -> str:
    return "—" if value is None else f"{value:.2f}×"


def _seconds(value: float | None) -> str:
    if value is None:
        return "—"
    return f"{value:.0f} s" if value < 120 else f"{value / 60:.1f} min" if value < 7200 else f"{value / 3600:.1f} h"


def _usd(value: float | None) -> str:
    return "—" if value is None else f"${value:.2f}" if value >= 1 or value == 0 else f"${value:.3f}"


_CERTIFICATE_WORDS: dict[str, Callable[[Any], str]] = {
    "candidate": _candidate_words,
    "versus_seed": _times_as_fast,
    "audit": _audit_words,
    "speedup_vs_best": _ratio,
    "fraction_of_floor": lambda fraction: f"{fraction:.0%}",
    "own_work": own_work_words,
    "other_shapes": lambda found: "; ".join(f"{sizes}: {outcome}" for sizes, outcome in shape_rows(found)),
    "selection": _leader_words,
    "hashes": lambda hashes: ", ".join(f"{name} {sha256[:16]}…" for name, sha256 in hashes.items()),
}
