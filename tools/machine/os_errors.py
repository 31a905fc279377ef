"""Errors of the operating system as Ridgeline's, and the form of a line in run.log."""

from __future__ import annotations

import errno

from ridgeline.tools.errors import EngineError, RidgelineError, StorageError

LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"

_SPACE_AND_RIGHTS = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EMFILE, errno.ENFILE}
)
_NAMED_PATHS = frozenset({errno.EPERM, errno.ENOENT, errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP})


def is_users_to_mend(error: OSError, *, names_paths: bool) -> bool:
    """Say whether the user can mend an error: one of space or rights, or of a path where users name the paths.

    A process whose paths are all its own passes `names_paths=False`: a file missing there is an internal error.
    """
    return error.errno in (_SPACE_AND_RIGHTS | _NAMED_PATHS if names_paths else _SPACE_AND_RIGHTS)


def as_told(error: Exception, task: str | None) -> RidgelineError:
    """Return an error as one of Ridgeline's tree, with the file or the task that it was about."""
    if isinstance(error, RidgelineError):
        return error
    if isinstance(error, OSError):
        kind = StorageError if is_users_to_mend(error, names_paths=False) else EngineError
        return kind(f"{error.filename or task}: {error.strerror or error}")
    return EngineError(f"{task}: {type(error).__name__}: {error}")
