"""The roofline's two floors in words: which one is meant, which one binds, and what a kernel below one means."""

from __future__ import annotations

from collections.abc import Callable

MEMORY, ARITHMETIC = "memory floor", "arithmetic floor"


def three_digits(ms: float) -> str:
    """Return a floor as the terminal shows it."""
    return f"{ms:.3f} ms"


def binding_floor(memory_ms: float, arithmetic_ms: float) -> tuple[str, float]:
    """Return the name and milliseconds of the floor that binds, which is the higher one."""
    return (ARITHMETIC, arithmetic_ms) if arithmetic_ms > memory_ms else (MEMORY, memory_ms)


def floors_words(memory_ms: float, arithmetic_ms: float, shown: Callable[[float], str] = three_digits) -> str:
    """Return "memory floor 0.054 ms, arithmetic floor 1.004 ms (binds)"; the memory floor alone where that one binds."""
    memory = f"{MEMORY} {shown(memory_ms)}"
    is_memory = binding_floor(memory_ms, arithmetic_ms)[0] == MEMORY
    return memory if is_memory else f"{memory}, {ARITHMETIC} {shown(arithmetic_ms)} (binds)"


def share_words(ms: float, memory_ms: float, arithmetic_ms: float) -> str:
    """Return "60% of the arithmetic floor's speed": a kernel's, by the name of the floor that binds."""
    name, floor_ms = binding_floor(memory_ms, arithmetic_ms)
    advisory = ", which is advisory" if name == ARITHMETIC and ms < floor_ms else ""
    return f"{100 * floor_ms / ms:.0f}% of the {name}'s speed{advisory}"


def below_words(ms: float | None, memory_ms: float, arithmetic_ms: float) -> str:
    """Return why a kernel can be faster than the arithmetic floor, where that binds and the kernel is; else ""."""
    if not ms or binding_floor(memory_ms, arithmetic_ms)[0] == MEMORY or ms >= arithmetic_ms:
        return ""
    return (
        f"{ms:.4g} ms is below the {ARITHMETIC}, which is advisory: the kernel does fewer operations than the reference, "
        "or that ceiling was measured on a busy machine"
    )
