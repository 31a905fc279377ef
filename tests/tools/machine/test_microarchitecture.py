"""The name of a processor's microarchitecture, by what /proc/cpuinfo says of it."""

from __future__ import annotations

import pytest

from ridgeline.tools.machine.microarchitecture import microarchitecture


@pytest.mark.parametrize(
    ("vendor", "family", "model", "stepping", "name"),
    [
        ("AuthenticAMD", 23, 49, 0, "Zen 2"),  # EPYC 7742
        ("AuthenticAMD", 25, 1, 1, "Zen 3"),  # EPYC 7763
        ("AuthenticAMD", 25, 17, 1, "Zen 4"),  # EPYC 9654
        ("AuthenticAMD", 25, 160, 2, "Zen 4"),  # EPYC 9754
        ("AuthenticAMD", 26, 2, 1, "Zen 5"),  # EPYC 9755
        ("GenuineIntel", 6, 85, 4, "Skylake-SP"),
        ("GenuineIntel", 6, 85, 7, "Cascade Lake"),
        ("GenuineIntel", 6, 85, 11, "Cooper Lake"),
        ("GenuineIntel", 6, 106, 6, "Ice Lake"),
        ("GenuineIntel", 6, 143, 8, "Sapphire Rapids"),
        ("GenuineIntel", 6, 173, 1, "Granite Rapids"),
        ("GenuineIntel", 6, 1, 0, "family 6, model 1"),
        ("AuthenticAMD", 99, 1, 0, "family 99, model 1"),
    ],
)
def test_a_processor_is_named_by_family_and_model(
    vendor: str, family: int, model: int, stepping: int, name: str
) -> None:
    facts = {"vendor_id": vendor, "cpu family": str(family), "model": str(model), "stepping": str(stepping)}
    assert microarchitecture(facts) == name


def test_arm_s_parts_are_named_and_nothing_is_guessed() -> None:
    assert microarchitecture({"CPU implementer": "0x41", "CPU part": "0xd4f"}) == "Neoverse V2"
    assert microarchitecture({"CPU implementer": "0x61", "CPU part": "0xd4f"}) == ""
    assert microarchitecture({}) == ""
