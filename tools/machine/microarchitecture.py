"""The microarchitecture of a processor by vendor, family and model: a virtual machine's name for it may say nothing.

AMD's ranges are those of Linux (arch/x86/kernel/cpu/amd.c), Intel's those of its intel-family.h, Arm's part numbers those of
its cputype.h.
"""

from __future__ import annotations

from collections.abc import Mapping

_Ranges = tuple[tuple[int, int], ...]

_AMD: tuple[tuple[str, int, _Ranges], ...] = (
    ("Zen", 0x17, ((0x00, 0x2F), (0x50, 0x5F))),
    ("Zen 2", 0x17, ((0x30, 0x4F), (0x60, 0x7F), (0x90, 0x91), (0xA0, 0xAF))),
    ("Zen 3", 0x19, ((0x00, 0x0F), (0x20, 0x5F))),
    ("Zen 4", 0x19, ((0x10, 0x1F), (0x60, 0xAF))),
    ("Zen 5", 0x1A, ((0x00, 0x2F), (0x40, 0x4F), (0x60, 0x7F))),
)
"""Name, family and the models' ranges, both ends included."""
_INTEL = {
    0x3F: "Haswell", 0x4F: "Broadwell", 0x56: "Broadwell", 0x6A: "Ice Lake", 0x6C: "Ice Lake", 0x8F: "Sapphire Rapids",
    0xCF: "Emerald Rapids", 0xAD: "Granite Rapids", 0xAE: "Granite Rapids", 0xAF: "Sierra Forest",
}  # fmt: skip
"""Server processors of family 6 by model."""
_SKYLAKE_SERVER = 0x55
_CASCADE_LAKE_FROM, _COOPER_LAKE_FROM = 5, 10  # steppings of the same model
_ARM = {
    "0xd0c": "Neoverse N1", "0xd40": "Neoverse V1", "0xd49": "Neoverse N2", "0xd4f": "Neoverse V2", "0xd84": "Neoverse V3",
    "0xd8e": "Neoverse N3",
}  # fmt: skip
_ARM_LTD = "0x41"


def microarchitecture(facts: Mapping[str, str]) -> str:
    """Return "Zen 5" of /proc/cpuinfo's facts; "family 26, model 2" of one that is not listed, "" where it says neither."""
    if facts.get("CPU implementer") == _ARM_LTD and (name := _ARM.get(facts.get("CPU part", ""))):
        return name
    family, model = facts.get("cpu family", ""), facts.get("model", "")
    if not (family.isdigit() and model.isdigit()):
        return ""
    stepping = facts.get("stepping", "")
    name = _x86(facts.get("vendor_id", ""), int(family), int(model), int(stepping) if stepping.isdigit() else 0)
    return name or f"family {family}, model {model}"


def _x86(vendor: str, family: int, model: int, stepping: int) -> str:
    if vendor == "AuthenticAMD":
        ranges = ((name, ranges) for name, of_family, ranges in _AMD if of_family == family)
        return next((name for name, listed in ranges if any(low <= model <= high for low, high in listed)), "")
    if vendor != "GenuineIntel" or family != 6:
        return ""
    if model == _SKYLAKE_SERVER:
        is_later = (stepping >= _CASCADE_LAKE_FROM) + (stepping >= _COOPER_LAKE_FROM)
        return ("Skylake-SP", "Cascade Lake", "Cooper Lake")[is_later]
    return _INTEL.get(model, "")
