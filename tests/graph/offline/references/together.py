"""Exports several scripts' references at once: `python together.py OUT NAME...` fills OUT/exported-NAME for each.

The scripts run as copies of one process, since what torch.export imports takes five seconds of a core. A copy's exit status
is in OUT/exported-NAME.status when it has ended.
"""

import functools
import gc
import os
import runpy
import sys
import traceback
from pathlib import Path

import torch
from torch._export import utils

from ridgeline.tools.judge.worker.graph_export import export_graph


def run(script: Path, out: Path) -> int:
    """Run one script in a copy of this process and return the copy's id."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        sys.argv = [str(script), str(out)]
        runpy.run_path(str(script), run_name="__main__")
        status = 0
    except BaseException:  # noqa: BLE001  the tests that wait for the status show what was printed
        traceback.print_exc()
    Path(f"{out}.status").write_text(f"{status}\n")
    os._exit(status)


def main() -> None:
    """Run the scripts that the arguments name."""
    out = Path(sys.argv[1])
    # torch asks for the registered operators 50 times an export, a quarter of its time: none is registered here
    utils._materialize_cpp_cia_ops = functools.cache(utils._materialize_cpp_cia_ops)
    export_graph(torch.nn.ReLU(), [torch.ones(1)])  # starts no thread that a copy would lack
    gc.collect()
    gc.freeze()  # else each copy looks through all of torch, and so copies its pages
    copies = [run(Path(__file__).with_name(f"{name}.py"), out / f"exported-{name}") for name in sys.argv[2:]]
    for pid in copies:
        os.waitpid(pid, 0)


if __name__ == "__main__":
    main()
