"""Run folders: finding, locking and checking them."""

from __future__ import annotations

import difflib
import fcntl
import os
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from ridgeline.checkpoints.archive import FILE_NAME, Archive
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.checkpoints.runs.own_locks import held_here, is_held_here
from ridgeline.checkpoints.storage.database_kind import kind_of
from ridgeline.checkpoints.storage.errors import storage_errors
from ridgeline.checkpoints.storage.own_files import MAILBOX, refuse_links
from ridgeline.tools.errors import RunError, StorageError
from ridgeline.tools.machine.whole_files import remove_leftovers
from ridgeline.tools.records.vocabulary import RunState
from ridgeline.tools.wording import option, said_by

LOCK_NAME = ".lock"
LEFT_BY_A_START = {LOCK_NAME, "run.log"}
"""Names in the folder of a search that was ended before it stored anything."""
UNFINISHED = {None, RunState.RUNNING, RunState.STOPPED, RunState.WAITING}
INTERRUPTED = "interrupted, resumable"
"""State of a run whose process ended without a word, or by an error; no record has it."""
RESUMABLE = UNFINISHED | {RunState.BUDGET}
_LONGEST_LOOK_S = 0.2
"""Whoever looks whether a folder is held (`is_locked`) holds it for an instant."""


@contextmanager
def lock_run(run_dir: Path) -> Iterator[None]:
    """Hold a run folder for this process until the block ends; the folder is made when missing.

    The kernel drops the lock when the process dies, so a stale lock cannot exist. Not covered: network file systems
    without flock. What a killed process left half-written in the folder is removed.

    Raises:
        RunError: another process, which the message names, holds the folder; or a link in the folder leads out of it.
    """
    refuse_links(run_dir)
    descriptor = _open_lock(run_dir)
    try:
        _take(descriptor, run_dir)
        with suppress(OSError):  # a full disk: nothing but the message to another process needs the number
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        for folder in (run_dir, run_dir / MAILBOX):
            remove_leftovers(folder)
        with held_here(descriptor):
            yield
    finally:
        os.close(descriptor)


def refuse_held(run_dir: Path) -> None:
    """Refuse a folder that another process holds now; `lock_run` is what keeps it out.

    Raises:
        RunError: another process, which the message names, holds the folder.
    """
    if is_locked(run_dir):
        raise _held(run_dir, (run_dir / LOCK_NAME).read_text(errors="replace"))


def _held(run_dir: Path, holder: str) -> RunError:
    holder, is_own = holder[:32].strip() or "unknown", is_held_here(run_dir / LOCK_NAME)
    # a search may be one of many things that its process does, as in a host: an agent that is told to kill it, may
    is_search = (run_dir / FILE_NAME).is_file()
    remedy = f"ridgeline stop {shlex.quote(str(run_dir))}" if is_search else "" if is_own else f"kill {holder}"
    who = "another search of this process uses it" if is_own else f"in use by process {holder}"
    return RunError(f"{run_dir}: {who}; wait for it{f', or stop it with: {remedy}' if remedy else ''}")


def _open_lock(run_dir: Path) -> int:
    with storage_errors(run_dir):
        _make(run_dir)
        if (run_dir / LOCK_NAME).is_dir():
            raise RunError(f"{run_dir / LOCK_NAME}: is a directory in the place of the run's lock; remove it")
        return os.open(run_dir / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)


def _make(run_dir: Path) -> None:
    try:
        run_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"{run_dir}: cannot be made ({said_by(error)}); choose another {option('run_dir')}"
        ) from error


def _take(descriptor: int, run_dir: Path) -> None:
    until_s = time.monotonic() + _LONGEST_LOOK_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if time.monotonic() > until_s:
                raise _held(run_dir, os.pread(descriptor, 32, 0).decode(errors="replace")) from None
        time.sleep(_LONGEST_LOOK_S / 20)
    if not os.path.samestat(os.fstat(descriptor), os.stat(run_dir / LOCK_NAME)):
        raise RunError(f"{run_dir}: was removed just now by another process; try again")


def is_locked(run_dir: Path) -> bool:
    """Return whether a process holds this run folder now."""
    if not (run_dir / LOCK_NAME).exists():
        return False
    with storage_errors(run_dir):
        descriptor = os.open(run_dir / LOCK_NAME, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def stored_state(run_dir: Path, *further: str) -> tuple[object, ...]:
    """Return what differs once a process stored something in a run, or took or left its folder; cheap enough to poll.

    `further` names files of the folder whose changes count too.
    """
    files = []
    for name in (FILE_NAME, f"{FILE_NAME}-wal", *further):
        with suppress(OSError):  # a search that ends takes its -wal away
            facts = (run_dir / name).stat()
            files.append((name, facts.st_mtime_ns, facts.st_size, facts.st_ino))
    return (*files, is_locked(run_dir))


def state_now(run_dir: Path, run: RunRecord) -> str:
    """Return a run's state in words: INTERRUPTED when the record says `running` and no process holds the folder.

    A search that is not over runs while a process holds its folder: one that is resumed stores that only once its engine
    is open. Nobody holds a folder without a lock, as a copy of `RUN/*` is. An exported archive keeps its state.
    """
    state = run.state or RunState.RUNNING
    if run.exported_at is not None or state not in RESUMABLE:
        return state
    if is_locked(run_dir):
        return RunState.RUNNING
    if state is not RunState.RUNNING:
        return state
    again = read_run(run_dir)  # what held the folder may have ended well since the record was read
    return INTERRUPTED if again is None or again.state in (None, state) else again.state


def check_graph_version(archive: Archive, version: int | str) -> None:
    """Store the graph's version in a new run; refuse a run of another version, as `refuse_other_version` does."""
    refuse_other_version(archive, version)
    if archive.run().graph_version is None:
        archive.save_run(RunRecord(graph_version=version))


def refuse_other_version(archive: Archive, version: int | str) -> None:
    """Refuse a run that another version of the graph began; a run that has not begun yet has none.

    Node names and state are an on-disk format: a graph of another version would end such a run without doing its work.

    Raises:
        RunError: the versions differ.
    """
    made_by = archive.run().graph_version
    if made_by is not None and str(made_by) != str(version):
        raise RunError(
            f"{archive.path.parent}: begun by graph version {made_by}, this Ridgeline has {version}; "
            "continue it with the Ridgeline that began it, or start a new run"
        )


def begun_record(run_dir: Path, version: int | str) -> RunRecord:
    """Return the record of a search that has begun, for whoever tells it something.

    Raises:
        RunError: it has not begun yet, or never will, or another version of the graph began it.
    """
    with Archive.open_read_only(run_dir) as archive:
        refuse_other_version(archive, version)
        record = archive.run()
    if not record.has_begun and not is_locked(run_dir):
        raise ended_unbegun(run_dir)
    if not record.has_begun:
        raise RunError(f"{run_dir}: its search has not begun yet; try again in a moment")
    return record


def read_run(run_dir: Path) -> RunRecord | None:
    """Return the record of a run folder's search; None without a readable archive of one, or where none will begin in it."""
    record = _record_in(run_dir)
    return None if record is None or is_unbegun(run_dir, record) else record


def _record_in(run_dir: Path) -> RunRecord | None:
    if not (run_dir / FILE_NAME).is_file():
        return None
    with suppress(RunError), Archive.open_read_only(run_dir) as archive:  # damaged, or a merged one of several searches
        return archive.run()
    return None


def is_unbegun(run_dir: Path, record: RunRecord | None = None) -> bool:
    """Say whether a search was ended between the making of its archive and what it stores of itself."""
    record = record or _record_in(run_dir)
    return record is not None and record.is_blank and not is_locked(run_dir)


def ended_unbegun(run_dir: str | Path) -> RunError:
    """Return the error of a folder whose search was ended before it stored what it searches for."""
    return RunError(f"{run_dir}: its search was ended before anything was stored; start it again")


def begun(run_dir: Path) -> Path:
    """Return a run folder in which a search has begun, or is about to.

    Raises:
        RunError: its search was ended before that.
    """
    if is_unbegun(run_dir):
        raise ended_unbegun(run_dir)
    return run_dir


def run_folders(runs_dir: Path) -> list[Path]:
    """Return the run folders below `runs_dir`, oldest first by the creation of their archive's first entry."""
    if not runs_dir.is_dir():
        return []
    found = [child for child in runs_dir.iterdir() if (child / FILE_NAME).is_file()]
    return sorted(found, key=lambda run_dir: (_began_at(run_dir), run_dir.name))


def _began_at(run_dir: Path) -> str:
    with suppress(StorageError), Archive.open_read_only(run_dir) as archive:
        row = archive.database.first("SELECT MIN(stored_at) AS began_at FROM runs")
        return str(row["began_at"] or "") if row else ""
    return ""


def newest_unfinished(runs_dir: Path, problem_name: str) -> Path | None:
    """Return this problem's newest run that can be resumed (stopped, parked, killed, or out of budget) and is not held."""
    return _newest(runs_dir, problem_name, lambda run_dir, known: not is_locked(run_dir) and known.state in RESUMABLE)


def newest_held(runs_dir: Path, problem_name: str) -> Path | None:
    """Return this problem's newest run that a process holds now."""
    return _newest(runs_dir, problem_name, lambda run_dir, _: is_locked(run_dir))


def _newest(runs_dir: Path, problem_name: str, is_wanted: Callable[[Path, RunRecord], bool]) -> Path | None:
    for run_dir in reversed(run_folders(runs_dir)):
        known = read_run(run_dir)
        if known is not None and known.problem_name == problem_name and is_wanted(run_dir, known):
            return run_dir
    return None


def find_run(runs_dir: Path, id_or_path: str | Path) -> Path:
    """Return the run folder that a user names by path, by the beginning of its name, or by search id.

    Raises:
        RunError: none or several match; the message names near ones.
    """
    path, wanted = Path(id_or_path), str(id_or_path)
    is_path = (path / FILE_NAME).is_file()
    return begun(path) if is_path else _the_one_run(matching_runs(runs_dir, wanted), runs_dir, wanted, path)


def find_running(runs_dir: Path, id_or_path: str | Path) -> tuple[Path, int]:
    """Return the run folder that a user who speaks to a search names, and how many runs the name means.

    Of several it is the one that a process holds now.

    Raises:
        RunError: as `find_run` does; where several match, none of them is held, or several.
    """
    path, wanted = Path(id_or_path), str(id_or_path)
    if (path / FILE_NAME).is_file():
        return begun(path), 0
    matches = matching_runs(runs_dir, wanted)
    held = [run for run in matches if is_locked(run)] if len(matches) > 1 else []
    return (held[0] if len(held) == 1 else _the_one_run(matches, runs_dir, wanted, path)), len(matches)


def run_named(runs_dir: Path, name: str) -> Path:
    """Return the run folder that a name means in `runs_dir`, its beginning or a search id; nothing else is looked at.

    Raises:
        RunError: as `find_run` does.
    """
    return _the_one_run(matching_runs(runs_dir, name), runs_dir, name, runs_dir / name)


def _the_one_run(matches: Sequence[Path], runs_dir: Path, wanted: str, path: Path) -> Path:
    """Return the run that a text means which is the path of none, of those that `matching_runs` finds."""
    if len(matches) == 1:
        return begun(matches[0])
    if matches:
        told = ", ".join(f"{f.name} ({'running' if is_locked(f) else 'not running'})" for f in matches)
        raise RunError(f"{wanted}: several runs match: {told}; name one in full")
    if os.path.lexists(path / FILE_NAME):
        raise RunError(f"{wanted}: its {FILE_NAME} is not a file, so it cannot go on; restore it or start a new run")
    if (path / LOCK_NAME).exists():
        if set(os.listdir(path)) <= LEFT_BY_A_START and not is_locked(path):
            raise ended_unbegun(wanted)
        raise RunError(f"{wanted}: its {FILE_NAME} is gone, so it cannot go on; restore it or start a new run")
    folders = run_folders(runs_dir)
    near = difflib.get_close_matches(wanted, [f.name for f in folders], n=3, cutoff=0.4)
    raise RunError(f"{wanted}: {_what_it_is(path)}{_where_runs_are(runs_dir, len(folders), near)}")


def matching_runs(runs_dir: Path, wanted: str) -> list[Path]:
    """Return the run folders that a name, the beginning of names, or a search id means, oldest first.

    Where a search has begun in one of them, those whose search was ended before it began are not meant.
    """
    folders = run_folders(runs_dir)
    matches = [f for f in folders if f.name == wanted] or [f for f in folders if wanted and f.name.startswith(wanted)]
    if len(matches) > 1:
        return [f for f in matches if not is_unbegun(f)] or matches
    return matches or [f for f in folders if (found := read_run(f)) and found.search_id == wanted]


def _what_it_is(path: Path) -> str:
    """Return words for a path that is no run folder."""
    if path.is_dir():
        return "a folder that holds no run"
    if path.is_file():
        kind = kind_of(path)
        return f"a Ridgeline {kind}, not a run's folder" if kind else "a file, not a run's folder"
    return "no such run"


def _where_runs_are(runs_dir: Path, count: int, near: list[str]) -> str:
    if near:
        return f"; did you mean {' or '.join(near)}?"
    if count == 0:
        return f"; give the folder of a run that ridgeline run began (there is none in {runs_dir})"
    return f"; give a run's folder, its name or its search id ({runs_dir} holds {count})"
