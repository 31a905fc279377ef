"""`use_kernel.py` and `reference.py` of a run folder: its winner, called beside the reference by one command."""

from __future__ import annotations

import os
from pathlib import Path

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.storage.own_files import replace_file
from ridgeline.checkpoints.winner import Winner, winner_of
from ridgeline.graph.shipping.contract import make_build
from ridgeline.graph.shipping.foreign import expect_known_words
from ridgeline.graph.shipping.render import render_shipped, weights_source
from ridgeline.tools.errors import RunError, StorageError
from ridgeline.tools.records.printable import printable
from ridgeline.tools.records.vocabulary import ArgKind, DeviceKind, Role

_FIRST_WORDS = ('"""The winner of this run against its reference', '"""The fastest kernel of this run, uncertified,')


def write_use_kernel(run: Path, archive: Archive) -> None:
    """Write both files beside a run's best kernel; where it has none, those of an earlier session go away.

    Raises:
        StorageError: the archive is damaged, or the folder cannot be written.
    """
    try:
        winner = winner_of(archive, run.name)
        text = _script(winner) if winner else ""
    except StorageError:
        raise
    except RunError:  # an archive of an older version has no reference or no flags; a stranger's has odd ones
        winner = None
    if winner is None:
        _remove_own(run)
        return
    if _may_write(run, winner.reference):
        replace_file(run / "reference.py", winner.reference)
        replace_file(run / "use_kernel.py", text)


def _script(winner: Winner) -> str:
    expect_known_words(winner)
    args, kind = winner.description.signature.args, winner.device.kind
    tensors = [a for a in args if a.kind is ArgKind.TENSOR]
    return render_shipped(
        "use_kernel.py.j2",
        interface=winner.interface.value,
        language=winner.best.candidate.language,
        kind=kind.value,
        device={"name": printable(winner.device.name), "arch": printable(winner.device.arch)},
        is_certified=winner.is_certified,
        known=[winner.figures.speedup or 0.0, *(winner.figures.speedup_ci95 or ())],
        compiler="nvcc" if kind is DeviceKind.CUDA else "g++",
        weights=weights_source().partition("\nimport torch\n")[2].strip("\n") + "\n",
        limits=[[a.name, *winner.limit(a)] for a in tensors if a.role is Role.OUTPUT],
        flags=make_build(winner)["flags"],
        state=[a.source for a in args if a.role in (Role.PARAMETER, Role.BUFFER)],
        strides=[list(a.strides) for a in tensors if a.role is not Role.OUTPUT],
        outputs=[[list(a.shape), list(a.strides), a.dtype] for a in tensors if a.role is Role.OUTPUT],
    )


def _may_write(run: Path, reference: str) -> bool:
    """Say whether neither file is one that a user has put there."""
    if os.path.lexists(run / "use_kernel.py"):
        return _is_own(run / "use_kernel.py")
    beside = run / "reference.py"
    return not os.path.lexists(beside) or (beside.is_file() and _text(beside) == reference)


def _remove_own(run: Path) -> None:
    """Remove both files where they are an earlier session's, and not what a user has put there."""
    if _is_own(run / "use_kernel.py"):
        (run / "use_kernel.py").unlink()
        (run / "reference.py").unlink(missing_ok=True)


def _is_own(script: Path) -> bool:
    return script.is_file() and _text(script).startswith(_FIRST_WORDS)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")
