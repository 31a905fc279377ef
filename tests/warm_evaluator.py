"""An evaluator whose judges and outlining processes begin as copies, as warm_judge.py has them.

Run as a program, it is what `python -m ridgeline.tools.local` is, with the same arguments.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parents[1]))
from tests.warm_judge import WarmJudges

if TYPE_CHECKING:
    from ridgeline.tools.records.problem import Device


def warm_evaluator_command(device: Device) -> list[str]:
    """Return the command of one device's evaluator."""
    from ridgeline.tools.local.evaluator_process import evaluator_command

    python, isolated, _, _, *words = evaluator_command(device)
    return [python, isolated, os.fspath(Path(__file__).absolute()), *words]


def main() -> None:
    """Serve one device on stdin and stdout."""
    from ridgeline.tools.local import __main__ as evaluator

    del sys.path[-1]
    with WarmJudges().starting():
        evaluator.main()


if __name__ == "__main__":
    main()
