"""Whether the time that collecting an output took is that of a copy."""

from __future__ import annotations

from ridgeline.tools.collecting import late_work

COPIES_S = [2e-4, 3e-4, 2e-4, 9e-3, 2e-4, 2e-4, 2e-4, 2e-4]


def test_a_copy_on_a_busy_machine_is_no_late_work() -> None:
    assert late_work([1e-3, 9e-3, 8e-3, 1.1e-3], [2e-3, 8e-3, 7e-3, 1e-3], call_s=1e-3) == ""


def test_too_few_collections_say_nothing() -> None:
    assert late_work([5e-3] * 3, [2e-4] * 3, call_s=5e-3) == ""


def test_an_output_that_is_made_when_collected_is_late_work() -> None:
    said = late_work([5.2e-3, 5.1e-3, 5.4e-3, 2e-4, 5.1e-3, 5.2e-3, 5.3e-3, 5.3e-3], COPIES_S, call_s=5e-3)
    assert said.startswith("collecting an output took 5.1 ms, a call 5 ms and a copy 0.3 ms")
