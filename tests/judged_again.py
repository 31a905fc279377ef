"""What a run says at its end of cases that a judge ended another way than most of the judges that were asked after it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

JUDGED_AGAIN = "judged again"
"""The property of a test that holds what was found, "" where the first judge found what it had to."""

Record = Callable[[str, object], None]


class JudgedAgain:
    """Names them: each is luck that a search could have, too."""

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Write a line for each."""
        for report in terminalreporter.getreports("passed") + terminalreporter.getreports("failed"):
            for name, said in report.user_properties:
                if name == JUDGED_AGAIN and said:
                    terminalreporter.write_line(f"{JUDGED_AGAIN}: {report.nodeid}: {said}")
