"""The width of vector registers, by a device's table and by a processor's flags."""

import pytest

from ridgeline.tools.machine import vectors
from ridgeline.tools.machine.vectors import VECTOR_REGISTERS, vector_bits, vector_registers
from ridgeline.tools.records.problem import DeviceFact

TABLE = (DeviceFact(name="L2 cache", value="2 MiB a core"), DeviceFact(name=VECTOR_REGISTERS, value="32 of 512 bits"))


@pytest.mark.parametrize(
    ("flags", "registers", "bits"),
    [
        (("sse2", "avx", "avx2", "avx512f"), "32 of 512 bits", 512),
        (("sse2", "avx", "avx2"), "16 of 256 bits", 256),
        (("sse2",), "16 of 128 bits", 128),
        ((), "", 0),
    ],
)
def test_widest_registers_of_a_processor_count(
    monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...], registers: str, bits: int
) -> None:
    monkeypatch.setattr(vectors, "cpu_flags", lambda: flags)
    assert (vector_registers(flags), vector_bits()) == (registers, bits)
    assert vector_bits(TABLE[:1]) == bits


def test_a_table_counts_before_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "cpu_flags", lambda: ("avx2", "avx"))
    assert vector_bits(TABLE) == 512


def test_without_proc_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def is_missing() -> tuple[str, ...]:
        raise FileNotFoundError("/proc/cpuinfo")

    monkeypatch.setattr(vectors, "cpu_flags", is_missing)
    assert vector_bits() == 0
