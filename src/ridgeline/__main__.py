"""`python -m ridgeline`: the same as the command `ridgeline`."""

from __future__ import annotations

import sys

from ridgeline.graph.cli import main

if __name__ == "__main__":
    sys.exit(main())
