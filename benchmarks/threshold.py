"""One threshold of the judge: its name, why it is what it is, and its value as the code has it now.

The value is read from the text of the module that uses it: nothing is said twice, and nothing is imported that needs
torch.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ridgeline.tools.measure.timed_side import WarmUp
from ridgeline.tools.measure.timing_settings import TimingSettings
from ridgeline.tools.records.vocabulary import DeviceKind, Purpose

ROOT = Path(__file__).parents[1]
KINDS = ("cpu", "cuda")


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """One number that decides something; `figure` names a measurement and the figures of it that are quoted."""

    name: str  # module:NAME below ridgeline; module:NAME.field of a table of records
    unit: str
    why: str
    measurement: str = ""  # of calibrate.py; "" where a rule sets the number
    figure: str = ""  # with the measurement's figures in braces

    kinds: tuple[str, ...] = KINDS  # devices for which the figure says something

    @property
    def value(self) -> str:
        """Return what the code says now."""
        module, _, name = self.name.partition(":")
        return _COMPOSED[name]() if name in _COMPOSED else _shown(constants(module)[name])


def _settings() -> str:
    parts = []
    for purpose in (Purpose.SEARCH, Purpose.EVALUATE, Purpose.CERTIFY):
        gpu, cpu = (TimingSettings.for_purpose(purpose, kind) for kind in (DeviceKind.CUDA, DeviceKind.CPU))
        on_cpu = f" ({1e3 * cpu.block_s:g} on a CPU)" if cpu.block_s != gpu.block_s else ""
        parts.append(
            f"{purpose} {gpu.rule.smallest} to {gpu.rule.largest} pairs, {gpu.rule.time_s:g} s, "
            f"blocks of {1e3 * gpu.block_s:g} ms{on_cpu}, {gpu.checks} checked a block"
        )
    return "; ".join([*parts, f"ends at {gpu.rule.half_width:.0%}"])


def _warm_up() -> str:
    return f"{WarmUp().calls} calls and {WarmUp().seconds:g} s"


_COMPOSED = {"TimingSettings": _settings, "WarmUp": _warm_up}


def _shown(value: ast.expr) -> str:
    """Return a value as the code has it: of a table its entries, "fp32 1e-05, tf32 0.001"."""
    if not isinstance(value, ast.Dict):
        return ast.unparse(value)
    pairs = zip(value.keys, value.values, strict=True)
    return ", ".join(f"{re.sub(r'^.*[.]', '', ast.unparse(k)).lower()} {ast.unparse(v)}" for k, v in pairs if k)


@cache
def constants(module: str) -> dict[str, ast.expr]:
    """Return a module's top-level constants, read from its text."""
    tree = ast.parse((ROOT / f"{module.replace('.', '/')}.py").read_text())
    found: dict[str, ast.expr] = {}
    for node in tree.body:
        if not isinstance(node, ast.Assign | ast.AnnAssign):
            continue
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        if isinstance(target, ast.Name) and target.id.isupper() and node.value is not None:
            found |= {target.id: node.value, **_columns(target.id, node.value)}
    return found


def _columns(name: str, value: ast.expr) -> dict[str, ast.expr]:
    """Return the columns of a table of records, as tables of their own: "ROOM.share" of {CPU: SetRoom(share=0.5)}.

    A column of records has columns too.
    """
    if not isinstance(value, ast.Dict):
        return {}
    rows = [{k.arg: k.value for k in each.keywords if k.arg} for each in value.values if isinstance(each, ast.Call)]
    if not rows or len(rows) < len(value.values):
        return {}
    columns = {f"{name}.{field}": ast.Dict(value.keys, [row[field] for row in rows]) for field in rows[0]}
    return columns | {n: each for name, column in columns.items() for n, each in _columns(name, column).items()}
