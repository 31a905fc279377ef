"""Every threshold of the judge with what set it; `calibrate.py --table` writes docs/calibration.md from it.

What a value rests on is a rule, or a measurement of calibrate.py, quoted from `results/calibration-KIND.json` with its
date and device. A test holds the page equal to the code, and every named number of the judge's modules to a row here.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from result import RESULTS
from threshold import KINDS, ROOT, Threshold, constants

PAGE = ROOT / "docs" / "calibration.md"

MODULES = (
    "tools.records.precision",
    "tools.records.results",
    "tools.measure.verify",
    "tools.measure.behind_the_clock",
    "tools.measure.benchmark",
    "tools.measure.alternation",
    "tools.measure.distrust",
    "tools.measure.timed_device",
    "tools.measure.timed_side",
    "tools.machine.process_use",
    "tools.judge.set_count",
    "tools.measure.request_cost",
    "tools.measure.baselines",
    "tools.measure.late_outputs",
    "tools.judge.worker.judge",
    "tools.judge.worker.renewal_pace",
    "tools.judge.worker.device",
    "tools.judge.worker.inputs.timed_sets",
    "tools.judge.worker.inputs.source",
    "tools.judge.worker.inputs.values.transforms",
    "tools.judge.worker.inputs.signs",
    "tools.judge.worker.domain.timed_kinds",
    "tools.judge.worker.grading.examiner",
    "tools.judge.worker.grading.limits.lanes",
    "tools.judge.worker.grading.outputs.vanishing",
    "tools.judge.worker.domain.domain",
    "tools.judge.worker.domain.sign_trials",
    "tools.judge.worker.inputs.input_form",
    "tools.judge.worker.inputs.variation",
    "tools.judge.worker.inputs.values.orders",
    "tools.judge.worker.inputs.values.symmetry",
    "tools.judge.worker.inputs.arrangements.crowds",
    "tools.judge.worker.domain.arguments.other_inputs",
    "tools.judge.worker.domain.objections",
    "tools.judge.worker.domain.refused_kinds",
    "graph.certificate.audit",
    "graph.certificate.certificate",
    "graph.certificate.measuring",
    "graph.certificate.steps",
    "graph.search.ranking.leaders",
    "graph.certificate.other_shapes",
)
"""Modules with the judge's thresholds; every number there is a row of thresholds.yaml, or in NOT_THRESHOLDS."""
NOT_THRESHOLDS = {
    "SCHEMA_VERSION",
    "CERTIFICATE_SCHEMA_VERSION",
    "BASELINES_VERSION",
    "_LONGEST_STAT",
    "_AFTER_COMMAND",
    "_FIRST_VARIED",
    "_LATE_TRIALS",
    "_SEEN_SET",
}


def _rows() -> tuple[Threshold, ...]:
    listed = yaml.safe_load((Path(__file__).parent / "thresholds.yaml").read_text(encoding="utf-8"))
    return tuple(Threshold(**row | {"kinds": tuple(row.get("kinds", KINDS))}) for row in listed)


THRESHOLDS = _rows()


def page() -> str:
    """Return the text of docs/calibration.md."""
    lines = [
        "# Calibration: every threshold, and what set it",
        "",
        "`PYTHONPATH=src python benchmarks/calibrate.py --table` writes this page; a test holds it equal to the code. A",
        "number rests on the measurement in its row. Where a device's cell is empty, the number is a rule, whose reason",
        "stands beside it, or was not measured on that device. A load average above 1 means that other programs ran",
        "meanwhile: spreads and waits are then theirs too.",
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
    """Return the numbers of the judge's modules that no row names."""
    listed = {threshold.name for threshold in THRESHOLDS}
    found = [f"{m}:{n}" for m in MODULES for n, v in constants(m).items() if _is_number(v)]
    return [name for name in found if name not in listed and name.partition(":")[2] not in NOT_THRESHOLDS]


def _is_number(value: ast.expr) -> bool:
    """Say whether a value is a number, a sum or product of numbers, or a table of them."""
    if isinstance(value, ast.Dict):
        return all(_is_number(each) for each in value.values)
    if isinstance(value, ast.Tuple):
        return all(_is_number(each) for each in value.elts)
    if isinstance(value, ast.Subscript):
        return _is_number(value.value)
    if isinstance(value, ast.BinOp):
        return _is_number(value.left) and _is_number(value.right)
    if isinstance(value, ast.Name):
        return value.id.isupper()
    return isinstance(value, ast.Constant) and type(value.value) in (int, float)
