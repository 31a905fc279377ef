"""certificate.md: the content of certificate.json as Markdown tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ridgeline.checkpoints.report.wording import best_configuration

Facts = dict[str, Any]
_ABSENT: Facts = {
    **dict.fromkeys(("verification", "sanitizer", "audit", "own_work", "other_shapes", "build", "device", "floor")),
    **dict.fromkeys(("versus_seed", "seed_kernel", "speedup_vs_best", "fraction_of_floor", "versions", "hashes")),
    **dict.fromkeys(("timings", "baselines", "selection", "failed_before", "labels"), ()),
    **dict.fromkeys(("problem", "date", "reason"), ""),
}
"""Defaults of the fields that a certificate of an earlier version may lack."""


def render_certificate(certificate: Facts, *, best: Facts | None) -> str:
    """Return the certificate as Markdown; `best` is result.json's entry."""
    certificate = _ABSENT | certificate
    parts = [
        _title(certificate, best),
        _table("What was checked", _checks(certificate)),
        _table("Figures", _figures(certificate, best)),
        _table("PyTorch, measured again", _baselines(certificate)),
        _table("How the winner was chosen", _selection(certificate)),
        _table("Other shapes", _shapes(certificate)),
        _table("What it rests on", _circumstances(certificate)),
    ]
    return "\n".join(part for part in parts if part)


def _title(certificate: Facts, best: Facts | None) -> str:
    name = certificate.get("candidate", {}).get("id", "a kernel")
    gain = (
        f", {best['speedup']:.2f}x as fast as eager PyTorch"
        if certificate["passed"] and best and best["speedup"]
        else ""
    )
    verdict = f"certified{gain}" if certificate["passed"] else f"not certified: {certificate['reason']}"
    labels = f"\nLabels: {', '.join(certificate['labels'])}.\n" if certificate["labels"] else ""
    return f"# {certificate['problem']}: {name} is {verdict}\n{labels}"


def _table(title: str, rows: Iterator[tuple[str, str]]) -> str:
    lines = [f"| {_cell(name)} | {_cell(text)} |" for name, text in rows if text]
    return "\n".join([f"## {title}", "", "| | |", "|---|---|", *lines, ""]) if lines else ""


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def _checks(certificate: Facts) -> Iterator[tuple[str, str]]:
    yield "verification", _verdict(certificate["verification"])
    sanitizer = certificate["sanitizer"] or {}
    said = f"skipped: {sanitizer['skipped']}" if sanitizer.get("skipped") else _verdict(sanitizer.get("verdict"))
    yield f"sanitizers ({sanitizer.get('build', 'none')})", said
    yield "re-timings in new processes", "; ".join(_timing(timing) for timing in certificate["timings"])
    yield "hard floor", _floor(certificate)
    if audit := certificate["audit"]:
        yield (
            "audit",
            f"{'passed' if audit['passed'] else audit['reason']}: " + "; ".join(map(_timing, audit["timings"])),
        )
    yield "own work", own_work_words(certificate["own_work"])
    for failure in certificate["failed_before"]:
        yield f"not certified: {failure['candidate_id']}", failure["reason"]


def _verdict(verdict: Facts | None) -> str:
    if not verdict:
        return "not reached"
    trials = verdict.get("trials") or ()
    passed = f", {sum(1 for t in trials if t['passed'])} of {len(trials)} trials" if trials else ""
    error = f", relative error {verdict['rel_error']:.1e}" if verdict.get("rel_error") is not None else ""
    precision = f", {verdict['precision_class']}" if verdict.get("precision_class") else ""
    reason = f"; {verdict['reason']}" if verdict.get("reason") else ""
    return f"{verdict['status']}{passed}{error}{precision}{reason}"


def _timing(timing: Facts) -> str:
    if timing["median_ms"] is None:
        return f"{timing['status']}: {timing['reason']}"
    low, high = timing["speedup_ci95"] or (float("nan"), float("nan"))
    return f"{timing['median_ms']:.4g} ms, {timing['speedup']:.3f}x ({low:.3f} to {high:.3f})"


def _floor(certificate: Facts) -> str:
    fraction, floor = certificate["fraction_of_floor"], certificate["floor"]
    return f"{floor['floor_ms']:.4g} ms, {fraction:.0%} of its rate is reached" if fraction and floor else ""


def own_work_words(work: Facts | None) -> str:
    """Return which part of the device's time the winner's own code takes, and which other code runs."""
    if not work:
        return "not looked at"
    share = f"{work['share']:.1%} of the device's time" if work["share"] is not None else "share unknown"
    others = f"; not its own: {', '.join(work['others'])}" if work["others"] else ""
    return f"{share}: {work['how']}{others}"


def _figures(certificate: Facts, best: Facts | None) -> Iterator[tuple[str, str]]:
    if certificate["passed"] and best and best["speedup_ci95"]:
        low, high = best["speedup_ci95"]
        yield "over eager PyTorch", f"{best['speedup']:.3f}x ({low:.3f} to {high:.3f}, which spans the re-timings)"
    if certificate["speedup_vs_best"] is not None:
        yield f"over PyTorch's {best_configuration(best or {})}", f"{certificate['speedup_vs_best']:.3f}x"
    versus = certificate["versus_seed"]
    if versus and min(versus["ratio_ci95"]) > 0:
        low, high = sorted(1 / ratio for ratio in versus["ratio_ci95"])
        yield f"over {certificate['seed_kernel']}", f"{1 / versus['ratio']:.3f}x ({low:.3f} to {high:.3f})"


def _baselines(certificate: Facts) -> Iterator[tuple[str, str]]:
    for entry in certificate["baselines"]:
        ms = entry["median_ms"]
        yield entry["name"], f"{ms:.4g} ms" if ms is not None else f"failed: {entry['error']}"


def _selection(certificate: Facts) -> Iterator[tuple[str, str]]:
    leaders: Sequence[Facts] = certificate["selection"]
    for leader in leaders if len(leaders) > 1 else ():
        interval = leader["ratio_ci95"]
        against = (
            f"{leader['ratio']:.3f}x the search's fastest ({interval[0]:.3f} to {interval[1]:.3f})" if interval else ""
        )
        yield leader["candidate_id"], f"{leader['speedup']:.2f}x in the search; {against or 'its fastest'}"


def _shapes(certificate: Facts) -> Iterator[tuple[str, str]]:
    return shape_rows(certificate["other_shapes"] or {})


def shape_rows(found: Facts) -> Iterator[tuple[str, str]]:
    """Yield (sizes, outcome) of each other shape that the source was tried at."""
    if found.get("skipped"):
        yield "none", found["skipped"]
    for shape in found.get("shapes", ()):
        sizes = ", ".join(f"{name} = {value}" for name, value in shape["sizes"].items())
        yield sizes, f"{shape['status']}{'; ' + shape['reason'] if shape['reason'] else ''}"


def _busy(certificate: Facts) -> str:
    cores = certificate.get("cores_in_use_by_others")
    return "" if cores is None else f"{cores:.1f}"


def _circumstances(certificate: Facts) -> Iterator[tuple[str, str]]:
    device, build = certificate["device"] or {}, certificate["build"] or {}
    yield "date", certificate["date"]
    yield "device", f"{device.get('name', '')} ({device.get('arch', '')})"
    yield "driver", device.get("driver", "")
    yield "cores that other programs used", _busy(certificate)
    yield "compiler", build.get("toolchain", "")
    yield "flags", " ".join(build.get("flags", ()))
    yield "build", build.get("key", "")
    for name, text in (certificate["versions"] or {}).items():
        yield name, text
    for name, text in (certificate["hashes"] or {}).items():
        yield name.replace("_", " "), text
    seconds = certificate.get("seconds") or {}
    yield "seconds", ", ".join(f"{step} {spent:.1f}" for step, spent in seconds.items())
