"""The page of interfaces gives every flag that a compiler gets."""

from pathlib import Path

import pytest
from tests.tools.conftest import exp_problem

from ridgeline.tools.build.flags import (
    architecture_flags,
    base_flags,
    diagnostic_flags,
    link_flags,
    profile_flags,
    sanitizer_flags,
)
from ridgeline.tools.records.vocabulary import DeviceKind

PAGE = (Path(__file__).parents[3] / "docs" / "interface.md").read_text(encoding="utf-8")
CPU, CUDA = DeviceKind.CPU, DeviceKind.CUDA
_OPEN = "-Wl,--no-undefined"


@pytest.mark.parametrize(
    ("row", "flags"),
    [
        ("CPU", base_flags(exp_problem().device) + link_flags(CPU)),
        ("CUDA", base_flags(exp_problem(kind=CUDA).device)),
        ("CUDA", link_flags(CUDA)),
        ("messages, CPU", diagnostic_flags(CPU)),
        ("messages, CUDA", diagnostic_flags(CUDA)),
        ("profile's build, CPU", profile_flags(CPU)),
        ("certificate's second build, CPU", sanitizer_flags(CPU)),
    ],
)
def test_the_page_gives_the_flags_of_each_build(row: str, flags: tuple[str, ...]) -> None:
    [said] = [line for line in PAGE.splitlines() if line.startswith(f"| {row} |")]
    assert f"`{' '.join(flags)}`" in said


def test_the_page_says_what_builds_for_other_devices_lack() -> None:
    assert not architecture_flags(exp_problem().device)
    assert not profile_flags(CUDA) + sanitizer_flags(CUDA)
    assert set(link_flags(CPU)) - set(link_flags(CPU, is_open=True)) == {_OPEN}
    assert f"the same without `{_OPEN}`" in PAGE
