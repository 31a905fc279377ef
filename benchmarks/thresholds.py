"""Every threshold of the judge with what set it; `calibrate.py --table` writes docs/calibration.md from it.

What a value rests on is a rule, or a measurement of calibrate.py, quoted from `results/calibration-KIND.json` with its
date and device. A test holds the page equal to the code, and every named number of the judge's modules to a row here.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from typing import Any

from result import RESULTS
from threshold import KINDS, ROOT, Threshold, constants

PAGE = ROOT / "docs" / "calibration.md"

GPU = ("cuda",)
MODULES = (
    "tools.precision",
    "tools.verify",
    "tools.benchmark",
    "tools.lane",
    "tools.process_usage",
    "tools.rotation",
    "tools.request_cost",
    "tools.baselines",
    "graph.audit",
    "graph.certificate",
    "graph.certifying",
    "graph.leaders",
    "graph.other_shapes",
)
"""Where the judge's thresholds live; every public number there is a row below, or in NOT_THRESHOLDS."""
NOT_THRESHOLDS = {
    "CERTIFICATE_SCHEMA_VERSION",
    "BASELINES_VERSION",
}


_CLASSES = "own errors: fp32 {range[fp32][1]:.1e}, tf32 {range[tf32][1]:.1e}, bf16 {range[bf16][1]:.1e} at most"
THRESHOLDS: tuple[Threshold, ...] = (
    Threshold(
        name="tools.precision:NOMINAL_GATE",
        unit="relative error",
        why="A class's gate on nominal inputs: between its own largest error and the next class's smallest.",
        measurement="classes",
        figure=_CLASSES,
    ),
    Threshold(
        name="tools.precision:OWN_MULTIPLE",
        unit="x the class's own error",
        why="Another order of summation and one more rounding; an honest kernel stays far inside.",
        measurement="trials",
        figure="honest fp32 kernels use {largest_part_of_a_gate:.1e} of a gate at most",
    ),
    Threshold(
        name="tools.precision:ROW_SLACK", unit="x the gate", why="The worst of thousands of rows, not their mean."
    ),
    Threshold(
        name="tools.precision:MIN_ROW_ELEMENTS", unit="elements", why="Shorter rows have no stable norm of their own."
    ),
    Threshold(
        name="tools.precision:ROW_NORM_FLOOR",
        unit="x the row's norm",
        why="Keeps a nearly constant row from exploding.",
    ),
    Threshold(
        name="tools.precision:ROW_SCALE_FLOOR",
        unit="x the output's rms",
        why="A row that ReLU made zero has no scale; rows of the row_scaled trial span 2^10 and stay above it.",
    ),
    Threshold(
        name="tools.precision:ELEMENT_SLACK",
        unit="x the gate",
        why="The largest of 1e7 Gaussian errors is 5.3 sigma; fp32 sums in another order have longer tails.",
    ),
    Threshold(
        name="tools.precision:CRFM_TOLERANCE",
        unit="absolute and relative",
        why="The rule under which the original kernels were published; probes still apply.",
    ),
    Threshold(
        name="tools.precision:CONSTANT_SPREAD",
        unit="relative",
        why="Below it any kernel that writes one number passes.",
    ),
    Threshold(
        name="tools.precision:REPEAT_LIMIT",
        unit="x the gate",
        why="Two runs on equal inputs may differ by rounding only.",
    ),
    Threshold(
        name="tools.judge_trials:_NEAR",
        unit="x (value + rms)",
        why="An element so close to its value was written, whatever its bits.",
    ),
    Threshold(
        name="tools.judge_trials:_STALE",
        unit="relative error",
        why="An output so close to another trial's expected one is that trial's.",
    ),
    Threshold(
        name="tools.judge_inputs:_ROW_SCALE_BITS",
        unit="bits",
        why="Rows scaled by 2^U(-b, b): a skipped row shows, and fp16 still holds the rest.",
    ),
    Threshold(
        name="tools.judge_inputs:_INTEGER_RANGE", unit="", why="Small integers are exact in every class down to fp8."
    ),
    Threshold(
        name="tools.verify:_LATE_CALLS",
        unit="calls",
        why="Right for the first ten calls only ends before the last one.",
    ),
    Threshold(
        name="tools.verify:_SETTLE_S", unit="s", why="For work that goes on behind an answer to show in the output."
    ),
    Threshold(
        name="tools.benchmark:TimingSettings",
        unit="",
        why="Until the interval of the median is as narrow, or a limit; a certificate measures longest.",
        measurement="aa",
        figure="a kernel against itself: 1 in {intervals_that_hold_1:.0%} of the intervals",
    ),
    Threshold(name="tools.lane:WarmUp", unit="", why="Clocks, caches and pages settle; at least once round the sets."),
    Threshold(
        name="tools.benchmark:WITNESS_RELATIVE",
        unit="of the time",
        why="The candidate's own clock may lie; an honest one agrees with the parent's.",
        measurement="witness",
        figure="honest kernels: {apart_median:.1%} apart in the median, {apart_largest:.1%} at most, of {timings} timings",
    ),
    Threshold(
        name="tools.benchmark:WITNESS_ABSOLUTE_S",
        unit="s",
        why="Reading a clock and answering, for kernels of some microseconds.",
        measurement="request",
        figure="a request: {us_median:.0f} us, {us_largest:.0f} us at most; all but the scatter is taken off",
    ),
    Threshold(
        name="tools.benchmark:LATENCY_MARGIN",
        unit="x",
        why="How much longer than the other side's request one may wait for a core on a busy machine.",
    ),
    Threshold(
        name="tools.benchmark:BELOW_FLOOR",
        unit="of the floor",
        why="The ceiling is a measurement too; a time below this part of the floor is not believed.",
        measurement="ceiling",
        figure="ceilings measured anew: slowest / fastest {slowest_over_fastest:.3f}",
    ),
    Threshold(
        name="tools.benchmark:LAUNCH_BOUND_MS",
        unit="ms",
        why="Below it a call's launch is a notable part of its time, so the label says so.",
        measurement="request",
        figure="a request: {us_median:.0f} us, {us_largest:.0f} us at most",
    ),
    Threshold(
        name="tools.benchmark:QUARANTINE_SPEEDUP",
        unit="x eager",
        why="Published gains beyond it were mostly errors of a harness: not believed until audited.",
    ),
    Threshold(
        name="tools.benchmark:IDLE_TICKS_S", unit="s", why="/proc counts processor time in ticks of 10 ms: two of them."
    ),
    Threshold(
        name="tools.benchmark:CLOCK_SPREAD",
        unit="of the median clock",
        why="A pair of blocks at another clock compares two machines.",
        measurement="retiming",
        figure="medians of new processes spread {certify_spread:.1%}",
        kinds=GPU,
    ),
    Threshold(
        name="tools.benchmark:BUSY_S",
        unit="s",
        why="On an idle GPU next to nothing takes far less; beside another process it waits for a time slice.",
        measurement="gpu_wait",
        figure="{ms_median:.3f} ms in the median, {ms_largest:.3f} ms at most",
        kinds=GPU,
    ),
    Threshold(
        name="tools.benchmark:STALE_ERROR",
        unit="relative error",
        why="A wrong output below it looks like another call's; one never written is far above.",
    ),
    Threshold(
        name="tools.benchmark:ROUNDED_ERROR",
        unit="relative error",
        why="A wrong output below it looks like this call's in looser arithmetic; fp8 has 7e-2, another call's 0.2.",
        measurement="classes",
        figure="fp8's own errors: {range[fp8][0]:.1e} to {range[fp8][1]:.1e}",
    ),
    Threshold(
        name="tools.benchmark:RENEWAL_SLOWDOWN",
        unit="x the usual",
        why="Work that waits for the next block's inputs shares the GPU while the judge writes them.",
    ),
    Threshold(
        name="tools.process_usage:IDLE_SHARE",
        unit="of a core",
        why="A process that has nothing to do and uses more works behind the clock's back.",
        measurement="idle",
        figure="an honest runner: {share_largest:.1%} at most",
    ),
    Threshold(
        name="tools.lane:LEAST_CALLS", unit="calls", why="A block of fewer would be a request's cost and little else."
    ),
    Threshold(name="tools.rotation:SHARE", unit="of the memory", why="What the sets may take beside everything else."),
    Threshold(
        name="tools.request_cost:PERCENT",
        unit="percentile",
        why="Which of the samples is taken off: a GPU's have two values, and below the upper one blocks look slower.",
        measurement="request",
        figure="over new processes: {us_median:.0f} us, {us_largest:.0f} us at most",
    ),
    Threshold(
        name="tools.rotation:WORKING_SETS", unit="sets", why="What grading needs of a GPU's memory beside the sets."
    ),
    Threshold(name="tools.rotation:MIN_SETS", unit="sets", why="A cache keyed by address must meet other contents."),
    Threshold(
        name="tools.rotation:MAX_SETS",
        unit="sets",
        why="Enough calls on fresh contents that a request's cost is a few percent of a block.",
        measurement="request",
        figure="a request: {us_median:.0f} us",
    ),
    Threshold(name="tools.rotation:MAX_BYTES", unit="bytes", why="What the judge rewrites before every block."),
    Threshold(name="tools.rotation:USUAL_SETS", unit="sets", why="A block of calls on contents not seen before."),
    Threshold(
        name="tools.request_cost:SAMPLES",
        unit="requests",
        why="So many that their median is stable.",
        measurement="request",
        figure="medians of new processes: {us_median:.0f} us, {us_largest:.0f} us at most",
    ),
    Threshold(
        name="tools.baselines:EAGER_KEPT_S",
        unit="s",
        why="A machine's speed changes; every other mode is a ratio to it.",
    ),
    Threshold(
        name="tools.baselines:COMPILE_LIMIT_S", unit="s", why="torch.compile takes 20 to 60 s a mode on 2 cores."
    ),
    Threshold(
        name="graph.audit:AUDIT_ABOVE",
        unit="x the best baseline",
        why="Most published gains beyond it, over a baseline that was compiled, were errors of a harness.",
    ),
    Threshold(name="graph.audit:QUARANTINE_ABOVE", unit="x eager", why="As the label's, above."),
    Threshold(name="graph.audit:AUDIT_TRIALS", unit="trials", why="Twice the certificate's, on seeds after its."),
    Threshold(name="graph.audit:AUDIT_RETIMINGS", unit="timings", why="One more that has to agree with every other."),
    Threshold(name="graph.audit:LONG_RETIMINGS", unit="timings", why="Two more beyond quarantine."),
    Threshold(
        name="graph.audit:SPREAD",
        unit="of the speedup",
        why="Below any error that makes a gain of three, above a shared machine's drift.",
        measurement="retiming",
        figure="speedups of new processes spread {search_speedup_spread:.1%}",
    ),
    Threshold(
        name="graph.certificate:NOTABLE_SHARE",
        unit="of the device's time",
        why="Below it a candidate's time is partly another's code, and the label says so.",
    ),
    Threshold(name="graph.audit:EXTRA_TRIALS", unit="trials", why="Further secret seeds for a winner."),
    Threshold(name="graph.certifying:RETIMINGS", unit="timings", why="Each in a new process."),
    Threshold(
        name="graph.certifying:GPU_SPREAD",
        unit="of the fastest",
        why="Re-timings of a winner on a GPU must agree; on a CPU each one's interval must exclude 1.",
        measurement="retiming",
        figure="medians of new processes spread {certify_spread:.1%}",
        kinds=GPU,
    ),
    Threshold(name="graph.certifying:LONGEST_BASELINES_S", unit="s", why="Up to six compiled modes of five minutes."),
    Threshold(
        name="graph.leaders:LEADERS",
        unit="kernels",
        why="Those whose intervals meet are compared side by side: one timing is not enough to choose by.",
        measurement="aa",
        figure="a kernel against itself: up to {largest_distance_from_1:.1%} from 1",
    ),
    Threshold(name="graph.other_shapes:SHAPES", unit="shapes", why="Other than the problem's, for the label."),
    Threshold(
        name="graph.other_shapes:LEAST_SIZE", unit="elements", why="A smaller number is a width or a count, not a size."
    ),
    Threshold(name="graph.other_shapes:MULTIPLE", unit="elements", why="A shape that most kernels should still serve."),
)


def page() -> str:
    """Return the text of docs/calibration.md."""
    lines = [
        "# Calibration: every threshold, and what set it",
        "",
        "Written by `PYTHONPATH=src python benchmarks/calibrate.py --table`; a test holds it equal to the code. A number",
        "with a measurement is set by it, with room; where a cell of a device is empty the number is a rule, whose reason",
        "stands beside it, or the measurement has not been made on that device. A load average above 1 means that other",
        "programs ran meanwhile: spreads and waits are then theirs too.",
        "",
        *_measured(),
        "",
        "| threshold | value | unit | why | CPU | GPU |",
        "|---|---|---|---|---|---|",
        *(_row(threshold) for threshold in THRESHOLDS),
        "",
    ]
    return "\n".join(lines)


def _measured() -> Iterator[str]:
    for kind in KINDS:
        content = _results(kind)
        entries = content.get("figures", {})
        if not entries:
            yield f"- {kind}: not measured yet: `PYTHONPATH=src python benchmarks/calibrate.py --device {kind}`"
            continue
        dates = sorted(entry["measured"]["date"][:10] for entry in entries.values())
        span = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
        commands = sorted({entry["measured"]["command"] for entry in entries.values()})
        load = max(entry["load_average"] for entry in entries.values())
        where = f"{content['device']['name']}, {span}, load average up to {load:.1f}"
        yield f"- {kind}: {where}, `{'`, `'.join(commands)}`"


def _row(threshold: Threshold) -> str:
    cells = [_quoted(threshold, kind) for kind in KINDS]
    name = threshold.name.replace(":", ".")
    return f"| `{name}` | {threshold.value} | {threshold.unit} | {threshold.why} | {' | '.join(cells)} |"


def _quoted(threshold: Threshold, kind: str) -> str:
    entry = _results(kind).get("figures", {}).get(threshold.measurement) if kind in threshold.kinds else None
    return threshold.figure.format(**entry) if entry else ""


def _results(kind: str) -> dict[str, Any]:
    path = RESULTS / f"calibration-{kind}.json"
    content: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return content


def unlisted() -> list[str]:
    """Return the public numbers of the judge's modules that no row names."""
    listed = {threshold.name for threshold in THRESHOLDS}
    found = [f"{m}:{n}" for m in MODULES for n, v in constants(m).items() if not n.startswith("_") and _is_number(v)]
    return [name for name in found if name not in listed and name.partition(":")[2] not in NOT_THRESHOLDS]


def _is_number(value: ast.expr) -> bool:
    """Say whether a value is a number, a sum or product of numbers, or a table of them."""
    if isinstance(value, ast.Dict):
        return all(_is_number(each) for each in value.values)
    if isinstance(value, ast.BinOp):
        return _is_number(value.left) and _is_number(value.right)
    if isinstance(value, ast.Name):
        return value.id.isupper()
    return isinstance(value, ast.Constant) and type(value.value) in (int, float)
