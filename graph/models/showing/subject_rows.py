"""A search's device and reference as every prompt shows them: all that a writer needs, and nothing of it twice."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ridgeline.graph.models.showing.shortening import with_short_lines
from ridgeline.tools.records.problem import DeviceFact

_CACHE = re.compile(r"L\d(?: data)? cache")
_PEAK = re.compile(r"([\d.e+]+) (\w+/s), measured")
_NVCC = re.compile(r"Build cuda_(\d+\.\d+)\b.*")
_PACKAGED = re.compile(r" \([^)]*\)")
_ONE_THREAD = ("hardware threads", "1 a core")
_NO_ARGUMENTS = re.compile(r"\n+def get_init_inputs\(\)[^\n]*:\n[ \t]+return \[\]\s*\Z")
_BLANKS = re.compile(r"\n{3,}")


def device_rows(facts: Sequence[DeviceFact]) -> list[str]:
    """Return the device's table, its caches in one row, and its peaks where they have one unit.

    Of the compiler the name and version are told. One hardware thread a core is what the contract says already.
    """
    rows: dict[str, str] = {}
    caches = [fact for fact in facts if _CACHE.fullmatch(fact.name)]
    peaks = _peaks(facts)
    for fact in facts:
        if fact in caches and len(caches) > 1:
            rows["caches"] = ", ".join(f"{cache.name.removesuffix(' cache')} {cache.value}" for cache in caches)
        elif fact.name.startswith("peak ") and peaks:
            rows |= dict([peaks])
        elif fact.name == "compiler":
            rows[fact.name] = _PACKAGED.sub("", _NVCC.sub(r"nvcc \1", fact.value))
        elif (fact.name, fact.value) != _ONE_THREAD:
            rows[fact.name] = fact.value
    return [f"{name}: {value}" for name, value in rows.items()]


def _peaks(facts: Sequence[DeviceFact]) -> tuple[str, str] | None:
    """Return the name and the value of one row for all peaks; None for a single one, and where their units differ."""
    found = list(_read_peaks(facts))
    units = {unit for _, _, unit in found}
    if len(found) < 2 or len(units) != 1 or len(found) != sum(fact.name.startswith("peak ") for fact in facts):
        return None
    return f"peak {units.pop()}, measured", ", ".join(f"{name} {rate:.4g}" for name, rate, _ in found)


def _read_peaks(facts: Sequence[DeviceFact]) -> Iterator[tuple[str, float, str]]:
    for fact in facts:
        if fact.name.startswith("peak ") and (found := _PEAK.fullmatch(fact.value)):
            yield fact.name.removeprefix("peak "), float(found[1]), found[2]


def reference_lines(source: str) -> str:
    """Return a reference without what says nothing: a constructor's empty arguments, and blank lines one after another."""
    return with_short_lines(_BLANKS.sub("\n\n", _NO_ARGUMENTS.sub("", source.strip())))
