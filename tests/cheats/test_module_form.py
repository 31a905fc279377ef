"""Every cheat of interface module: Python files with `ModelNew`, judged beside an honest one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ridgeline.tools.records.vocabulary import Interface
from tests.judged_again import JUDGED_AGAIN, Record

from .catalogue import cases
from .court import HERE, Court, gains_nothing
from .trick import Case, Form, compared

pytestmark = [
    pytest.mark.sandboxed,
    pytest.mark.slow,  # a builder and a runner with torch for each: the first of them are in tests/tools
    pytest.mark.timing,
]
CASES = cases(Form.MODULE)
PROBLEMS = ("gated",)
JUDGED = [case for case in CASES if case.end.control in ("", "itself")]
GAINLESS = [case for case in CASES if case not in JUDGED]


def _source(name: str) -> str:
    """Return a case's file with the honest one of its problem before it, from which it derives."""
    problem = name.partition("_")[0]
    honest = f"{problem}_honest" if problem in PROBLEMS else "honest"
    before = (HERE / "modules" / f"{honest}.py").read_text()
    return before if name == honest else before + (HERE / "modules" / f"{name}.py").read_text()


@pytest.fixture(scope="module")
def court() -> Iterator[Court]:
    """The court of this run's cases; what their attacks may have dropped is looked for at its end."""
    with tempfile.TemporaryDirectory(prefix="ridgeline-module-cheats-", dir="/tmp") as folder:
        os.chmod(folder, 0o755)  # confined code may become another user
        references = (*PROBLEMS, "reference")
        with closing(Court(Path(folder), Interface.MODULE, references, compared=compared(CASES))) as court:
            court.admit({case.name: _source(case.name) for case in CASES}, language="py")
            yield court
            assert_nothing_was_dropped(court)


@pytest.mark.parametrize("case", JUDGED, ids=lambda c: c.name)
def test_judge_gives_the_right_reason(court: Court, case: Case, record_property: Record) -> None:
    found, again = (court.timed_honestly(case.name), "") if case.end.control else court.end_of(case)
    record_property(JUDGED_AGAIN, again)
    assert case.is_end(found), found
    assert case.end.is_ok or found.reason


@pytest.mark.parametrize("case", GAINLESS, ids=lambda c: c.name)
def test_cheat_within_the_rules_of_the_clock_gains_nothing(court: Court, case: Case) -> None:
    gain = gains_nothing(court.timed, case.name, case.end.control)
    assert gain is None, gain


def assert_nothing_was_dropped(court: Court) -> None:
    assert list(court.writable.iterdir()) == []
    assert [path for name in ("torch.py", "sitecustomize.py") for path in court.folder.rglob(name)] == []


def test_every_file_is_in_the_table() -> None:
    assert {path.stem for path in (HERE / "modules").glob("*.py")} == {case.name for case in CASES}
