from __future__ import annotations

import shutil
import sys
from pathlib import Path

from ridgeline.tools.machine.programs import is_whole_program


def test_a_program_is_whole_or_was_cut(tmp_path: Path) -> None:
    program = Path(shutil.copy(Path(sys.executable).resolve(), tmp_path / "program"))
    assert is_whole_program(program)
    content = program.read_bytes()
    for cut in (content[:-1], content[:4096], content[:20], b"", b"#!/bin/sh\n" * 20):
        program.write_bytes(cut)
        assert not is_whole_program(program)
    assert not is_whole_program(tmp_path)
    assert not is_whole_program(tmp_path / "absent")
