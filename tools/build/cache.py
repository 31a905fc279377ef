"""The content-addressed build cache: key -> shared object and its Build record.

Each entry is one folder, published by one rename: concurrent writers and a `kill -9` at any instant leave a whole entry
or none. An entry holds its library's hash, so an entry that a power cut or a bad disk damaged is dropped and built
again, and no publication waits for an fsync.

Every publication first makes room. The cache's size is kept in a file, which never counts too little: an entry is added
to it before it is there. Only when the sum passes the limit is the folder read and the sum corrected.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import shutil
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from ridgeline.tools.build.cache_lease import Lease, leased_keys
from ridgeline.tools.errors import StorageError
from ridgeline.tools.machine.held_folders import hold_folder, sweep_held_folders
from ridgeline.tools.machine.kept_records import open_ordinary, read_kept
from ridgeline.tools.machine.logs import logger_of
from ridgeline.tools.machine.places import why_unwritable
from ridgeline.tools.machine.removal import remove_tree
from ridgeline.tools.records.codec import Record
from ridgeline.tools.records.results import Build
from ridgeline.tools.wording import remedy_for, said_by

logger = logger_of(__name__)

DEFAULT_LIMIT_BYTES = 2 * 2**30
UNREADABLE = "it cannot be read: leave its mode as the compiler sets it"
LARGEST_LIBRARY_BYTES = 64 * 2**20
LEAST_FREE_BYTES = 64 * 2**20  # a round of extension builds; torch.compile's cache lies there too
_ELSEWHERE = "set RIDGELINE_CACHE_DIR to a folder of yours"
MAKE_ROOM = f"free some space (ridgeline clean --cache) or {_ELSEWHERE}"
_FULL = {os.strerror(number).lower() for number in (errno.ENOSPC, errno.EDQUOT)}
IN_USE_S = 3600.0  # an entry used this recently may be wanted again soon: `clear` leaves it
STALE_S = 24 * 3600.0  # a temporary folder older than this is of a process that was killed, also where no lock tells
EVICTED_DOWN_TO = 0.9  # of the limit: so that not every publication reads the whole folder
LIBRARY = "kernel.so"
_LONGEST_SIZE = 20
RECORD = "build.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheUse:
    """Number and size of entries in the cache."""

    entries: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleared:
    """The entries that `clear` removed, and those that it left: used within the last hour, or by a running process."""

    removed: CacheUse
    in_use: CacheUse


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry(Record):
    """The content of an entry's build.json."""

    build: Build
    library_sha256: str


class _KeptSize:
    """The size of all entries as it is kept in a file."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def read(self) -> int | None:
        """Return the size, None where it is not known."""
        text = self._file.read(_LONGEST_SIZE)
        return int(text) if text.isdecimal() else None

    def write(self, size_bytes: int) -> None:
        self._file.seek(0)
        self._file.truncate()
        self._file.write(str(size_bytes))


def check_writable(folder: Path) -> None:
    """Make the cache's folder and check that builds can be kept in it.

    Raises:
        StorageError: the folder is read-only or nearly full; one line says so.
    """
    if why := why_unwritable(folder):
        raise StorageError(f"build cache {folder}: {why}; {remedy_for_cache(why)}")
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        raise no_storage(folder, error) from error
    if free < LEAST_FREE_BYTES:
        raise StorageError(f"build cache {folder}: only {free >> 20} MiB free; {MAKE_ROOM}")


def remedy_for_cache(why: str) -> str:
    """Return what to do about a cache that cannot be written: to free space helps a full disk alone."""
    return MAKE_ROOM if why in _FULL else remedy_for(why, _ELSEWHERE)


def no_storage(folder: Path, error: OSError) -> StorageError:
    """Return the error of a cache's folder that refused to be written, with a remedy."""
    why = said_by(error)
    return StorageError(f"build cache {folder}: {why}; {remedy_for_cache(why)}")


class BuildCache:
    """Finished builds under `root`, at most `limit_bytes` of them: the least recently used goes first.

    What a running process has used stays, however much it is; one entry larger than the limit is kept too.
    """

    def __init__(self, root: Path, *, limit_bytes: int = DEFAULT_LIMIT_BYTES, in_use_s: float = IN_USE_S) -> None:
        self.root = root
        self._limit_bytes = limit_bytes
        self._in_use_s = in_use_s
        self._lease = Lease(root / "leases")
        try:
            self._temporary.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise no_storage(root, error) from error
        sweep_held_folders(self._temporary)
        with contextlib.suppress(OSError):
            leased_keys(root / "leases")  # removes those of processes that are gone

    @property
    def _temporary(self) -> Path:
        return self.root / "tmp"

    def find(self, key: str) -> Build | None:
        """Return the cached build of this key, or None; a damaged entry is removed and counts as none."""
        entry = self._entry(key)
        if not entry.is_dir():
            return None
        self._lease.add(key)
        build = self._read(entry, key)
        if build is None:
            logger.warning("build cache: entry %s is damaged: building it again", key[:12])
            self._remove(entry)
            return None
        _touch(entry / RECORD)
        return build

    def publish(self, build: Build, library: Path) -> Build:
        """Copy `library` into the cache and return `build` with the copy's path.

        When another process published the same key first, its entry is kept and returned.

        Raises:
            StorageError: the cache's disk is full or read-only, or `library` is not fit: ask `unfit` first where a
                candidate made it.
        """
        entry = self._entry(build.key)
        self._lease.add(build.key)
        stored = replace(build, library_path=str(entry / LIBRARY))
        try:
            return self._publish(entry, stored, library)
        except OSError as error:
            raise no_storage(self.root, error) from error

    def use(self) -> CacheUse:
        """Return the number of entries and their size."""
        sizes = [size for _, size, _ in self._entries()]
        return CacheUse(entries=len(sizes), size_bytes=sum(sizes))

    def clear(self) -> Cleared:
        """Remove every entry that no running process has used and that was not used within the last hour."""
        newest_removable = time.time() - self._in_use_s
        sizes: dict[bool, list[int]] = {True: [], False: []}
        with self._size() as size:
            leased = leased_keys(self.root / "leases")
            for entry, entry_bytes, used_at in list(self._entries()):
                is_in_use = used_at > newest_removable or entry.name in leased
                sizes[is_in_use].append(entry_bytes)
                if not is_in_use:
                    self._remove(entry)
            size.write(sum(sizes[True]))
        removed, kept = (CacheUse(entries=len(sizes[k]), size_bytes=sum(sizes[k])) for k in (False, True))
        return Cleared(removed=removed, in_use=kept)

    def _make_room(self, key: str, needed: int) -> None:
        """Count an entry that is about to be published, and remove others where the limit would be passed."""
        with self._size() as size:
            known = size.read()
            total = self.use().size_bytes if known is None else known
            if total + needed > self._limit_bytes:
                total = self._evict(key, int(EVICTED_DOWN_TO * self._limit_bytes) - needed)
            size.write(total + needed)

    def _evict(self, key: str, most: int) -> int:
        """Remove the least recently used entries until the others have at most `most` bytes; return how many they have.

        What a running process has used stays, and so does the entry of `key`.
        """
        entries = sorted(self._entries(), key=lambda item: item[2])
        total = sum(entry_bytes for _, entry_bytes, _ in entries)
        kept = leased_keys(self.root / "leases") | {key}
        for entry, entry_bytes, _ in entries:
            if total <= most:
                break
            if entry.name not in kept:
                self._remove(entry)
                total -= entry_bytes
        self._sweep_temporary()
        return total

    @contextlib.contextmanager
    def _size(self) -> Iterator[_KeptSize]:
        """Give the kept sum of all entries, locked against other processes."""
        descriptor = os.open(self.root / "size", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        with open(descriptor, "r+", encoding="ascii", errors="replace") as file:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield _KeptSize(file)

    def _entry(self, key: str) -> Path:
        return self.root / "builds" / key[:2] / key

    def _read(self, entry: Path, key: str) -> Build | None:
        stored = read_kept(entry / RECORD, _Entry)
        if stored is None or stored.build.key != key:
            return None
        try:
            is_whole = stored.library_sha256 == _sha256(entry / LIBRARY)
        except OSError:
            return None
        return replace(stored.build, library_path=str(entry / LIBRARY), cached=True) if is_whole else None

    def _publish(self, entry: Path, build: Build, library: Path) -> Build:
        held = hold_folder(self._temporary, "entry")
        staged = held.path
        staged.chmod(0o755)  # the sandbox's user has to enter it
        try:
            _copy_library(library, staged / LIBRARY)
            record = _Entry(build=build, library_sha256=_sha256(staged / LIBRARY))
            (staged / RECORD).write_text(json.dumps(record.to_json()), encoding="utf-8")
            self._make_room(entry.name, sum(file.lstat().st_size for file in staged.iterdir()))
            _make_folder(entry.parent)
            return self._rename_in(staged, entry, build)
        finally:
            held.remove()

    def _rename_in(self, staged: Path, entry: Path, build: Build) -> Build:
        """Rename `staged` to `entry`; a rename onto a folder that has files fails, so the first writer wins."""
        try:
            os.replace(staged, entry)
        except OSError:
            first = self._read(entry, build.key)
            if first is not None:
                return replace(first, cached=False, build_s=build.build_s)
            self._remove(entry)
            os.replace(staged, entry)
        return build

    def _remove(self, entry: Path) -> None:
        """Take an entry out by one rename before deleting it, so that no reader sees half of it."""
        grave = hold_folder(self._temporary, "grave")
        try:
            os.replace(entry, grave.path / "entry")
        except FileNotFoundError:
            pass  # another process was faster
        finally:
            grave.remove()

    def _entries(self) -> Iterator[tuple[Path, int, float]]:
        """Yield (folder, bytes, last use) of every entry, skipping what vanishes meanwhile and what is none."""
        for entry in (self.root / "builds").glob("??/*"):
            try:
                size = sum(file.lstat().st_size for file in entry.iterdir())
                used_at = (entry / RECORD).lstat().st_mtime
            except OSError:
                used_at, size = 0.0, 0
            if entry.is_dir() and not entry.is_symlink():
                yield entry, size, used_at

    def _sweep_temporary(self) -> None:
        for folder in self._temporary.iterdir():
            try:
                is_stale = folder.lstat().st_mtime < time.time() - STALE_S
            except FileNotFoundError:
                continue
            if is_stale:
                remove_tree(folder)


def _make_folder(shard: Path) -> None:
    """Make a folder of entries in the place of whatever else lies there."""
    if os.path.lexists(shard) and not shard.is_dir():
        shard.unlink(missing_ok=True)
    shard.mkdir(parents=True, exist_ok=True)


def unfit(library: Path) -> str:
    """Return why a file that a candidate left may not be published, "" when it may."""
    try:
        status = library.lstat()
    except OSError:
        return "there is none"
    if not stat.S_ISREG(status.st_mode):
        return "it is no ordinary file"
    if status.st_size > LARGEST_LIBRARY_BYTES:
        return f"it has {status.st_size >> 20} MiB, the limit is {LARGEST_LIBRARY_BYTES >> 20} MiB"
    try:
        with open_ordinary(library):
            return ""
    except OSError:
        return UNREADABLE


def _copy_library(library: Path, to: Path) -> None:
    """Copy what the confined compiler left, following no link that a source could have made it leave."""
    refusal = f"{library.name}: not an ordinary file of at most {LARGEST_LIBRARY_BYTES >> 20} MiB"
    if unfit(library):
        raise StorageError(refusal)
    with contextlib.ExitStack() as stack:
        try:
            source = stack.enter_context(open_ordinary(library))
        except OSError as error:
            raise StorageError(refusal) from error
        shutil.copyfileobj(source, stack.enter_context(to.open("wb")))
    to.chmod(0o755)


def _touch(path: Path) -> None:
    """Mark an entry as used. In a cache that we may not write, an entry ages instead."""
    try:
        os.utime(path)
    except OSError as error:
        logger.debug("build cache: cannot mark %s as used: %s", path, error)


def _sha256(path: Path) -> str:
    with open_ordinary(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
