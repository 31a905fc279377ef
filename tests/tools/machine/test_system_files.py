from __future__ import annotations

from pathlib import Path

from ridgeline.tools.machine.system_files import text_of


def test_a_file_that_cannot_be_read_says_nothing(tmp_path: Path) -> None:
    assert text_of(tmp_path / "missing") == text_of(tmp_path) == text_of(Path(f"/proc/{2**22 + 1}/comm")) == ""


def test_bytes_that_are_no_text_are_read_too(tmp_path: Path) -> None:
    (tmp_path / "comm").write_bytes(b"a\xffb\n")
    assert text_of(tmp_path / "comm") == "a\N{REPLACEMENT CHARACTER}b\n"
