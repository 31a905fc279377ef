"""The certificate as rows of words, for report.html."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ridgeline.checkpoints.report.certificate import own_work_words, shape_rows
from ridgeline.checkpoints.report.figures import plain_text, ratio_text


def certificate_rows(certificate: dict[str, Any] | None) -> list[tuple[str, str]]:
    """Return (name, words) of the certificate's fields; fields with tables of their own are left out."""
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
        return "" if value in (None, "", []) else plain_text(value)
    if isinstance(value.get("verdict"), dict):
        return f"{value.get('build', '')}: {_summary(value['verdict'])}".lstrip(": ")
    if "trials" in value:
        return _verdict_words(value)
    if interval := value.get("speedup_ci95"):
        return f"{ratio_text(value.get('speedup'))} ({interval[0]:.2f} to {interval[1]:.2f})"
    texts = {k: plain_text(v) for k, v in value.items() if not isinstance(v, dict) and v not in (None, "", [])}
    return ", ".join(f"{k}: {text[:12] if k == 'key' else text}" for k, text in texts.items())


def _verdict_words(verdict: dict[str, Any]) -> str:
    count = len(verdict["trials"])
    trials = f"{count} {'trial' if count == 1 else 'trials'}" if count else ""
    words = (verdict.get("status"), verdict.get("reason"), trials, verdict.get("precision_class"))
    return ", ".join(str(word) for word in words if word)


def _candidate_words(candidate: Any) -> str:
    parent = f", from {candidate['parent_id']}" if candidate.get("parent_id") else ""
    tuned = f" with {plain_text(candidate['tunables'])}" if candidate.get("tunables") else ""
    return f"{candidate.get('id')}{parent}{tuned}"


def _audit_words(audit: Any) -> str:
    words = (
        "passed" if audit["passed"] else audit["reason"],
        audit["verification"] and _summary(audit["verification"]),
    )
    return "; ".join([*(str(word) for word in words if word), *(_summary(timing) for timing in audit["timings"])])


def _leader_words(leaders: Any) -> str:
    words = [f"{leader['candidate_id']} {ratio_text(leader['ratio'])}" for leader in leaders]
    return f"of {', '.join(words)} the fastest in alternating runs" if len(words) > 1 else ""


def _times_as_fast(comparison: Any) -> str:
    """Return the first kernel's speedup over the second: second_ms / first_ms, the inverse of the stored ratio."""
    low, high = comparison["ratio_ci95"]
    if low <= 0:
        return "not measured"
    return f"{ratio_text(1 / comparison['ratio'])} ({1 / high:.2f} to {1 / low:.2f})"


_CERTIFICATE_WORDS: dict[str, Callable[[Any], str]] = {
    "candidate": _candidate_words,
    "versus_seed": _times_as_fast,
    "audit": _audit_words,
    "speedup_vs_best": ratio_text,
    "fraction_of_floor": lambda fraction: f"{fraction:.0%}",
    "own_work": own_work_words,
    "other_shapes": lambda found: "; ".join(f"{sizes}: {outcome}" for sizes, outcome in shape_rows(found)),
    "selection": _leader_words,
    "hashes": lambda hashes: ", ".join(f"{name} {sha256[:16]}…" for name, sha256 in hashes.items()),
}
