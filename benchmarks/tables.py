"""The tables of docs/measurements.md, as the results have them.

    PYTHONPATH=src python benchmarks/tables.py     (nothing is measured: writes each table between its marks)

A table stands between the lines `<!-- table: NAME -->` and `<!-- end of table -->`, NAME being one of TABLES.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from headline import HEADLINE
from result import RESULTS

PAGE = Path(__file__).parent.parent / "docs" / "measurements.md"
_MARKED = re.compile(r"(<!-- table: (?P<name>[\w-]+) -->\n).*?(<!-- end of table -->)", re.DOTALL)
AGREES_WITHIN = 0.05
PARTS = ("build", "load_for_verdict", "verify", "load_for_timing", "time", "other", "total")

Figures = Mapping[str, Any]


def figures(name: str) -> dict[str, Any]:
    """Return the figures of a result's file, of one device model: their table has no column for it."""
    found = figures_of_devices(name)
    if len({model for _, model in found.values()}) > 1:
        each = ", ".join(f"{key} {model}" for key, (_, model) in found.items())
        raise SystemExit(f"{name}.json mixes figures of several devices ({each}); measure those of one again")
    return {key: entry for key, (entry, _) in found.items()}


def figures_of_devices(name: str) -> dict[str, tuple[Any, str]]:
    """Return each of a file's figures with the model of the device that it was measured on."""
    file = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    of_file = file["device"]["name"]
    return {key: (entry, _model(entry, of_file)) for key, entry in file["figures"].items()}


def _model(entry: Any, of_file: str) -> str:
    measured = entry.get("measured", {}) if isinstance(entry, Mapping) else {}
    return str(measured.get("device_name", of_file))


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(map(_cell, line))} |\n" for line in lines)


def _cell(text: str) -> str:
    """Return a cell on one line of its own: a failure's words may hold anything."""
    return " ".join(text.split()).replace("|", "\\|")


def _number(value: float | None, form: str, unit: str = "") -> str:
    return "-" if value is None else f"{value:{form}}{unit}"


# ------------------------------------------------------------------------------------------------------- the headline


def headline() -> str:
    """Return the headline problems, each with PyTorch, the floor, the best seed and what a search found."""
    heads = ("problem", "eager", "PyTorch's best", "floor (bytes)", "best seed", "found", "over eager / over the best")
    found = _headline_entries()
    rows = [[*_headline_row(name, entry), _where(entry, model)] for name, entry, model in found]
    return _table((*heads, "certified", "GPU, judge version"), rows)


def _headline_entries() -> list[tuple[str, Figures, str]]:
    entries = figures_of_devices("headline-cuda")
    return [(name, *entries[name]) for name in HEADLINE if name in entries]


def _where(entry: Figures, model: str) -> str:
    return f"{model.removeprefix('NVIDIA ').split()[0]}, {entry['measured']['judge_version']}"


def _headline_row(name: str, entry: Figures) -> list[str]:
    times = entry["baselines_ms"]
    eager = " / ".join(f"{times[mode]:.3f}" for mode in ("eager", "eager_tf32") if times.get(mode))
    best = min((mode for mode in times if times[mode]), key=times.__getitem__)
    cells = [name, eager, f"{times[best]:.3f} ({best})", f"{entry['floor_ms']:.3f}", f"{entry['best_seed_ms']:.3f}"]
    search = entry.get("search", {})
    found = search.get("best")
    if not found:
        return [*cells, "-", "no search", "-"]
    gains = f"{found['speedup']:.2f}x / {found['speedup_vs_best']:.2f}x"
    return [*cells, f"{found['median_ms']:.3f}", gains, "yes" if search["certified"] else "no"]


def do_bench() -> str:
    """Return our times of PyTorch over those of Triton's timer in the same run, a problem a row."""
    modes = ("eager", "eager_tf32", "compile", "compile_tf32")
    rows = []
    for name, entry, model in _headline_entries():
        theirs = (entry.get(key, {}) for key in ("independent_ms", "independent_short_ms"))
        ratios = [_ratio(entry["baselines_ms"], load, mode) for load in theirs for mode in modes]
        rows.append([name, *ratios, _where(entry, model)])
    return _table(("problem", *modes, f"in bursts: {modes[0]}", *modes[1:], "GPU, judge version"), rows)


def _ratio(ours: Figures, theirs: Any, mode: str) -> str:
    if not isinstance(theirs, Mapping) or not isinstance(theirs.get(mode), float) or not ours.get(mode):
        return "-"
    ratio = ours[mode] / theirs[mode]
    return f"{ratio:.3f}" if abs(ratio - 1) <= AGREES_WITHIN else f"**{ratio:.3f}**"


# ------------------------------------------------------------------------------------------------------------- others


def against_itself() -> str:
    """Return how far kernels are from 1 when they are compared with themselves on a GPU."""
    heads = ("kernel", "ms", "within 1 %", "ratios, 5 % to 95 %", "smallest and largest", "intervals: held 1, width")
    rows = []
    for name, entry in figures("aa-cuda").items():
        ratios, repeats = entry["ratios"], entry["repeats"]
        rows.append([
            f"`{name}`",
            f"{entry['median_ms']:.3f}",
            f"{round(entry['within_1_percent'] * repeats)} of {repeats}",
            f"{entry['ratio_p5']:.4f} to {entry['ratio_p95']:.4f}",
            f"{min(ratios):.4f}, {max(ratios):.4f}",
            f"{round(entry['intervals_that_hold_1'] * repeats)}, {entry['interval_width_median']:.2%}",
        ])  # fmt: skip
    return _table(heads, rows)


def parts() -> str:
    """Return the seconds of one evaluation on a GPU by part."""
    heads = ("kernel", "", "build", "load (verdict)", "verify", "load (timing)", "time", "else", "total")
    kinds = (("a new source", "cold"), ("its build in the cache", "cached"))
    rows = [
        [f"`{name}`, {entry['kernel_ms']:.2f} ms", words, *(f"{entry[kind][f'{part}_s']:.2f}" for part in PARTS)]
        for name, entry in figures("parts-cuda").items()
        for words, kind in kinds
    ]
    return f"{_table(heads, rows)}\n" + "".join(map(_first_kernel, figures("parts-cuda").items()))


def _first_kernel(entry: tuple[str, Figures]) -> str:
    """Return what a problem's first kernel waited for."""
    name, found = entry
    expected_s = found["first"]["verify_s"] - found["cold"]["verify_s"]
    first = (
        f"The first kernel of `{name}` also waited {found['judge_start_s']:.1f} s for the judge and {expected_s:.1f} s"
    )
    return f"{first} for the expected outputs of all trials.\n"


def throughput() -> str:
    """Return how many candidates a search evaluates in a minute on one GPU and on several."""
    rows = []
    for name, entry in figures("throughput-cuda").items():
        for count, found in entry["devices"].items():
            rate, share = f"{found['candidates_per_minute']:.1f}", f"{found['measuring_share']:.0%}"
            rows.append([name, count, f"{found['candidates']} in {found['window_s']:.0f} s", rate, share])
    return _table(("problem", "GPUs", "candidates", "a minute", "of the time a GPU measures"), rows)


def agreement() -> str:
    """Return our time of each kernel over that of the other timers; why, where one has none."""
    heads = (
        "kernel",
        "ms",
        "kernels a call",
        "over the profiler",
        "over events",
        "over do_bench",
        "the same in bursts",
    )
    others = ("profiler", "events", "do_bench", "do_bench_short")
    rows = []
    for name, entry in figures("agreement-cuda").items():
        ratios = [_number(entry.get(f"ridgeline_over_{other}"), ".3f") for other in others]
        if "failed" in entry:
            ratios[0] = f"failed: {entry['failed']}"
        rows.append([name, _number(entry.get("ridgeline_ms"), ".3f"), str(entry.get("kernels_a_call", "-")), *ratios])
    return _table(heads, rows)


def crfm() -> str:
    """Return what the judge says of the original work's published kernels; why, where it turned one down."""
    heads = (
        "kernel",
        "verdict",
        "error",
        "class",
        "ms",
        "eager, TF32 off / on",
        "over eager of its class",
        "labels",
        "elsewhere: ms",
    )
    rows = []
    for name, entry in figures("outside-crfm-cuda").items():
        eager = " / ".join(_number(ms, ".3f") for ms in entry["baselines_ms"].values()) or "-"
        verdict = "ok" if entry["status"] == "ok" else f"{_refusal(entry)}: {entry['reason'].split('; ')[0]}"
        cells = (
            _number(entry["rel_error"], ".1e"),
            entry["precision_class"] or "-",
            _number(entry["median_ms"], ".3f"),
        )
        labels, known = ", ".join(entry["labels"]) or "-", str(entry["known"].get("ms", "-"))
        rows.append([name, verdict, *cells, eager, _number(entry["speedup"], ".2f", "x"), labels, known])
    return _table(heads, rows)


def _refusal(entry: Figures) -> str:
    return f"`{entry['status']}`, `{entry['reason_code']}`"


def outside() -> str:
    """Return what the judge says of the other two suites' published kernels."""
    rows = []
    for suite in ("kernelbench-adversarial", "cuda-l1"):
        for name, entry in figures(f"outside-{suite}-cuda").items():
            is_ok = entry["status"] == "ok"
            words = f"{entry['speedup']:.2f}x eager of its class" if is_ok else entry["reason"]
            rows.append([suite, name, "ok" if is_ok else _refusal(entry), words])
    return _table(("suite", "kernel", "verdict", "in words"), rows)


def rowwise() -> str:
    """Return what searches found for row-wise problems that do not ship."""
    heads = ("problem", "speedup over eager (95 %)", "over PyTorch's best", "class", "labels")
    rows = []
    for name, entry in figures("rowwise").items():
        best = entry["best"]
        low, high = best["speedup_ci95"]
        gain = f"{best['speedup']:.2f}x ({low:.2f} to {high:.2f})"
        labels = ", ".join(best["labels"]) or "-"
        made = f"{entry['candidates']} + {entry['tuned']}", f"{entry['wall_s']:.0f} s"
        rows.append([name, gain, f"{best['speedup_vs_best']:.2f}x", best["precision_class"], labels, *made])
    return _table((*heads, "kernels written + tuned", "search"), rows)


def near_gates() -> str:
    """Return how often verdicts on each kernel near a gate agree."""
    heads = [
        "kernel",
        "first verdict",
        "share that agrees",
        "`margin`: median (range)",
        "judged again",
        "one secret, four",
    ]
    rows = []
    for name, entry in (figures("near-gates-cpu") | figures("near-gates-cuda")).items():
        margin = entry["margin"]
        seconds = (f"{s:.2f} s" if (s := entry["verify_s"][how]) else "-" for how in ("judged_once", "judged_again"))
        rows.append(
            [
                f"`{name}`",
                f"`{entry['first']['status']}`",
                f"{entry['share']:.2f}",
                f"{margin['median']:.2f} ({margin['smallest']:.2f} to {margin['largest']:.2f})",
                f"{entry['judged_again']} of {entry['verifications']}",
                ", ".join(seconds),
            ]
        )
    return _table(heads, rows)


def replays() -> str:
    """Return of each recorded search whether two replays agree, and what its prompts and its ideas came to."""
    heads = ("recording", "replayed", "two replays", "ideas, by round", "first kernel", "largest kernel", "all")
    rows = []
    for name, entry in figures("replays").items():
        prompts, decided = entry["prompts"], entry["decided"]
        stage = entry["largest_stage"]
        rows.append([
            f"`{name}`",
            f"{entry['rounds']} rounds, {decided['calls']} calls, {decided['kernels']} kernels",
            "alike" if entry["are_alike"] else "differ",
            ", ".join(f"{size:,.0f}" for size in prompts["ideas"].values()),
            *(f"{prompts[kind]:,.0f}" for kind in ("first_kernel", "kernel", "all")),
            f"{prompts['cacheable']:.1%}",
            f"{prompts['repairs']:.1%}",
            f"{stage['named']} of {stage['ideas']}",
        ])  # fmt: skip
    return _table((*heads, "cacheable", "for repairs", "ideas that name the largest stage"), rows)


def ablation() -> str:
    """Return the best kernel so far of each recorded search by tokens, with all parts, without each, and as revision."""
    shares = ("25 %", "50 %", "75 %", "100 %")
    rows = []
    for entry in figures("ablation").values():
        for name, found in entry["variants"].items():
            label = name if name in ("full", "revision") else f"without {name}"
            alike = "-" if found["asked_alike"] is None else f"{found['asked_alike']:.0%}"
            best = [_number(speedup, ".2f", "x") for speedup in found["best_at"]]
            rows.append([f"`{entry['problem']}`", label, f"{found['tokens']:,}", alike, *best, found["ended"]])
    return _table(("recording", "variant", "tokens", "asked alike", *shares, "ended"), rows)


TABLES: Mapping[str, Callable[[], str]] = {
    "headline": headline,
    "do-bench": do_bench,
    "against-itself": against_itself,
    "parts": parts,
    "throughput": throughput,
    "agreement": agreement,
    "crfm": crfm,
    "outside": outside,
    "rowwise": rowwise,
    "near-gates": near_gates,
    "ablation": ablation,
    "replays": replays,
}


def filled(page: str) -> str:
    """Return a page with each table as the results have it now."""
    return _MARKED.sub(lambda found: found[1] + TABLES[found["name"]]() + found[3], page)


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"the tables are in {PAGE}")
