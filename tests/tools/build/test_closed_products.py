"""What a source's build leaves without the modes to read it is that source's failure, as for a user who is not root."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.tools.build.tasks import EMPTY_RUN, MakeTask

from ridgeline.tools.build.cache import LIBRARY, unfit
from ridgeline.tools.build.compiler import Compiler
from ridgeline.tools.build.ninja_batch import BuildOutcome
from ridgeline.tools.records.vocabulary import ReasonCode, Status

_LIBC = ctypes.CDLL(None, use_errno=True)
_HEADER = (ctypes.c_uint32 * 2)(0x20080522, 0)  # _LINUX_CAPABILITY_VERSION_3, this thread
_MAY_READ_ANYTHING = 1 << 1 | 1 << 2  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH


@pytest.fixture
def ordinary_user() -> Iterator[None]:
    """Let modes hold for this thread, and for those that it starts, as they hold for a user who is not root."""
    held = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable; twice
    assert _LIBC.capget(_HEADER, held) == 0
    fewer = (ctypes.c_uint32 * 6)(*held)
    fewer[0] &= ~_MAY_READ_ANYTHING
    assert _LIBC.capset(_HEADER, fewer) == 0
    yield
    assert _LIBC.capset(_HEADER, held) == 0


def close_product(folder: Path) -> None:
    (folder / LIBRARY).chmod(0)


def close_folder(folder: Path) -> None:
    folder.chmod(0)


@pytest.mark.usefixtures("ordinary_user")
def test_a_file_that_cannot_be_read_is_not_fit(tmp_path: Path) -> None:
    (tmp_path / LIBRARY).write_bytes(b"x")
    close_product(tmp_path)
    assert unfit(tmp_path / LIBRARY) == "it cannot be read: leave its mode as the compiler sets it"


@pytest.mark.any_tier
@pytest.mark.usefixtures("ordinary_user")
@pytest.mark.parametrize(
    ("close", "reason"),
    [
        (close_product, "the library is not taken: it cannot be read: leave its mode as the compiler sets it"),
        (close_folder, "the compiler failed without a message"),
    ],
)
async def test_a_build_that_closes_what_it_made_fails_alone(
    compiler: Compiler,
    make_task: MakeTask,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    close: Callable[[Path], None],
    reason: str,
) -> None:
    async def closing(folder: Path, *_: object) -> list[BuildOutcome]:
        for name in ("c0", "c1"):
            (folder / name / LIBRARY).write_bytes(b"made")
        close(folder / "c0")
        return [BuildOutcome(exit_code=0, status=("exit 0 - 0 0",), log=b"", seconds=0.1)] * 2

    monkeypatch.setattr("ridgeline.tools.build.compiler.run_batch", closing)
    monkeypatch.setattr("ridgeline.tools.build.compiler.claim_workdir", lambda folder: folder)
    closed, good = await compiler.compile_batch([make_task(EMPTY_RUN), make_task(EMPTY_RUN + "// other\n")])
    assert (closed.status, closed.reason_code) == (Status.COMPILE_ERROR, ReasonCode.COMPILER_FAILED)
    assert closed.reason == reason
    assert good.status is Status.OK
    assert list((tmp_path / "cache" / "tmp").iterdir()) == []
