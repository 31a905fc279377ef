"""What every process of Ridgeline says of a fault: the form of a line in run.log, and whose a system's error is."""

from __future__ import annotations

import errno

LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"

_SPACE_AND_RIGHTS = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EMFILE, errno.ENFILE}
)
_NAMED_PATHS = frozenset({errno.EPERM, errno.ENOENT, errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP})


def is_users_to_mend(error: OSError, *, names_paths: bool) -> bool:
    """Say whether an operating system's error is one of space or rights, or of a path when users name the paths.

    A process whose paths are all its own passes `names_paths=False`: a file missing there is a fault of ours.
    """
    return error.errno in (_SPACE_AND_RIGHTS | _NAMED_PATHS if names_paths else _SPACE_AND_RIGHTS)
