"""A recording as one file that travels: JSON lines, the first of which says what the file is.

Each line is an object with `what`; see schemas/replay.json. A whole run folder, and an exported archive, are read too.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ridgeline.checkpoints.archive import FILE_NAME, Archive
from ridgeline.checkpoints.recording.check import MOST_WHOLE, check_record, check_values
from ridgeline.checkpoints.recording.recording import RecordedCall, RecordedRun, Recording, record
from ridgeline.checkpoints.steering import Steer
from ridgeline.checkpoints.storage.database_kind import is_database
from ridgeline.checkpoints.storage.errors import storage_errors
from ridgeline.checkpoints.storage.own_files import replace_file
from ridgeline.checkpoints.storage.strict_json import finite
from ridgeline.tools.errors import RunError
from ridgeline.tools.records.codec import Record
from ridgeline.tools.records.recorded import RecordedMeasurement
from ridgeline.tools.records.search import Candidate

SCHEMA_VERSION = 1
MOST_BYTES = 2**30
"""A search of a thousand kernels has some 50 MB."""
MOST_LINE_BYTES = 2**26
"""A kernel's source, an answer or a build's log has some 100 KB at most; a reference with its blocks a few MB."""
_MOST_DIGITS = 20
"""Python itself refuses to read a number of thousands, in words that name no number."""
FORMAT = "ridgeline-replay"
_BEGINS = f'{{"format": "{FORMAT}"'.encode()
KEPT_NAME = "recording.jsonl"
"""What a replay replays, in its own run folder: a folder that is moved goes on without the recorded run or file."""
_KINDS: Mapping[str, type[Record]] = {
    "run": RecordedRun,
    "call": RecordedCall,
    "measurement": RecordedMeasurement,
    "given": Candidate,
    "told": Steer,
}
"""The record of each kind of line."""


def read_recording(path: Path) -> Recording:
    """Return the recording that a replay file, a run folder or an exported archive holds.

    Raises:
        RunError: there is none, it is damaged or of a newer schema, or its search did not come far enough.
    """
    if (path / FILE_NAME).is_file() or (path.is_file() and is_database(path)):
        with Archive.open_read_only(path) as archive:
            recording = record(archive)
        for each in (recording.run, *recording.calls, *recording.measurements, *recording.given, *recording.told):
            with _damage(f"{path}: the record of {_name_of(each)}"):
                check_record(each)
        return recording
    if not path.is_file():
        raise RunError(
            f"{path}: no such recording; name a run's folder, or a file that ridgeline export --replay wrote"
        )
    return _recording(path, [_read(path, number, line) for number, line in _lines_of(path) if line.strip()])


def _lines_of(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file and their numbers, from 1; RunError for a file or a line beyond all recordings."""
    with storage_errors(path), path.open("rb") as file:
        if (size := os.fstat(file.fileno()).st_size) > MOST_BYTES:
            raise RunError(f"{path}: has {size:,} bytes, a recording {MOST_BYTES:,} at most; name another file")
        number = 0
        while line := file.readline(MOST_LINE_BYTES + 1):
            number += 1
            if len(line) > MOST_LINE_BYTES:
                raise RunError(f"{path}: line {number}: is no recording's: longer than {MOST_LINE_BYTES:,} bytes")
            yield number, line


@contextmanager
def _damage(where: str) -> Iterator[None]:
    """Turn what a spoiled record raises inside the block into one line."""
    try:
        yield
    except (ArithmeticError, AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise RunError(f"{where}: is damaged ({' '.join(str(error).split())[:120]}); export the run again") from None


def _name_of(record: Record) -> str:
    """Return what a record of an archive is of."""
    named = getattr(record, "call_id", "") or getattr(record, "id", "") or getattr(record, "source_sha256", "")
    return str(named)[:40] or "its search"


def write_recording(run: Path, file: Path) -> Recording:
    """Write the recording of a run to `file`, as a whole or not at all, and return it.

    Raises:
        RunError: the run holds nothing to replay, or `file` holds a database.
    """
    recording = read_recording(run)
    if file.is_file() and is_database(file):
        raise RunError(f"{file}: holds a database, not a recording; name another file")
    replace_file(file, _text(recording), is_users=True)
    return recording


def keep_recording(recording: Recording, run_dir: Path, *, replaces: bool) -> None:
    """Put what a run replays into its folder; StorageError where it cannot be written.

    What is there already stays, unless this one `replaces` it: a new search's folder may hold what was left by one that was
    killed before it had begun.
    """
    if replaces or not (run_dir / KEPT_NAME).is_file():
        replace_file(run_dir / KEPT_NAME, _text(recording))


def kept_recording(run_dir: Path) -> Path | None:
    """Return the file of what a run replays; None in the folder of a search that an earlier version began."""
    return run_dir / KEPT_NAME if (run_dir / KEPT_NAME).is_file() else None


def _text(recording: Recording) -> str:
    lines = (json.dumps(finite(line), ensure_ascii=False, allow_nan=False) for line in _lines(recording))
    return "".join(f"{line}\n" for line in lines)


def _lines(recording: Recording) -> Iterable[dict[str, Any]]:
    yield {"format": FORMAT, "schema_version": SCHEMA_VERSION, "what": "run", "record": recording.run.to_json()}
    parts: dict[str, tuple[Record, ...]] = {
        "call": recording.calls,
        "measurement": recording.measurements,
        "given": recording.given,
        "told": recording.told,
    }
    for what, records in parts.items():
        for each in records:
            yield {"what": what, "record": each.to_json()}


def _read(path: Path, number: int, line: bytes) -> tuple[str, Record]:
    """Return the kind and the record of one line."""
    where = f"{path}: line {number}"
    try:
        data = json.loads(line.decode(), parse_int=_whole)
    except (ValueError, RecursionError):
        data = None
    if data is None and (number > 1 or line.startswith(_BEGINS)):
        how = "is damaged" if line.endswith(b"\n") else "is cut off"
        raise RunError(f"{where}: {how}; export the run again")
    if not isinstance(data, dict) or data.get("what") not in _KINDS or (number == 1) != (data.get("format") == FORMAT):
        raise RunError(f"{where}: is no recording's; name a run's folder, or a file of ridgeline export --replay")
    if number == 1 and (data.get("schema_version") != SCHEMA_VERSION or data["schema_version"] is True):
        raise RunError(
            f"{where}: has schema {data.get('schema_version')}, this Ridgeline reads {SCHEMA_VERSION}; "
            "upgrade Ridgeline to read it"
        )
    what = str(data["what"])
    with _damage(where):
        check_values(data)
        found = _KINDS[what].from_json(data["record"])
        check_record(found)
    return what, found


def _whole(digits: str) -> int:
    """Return a whole number, of one with more digits than are ever stored the first that is refused for its size."""
    return int(digits) if len(digits) <= _MOST_DIGITS else MOST_WHOLE + 1


def _recording(path: Path, lines: list[tuple[str, Record]]) -> Recording:
    runs = [each for _, each in lines if isinstance(each, RecordedRun)]
    if len(runs) != 1:
        raise RunError(f"{path}: is no recording; name a run's folder, or a file of ridgeline export --replay")
    return Recording(
        run=runs[0],
        calls=tuple(each for _, each in lines if isinstance(each, RecordedCall)),
        measurements=tuple(each for _, each in lines if isinstance(each, RecordedMeasurement)),
        given=tuple(each for _, each in lines if isinstance(each, Candidate)),
        told=tuple(each for _, each in lines if isinstance(each, Steer)),
    )
