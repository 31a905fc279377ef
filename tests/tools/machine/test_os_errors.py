"""Whose an operating system's error is: the user's to mend, or a fault of ours."""

from __future__ import annotations

import errno

import pytest

from ridgeline.tools.machine.os_errors import is_users_to_mend


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES])
def test_space_and_rights_are_the_users_to_mend_everywhere(number: int) -> None:
    assert is_users_to_mend(OSError(number, "no"), names_paths=True)
    assert is_users_to_mend(OSError(number, "no"), names_paths=False)


def test_a_missing_file_is_a_fault_of_ours_where_users_name_no_paths() -> None:
    missing = OSError(errno.ENOENT, "no such file")
    assert is_users_to_mend(missing, names_paths=True)
    assert not is_users_to_mend(missing, names_paths=False)


def test_an_input_output_error_is_nobodys_to_mend() -> None:
    assert not is_users_to_mend(OSError(errno.EIO, "i/o"), names_paths=True)
