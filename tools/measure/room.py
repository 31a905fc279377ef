"""Room for a runner beside the judge, whose kept cases may all but fill a GPU."""

from __future__ import annotations

import logging
from collections.abc import Callable

from ridgeline.tools.errors import RunnerNotReadyError
from ridgeline.tools.judge.messages import MakeRoom
from ridgeline.tools.judge.process import JudgeProcess
from ridgeline.tools.runner.process import RunnerProcess

logger = logging.getLogger(__name__)


def with_room(judge: JudgeProcess, start: Callable[[], RunnerProcess]) -> RunnerProcess:
    """Return the runner that `start` makes, at the second try without what the judge can make again.

    Raises:
        RunnerNotReadyError: it fails twice before a candidate is loaded.
        RunnerFailure: the candidate failed while it was loaded.
    """
    try:
        return start()
    except RunnerNotReadyError as failure:
        logger.warning("%s: once more without what the judge can make again", failure)
        judge.ask(MakeRoom())
        return start()
