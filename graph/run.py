"""`python -m graph.run problem.yaml`: the same as `ridgeline run problem.yaml`."""

import sys

from ridgeline.graph.cli import main

if __name__ == "__main__":
    sys.exit(main(["run", *sys.argv[1:]]))
