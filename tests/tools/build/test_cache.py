"""The build cache under concurrent writers, kills and damage; real processes, real files."""

from __future__ import annotations

import errno
import itertools
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from ridgeline.tools.build import cache
from ridgeline.tools.build.cache import BuildCache, check_writable, unfit
from ridgeline.tools.build.cache_lease import Lease, leased_keys
from ridgeline.tools.errors import StorageError
from ridgeline.tools.machine.held_folders import hold_folder
from ridgeline.tools.records.results import Build
from ridgeline.tools.records.vocabulary import Status

KEY = "ab" * 32
WRITER = """
import sys
from collections.abc import Sequence
from pathlib import Path
from ridgeline.tools.build.cache import BuildCache, check_writable, unfit
from ridgeline.tools.build.cache_lease import leased_keys
from ridgeline.tools.records.results import Build; from ridgeline.tools.records.vocabulary import Status
root, library, first, count = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
cache = BuildCache(root)
print("ready", flush=True)
for i in range(first, first + count):
    cache.publish(Build(key=f"{i:064x}", status=Status.OK), library)
"""


def built(key: str = KEY) -> Build:
    return Build(key=key, status=Status.OK, flags=("-O3",), toolchain="g++")


@pytest.fixture
def library(tmp_path: Path) -> Path:
    path = tmp_path / "made.so"
    path.write_bytes(os.urandom(100_000))
    return path


def start_writer(root: Path, library: Path, first: int, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(root), str(library), str(first), str(count)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)


def test_a_published_build_is_found_again_with_its_library(tmp_path: Path, library: Path) -> None:
    cache = BuildCache(tmp_path / "cache")
    assert cache.find(KEY) is None
    published = cache.publish(built(), library)
    found = cache.find(KEY)
    assert found is not None
    assert found.cached
    assert found.library_path == published.library_path
    assert Path(str(found.library_path)).read_bytes() == library.read_bytes()


@pytest.mark.parametrize("file", ["kernel.so", "build.json"])
@pytest.mark.parametrize("damage", ["truncated", "changed", "missing", "nested", "pipe", "folder"])
def test_a_damaged_entry_counts_as_none_and_can_be_published_again(
    tmp_path: Path, library: Path, file: str, damage: str
) -> None:
    cache = BuildCache(tmp_path / "cache")
    victim = Path(str(cache.publish(built(), library).library_path)).parent / file
    if damage == "truncated":
        os.truncate(victim, 10)
    elif damage == "changed":
        victim.write_bytes(b"x" * victim.stat().st_size)
    elif damage == "nested":
        victim.write_bytes(b"[" * 200_000)
    else:
        victim.unlink()
    if damage == "pipe":
        os.mkfifo(victim)
    elif damage == "folder":
        victim.mkdir()
    assert cache.find(KEY) is None
    cache.publish(built(), library)
    assert cache.find(KEY) is not None


def test_publishing_over_a_damaged_entry_replaces_it(tmp_path: Path, library: Path) -> None:
    cache = BuildCache(tmp_path / "cache")
    os.truncate(str(cache.publish(built(), library).library_path), 10)
    cache.publish(built(), library)
    assert cache.find(KEY) is not None


def test_concurrent_writers_of_the_same_keys_leave_whole_entries(tmp_path: Path, library: Path) -> None:
    writers = [start_writer(tmp_path / "cache", library, 0, 40) for _ in range(3)]
    for writer in writers:
        assert writer.wait(60) == 0
        assert writer.stdout is not None
        writer.stdout.close()
    cache = BuildCache(tmp_path / "cache")
    assert all(cache.find(f"{i:064x}") for i in range(40))
    assert list((tmp_path / "cache" / "tmp").iterdir()) == []


def test_a_working_folder_of_a_process_that_is_gone_goes_at_the_next_start(tmp_path: Path) -> None:
    BuildCache(tmp_path / "cache")
    folder = tmp_path / "cache" / "tmp"
    begin = "import sys; from pathlib import Path; from ridgeline.tools.machine.held_folders import hold_folder"
    command = [sys.executable, "-c", f"{begin}; hold_folder(Path(sys.argv[1]), 'batch')", str(folder)]
    subprocess.run(command, check=True, timeout=60)
    held = hold_folder(folder, "batch")
    (folder / "batch-of-an-older-version").mkdir()
    assert len(list(folder.iterdir())) == 3
    BuildCache(tmp_path / "cache")
    assert {entry.name for entry in folder.iterdir()} == {held.path.name, "batch-of-an-older-version"}
    held.remove()


def test_a_writer_killed_at_any_instant_leaves_whole_entries_or_none(tmp_path: Path, library: Path) -> None:
    cache = BuildCache(tmp_path / "cache")
    rng, attempts = random.Random(7), itertools.count()
    while (attempt := next(attempts)) < 4 or not entries_of(cache):  # a busy machine may have published none yet
        writer = start_writer(cache.root, library, 1000 * attempt, 1000)
        assert writer.stdout is not None
        writer.stdout.readline()
        time.sleep(rng.uniform(0.005, 0.05))
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
    for entry in entries_of(cache):
        assert {file.name for file in entry.iterdir()} == {"kernel.so", "build.json"}
        assert cache.find(entry.name) is not None


def entries_of(cache: BuildCache) -> list[Path]:
    return list((cache.root / "builds").glob("??/*"))


def published(root: Path, library: Path, keys: Sequence[str], **limits: float) -> None:
    """Publish the keys for a process that is gone afterwards, each used later than the one before."""
    cache = BuildCache(root, **limits)  # type: ignore[arg-type]
    for age, key in enumerate(keys):
        entry = Path(str(cache.publish(built(key), library).library_path)).parent
        os.utime(entry / "build.json", (0, 1000 + age))


def size_of(root: Path) -> int:
    return sum(file.stat().st_size for file in (root / "builds").rglob("*") if file.is_file())


def test_every_publication_keeps_the_limit_and_the_least_recently_used_entries_go_first(
    tmp_path: Path, library: Path
) -> None:
    root, keys = tmp_path / "cache", [f"{i:064x}" for i in range(5)]
    published(root, library, keys[:4])
    limit = size_of(root) + 100
    assert BuildCache(root).find(keys[0]) is not None  # used just now
    published(root, library, keys[4:], limit_bytes=limit)
    assert size_of(root) <= limit
    assert [BuildCache(root).find(key) is not None for key in keys] == [True, False, False, True, True]
    assert BuildCache(root).use().size_bytes == size_of(root) == int((root / "size").read_text())


def test_a_build_for_which_there_is_no_inode_is_told_with_a_remedy(
    tmp_path: Path, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_inodes(*_: object) -> Build:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(BuildCache, "_publish", without_inodes)
    with pytest.raises(
        StorageError, match=r"no space left on device; free some space \(ridgeline clean --cache\) or set"
    ):
        BuildCache(tmp_path / "cache").publish(built(), library)


def test_the_size_is_kept_beside_the_entries_and_the_folder_read_only_where_the_limit_is_passed(
    tmp_path: Path, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, keys = tmp_path / "cache", [f"{i:064x}" for i in range(4)]
    published(root, library, keys[:1])
    looks = list[int]()
    entries = BuildCache._entries
    monkeypatch.setattr(BuildCache, "_entries", lambda cache: looks.append(1) or entries(cache))
    published(root, library, keys[1:3])
    assert looks == []
    assert int((root / "size").read_text()) == size_of(root)
    (root / "size").write_text("no number")
    published(root, library, keys[3:])
    assert looks == [1]
    assert int((root / "size").read_text()) == size_of(root)


def test_what_a_running_process_uses_stays_and_what_was_used_lately_does_not(tmp_path: Path, library: Path) -> None:
    root, keys = tmp_path / "cache", [f"{i:064x}" for i in range(4)]
    running = BuildCache(root)
    running.publish(built(keys[0]), library)
    published(root, library, keys[1:2])
    assert running.find(keys[1]) is not None
    BuildCache(root).publish(built(keys[2]), library)  # used within the last hour, by nobody now
    published(root, library, keys[3:], limit_bytes=1)
    assert [running.find(key) is not None for key in keys] == [True, True, False, True]
    del running
    assert leased_keys(root / "leases") == set()
    assert list((root / "leases").iterdir()) == []


async def test_a_lease_that_ends_within_an_event_loop_is_left_to_the_next_opening(tmp_path: Path) -> None:
    leases = Lease(tmp_path / "leases")
    leases.add("a" * 64)
    del leases
    assert len(list((tmp_path / "leases").iterdir())) == 1
    assert leased_keys(tmp_path / "leases") == set()
    assert list((tmp_path / "leases").iterdir()) == []


def test_a_process_removes_at_its_end_the_lease_that_ended_within_its_event_loop(tmp_path: Path) -> None:
    code = (
        "import asyncio, sys\nfrom pathlib import Path\nfrom ridgeline.tools.build.cache_lease import Lease\n"
        "async def judged() -> None:\n    Lease(Path(sys.argv[1])).add('a' * 64)\n"
        "asyncio.run(judged())\nprint(len(list(Path(sys.argv[1]).iterdir())))"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "leases")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "1\n"
    assert list((tmp_path / "leases").iterdir()) == []


def test_a_process_that_ends_leaves_no_lease_and_one_that_was_killed_until_the_cache_is_opened(
    tmp_path: Path, library: Path
) -> None:
    leases = tmp_path / "cache" / "leases"
    with start_writer(tmp_path / "cache", library, 0, 2) as ended:
        assert ended.wait(60) == 0
    assert list(leases.iterdir()) == []
    code = f"{WRITER}import os\nif os.fork() == 0: sys.exit()\nos.wait()\nos.kill(os.getpid(), 9)\n"
    words = [str(tmp_path / "cache"), str(library), "0", "2"]
    with subprocess.Popen([sys.executable, "-c", code, *words], stdout=subprocess.DEVNULL) as killed:
        assert killed.wait(60) == -9
    for name, age_s in (("1-a.new", 0.0), ("2-b.new", 3600.0)):  # killed before it was locked, or about to be
        (leases / name).touch()
        os.utime(leases / name, (time.time() - age_s,) * 2)
    assert len(list(leases.iterdir())) == 3, "a child that a process forked leaves the lease to it"
    running = BuildCache(tmp_path / "cache")
    running.find(f"{0:064x}")
    assert len(list(leases.iterdir())) == 2
    other = BuildCache(tmp_path / "cache")
    assert leased_keys(leases) == {f"{0:064x}"}
    del running, other
    assert [lease.name for lease in leases.iterdir()] == ["1-a.new"]


def test_the_entry_that_is_published_stays_whatever_its_size(tmp_path: Path, library: Path) -> None:
    cache = BuildCache(tmp_path / "cache", limit_bytes=1)
    cache.publish(built(), library)
    assert cache.find(KEY) is not None


def test_what_is_too_large_or_no_file_is_not_fit(tmp_path: Path) -> None:
    with (tmp_path / "large.so").open("wb") as file:
        file.truncate(cache.LARGEST_LIBRARY_BYTES + (1 << 20))
    (tmp_path / "link.so").symlink_to(tmp_path / "large.so")
    (tmp_path / "small.so").write_bytes(b"x")
    assert unfit(tmp_path / "large.so") == "it has 65 MiB, the limit is 64 MiB"
    assert (unfit(tmp_path / "link.so"), unfit(tmp_path / "absent.so")) == ("it is no ordinary file", "there is none")
    assert unfit(tmp_path / "small.so") == ""


def test_a_library_that_is_a_link_is_not_taken(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("key")
    link = tmp_path / "kernel.so"
    link.symlink_to(secret)
    with pytest.raises(StorageError, match="not an ordinary file"):
        BuildCache(tmp_path / "cache").publish(built(), link)


def test_clear_removes_what_is_not_in_use_and_says_how_much_stayed(tmp_path: Path, library: Path) -> None:
    published(tmp_path / "cache", library, [KEY])
    cache = BuildCache(tmp_path / "cache")
    cache.publish(built("f" * 64), library)
    cleared = cache.clear()
    assert (cleared.removed.entries, cleared.in_use.entries) == (1, 1)
    assert cleared.removed.size_bytes > 0
    assert cache.use() == cleared.in_use
    assert cache.find("f" * 64) is not None


def test_a_cache_that_cannot_take_builds_is_told_before_one_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_writable(tmp_path / "new" / "cache")
    assert list((tmp_path / "new" / "cache").iterdir()) == []
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match=r"build cache .*file/cache: not a directory; set RIDGELINE_CACHE_DIR to a"):
        check_writable(tmp_path / "file" / "cache")
    monkeypatch.setattr(cache, "LEAST_FREE_BYTES", 1 << 62)
    with pytest.raises(StorageError, match=r"only \d+ MiB free; free some space \(ridgeline clean --cache\) or set"):
        check_writable(tmp_path)


def test_a_limit_of_file_size_is_told_as_what_no_other_folder_helps_against(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
        with pytest.raises(StorageError) as told:
            check_writable(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert str(told.value) == f"build cache {tmp_path}: file too large; raise the limit of file size (`ulimit -f`)"


def test_what_is_no_entry_stops_neither_a_build_nor_clearing(tmp_path: Path, library: Path) -> None:
    root = tmp_path / "cache"
    cache = BuildCache(root, limit_bytes=0, in_use_s=0)
    (root / "builds" / "zz").mkdir(parents=True)
    (root / "builds" / "zz" / "notes.txt").write_text("mine")
    (root / "builds" / "zz" / "loop").symlink_to("loop")
    (root / "tmp" / "loop").symlink_to("loop")
    (root / "builds" / KEY[:2]).write_text("no folder")
    cache.publish(built(), library)
    del cache
    published(root, library, ["e" * 64], limit_bytes=0)
    cache = BuildCache(root)
    assert cache.find(KEY) is None, "evicted"
    assert cache.find("e" * 64) is not None
    entry = Path(str(cache.publish(built(), library).library_path)).parent
    (entry / "loop").symlink_to("loop")
    os.mkfifo(entry / "pipe")
    assert cache.find(KEY) is not None
    assert cache.use().entries == 2
    del cache
    os.utime(entry / "build.json", (0, 1000))
    assert BuildCache(root).clear().removed.entries == 1
    assert (root / "builds" / "zz" / "notes.txt").read_text() == "mine"


def test_a_library_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "kernel.so")
    with pytest.raises(StorageError, match="not an ordinary file"):
        BuildCache(tmp_path / "cache").publish(built(), tmp_path / "kernel.so")
