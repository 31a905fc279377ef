"""The commands that copy what a run holds: `export`, `ship` and `merge`."""

from __future__ import annotations

from ridgeline.graph.cli.parser import Commands, Parser
from ridgeline.graph.cli.values import word


def add_archives(commands: Commands[Parser]) -> None:
    """Add `export`, `ship` and `merge`."""
    export = commands.add_parser("export", help="copy a run's archive into one file, or its kernels as training data")
    export.add_argument("run", type=word, help="a run's folder or its folder's name")
    export.add_argument("--jsonl", action="store_true", help="one JSON line a candidate instead of a database")
    export.add_argument(
        "--out",
        type=word,
        metavar="FILE",
        help="the file to write; .jsonl means --jsonl (whose default is standard output)",
    )
    export.add_argument("--replay", type=word, metavar="FILE", help="write what ridgeline run --replay FILE needs")
    _add_ship(commands)
    merge = commands.add_parser("merge", help="merge exported archives into one")
    merge.add_argument("into", type=word, metavar="ALL.sqlite", help="the archive that grows; made when missing")
    merge.add_argument("sources", type=word, nargs="+", metavar="RUN", help="run folders or exported archives")


def _add_ship(commands: Commands[Parser]) -> None:
    ship = commands.add_parser("ship", help="write an installable Python package around a run's winner")
    ship.add_argument("run", type=word, help="a run's folder or its name")
    ship.add_argument("--out", type=word, required=True, metavar="DIR", help="the folder to write; it must not exist")
    ship.add_argument("--name", type=word, help="the package's name in Python (default PROBLEM_kernel)")
    ship.add_argument(
        "--layout",
        choices=("package", "hf-kernels"),
        default="package",
        help="a package for pip (default), or a project for Hugging Face's kernel-builder",
    )
    ship.add_argument(
        "--gradients",
        choices=("none", "reference"),
        default="none",
        help="refuse a backward pass (default), or compute it by the reference",
    )
    ship.add_argument(
        "--uncertified", action="store_true", help="ship a kernel without a certificate, labelled as such"
    )
    ship.add_argument("--json", action="store_true", help="one JSON object: the package, and whether it is certified")
