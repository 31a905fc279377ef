"""Triton's cache, carried from one folder to another."""

from __future__ import annotations

import json
from pathlib import Path

from ridgeline.tools.runner.worker.triton_cache import pack, unpack


def test_a_carried_cache_names_its_files_where_they_are_now(tmp_path: Path) -> None:
    made, new = tmp_path / "made" / "KEY", tmp_path / "new"
    made.mkdir(parents=True)
    (made / "affine.cubin").write_bytes(b"code")
    (made / "__grp__affine.json").write_text(json.dumps({"child_paths": {"affine.cubin": str(made / "affine.cubin")}}))
    (made / "link").symlink_to("/etc/passwd")
    pack(made.parent, tmp_path / "triton.zip")
    unpack(tmp_path / "triton.zip", new)
    group = json.loads((new / "KEY" / "__grp__affine.json").read_text())
    assert group == {"child_paths": {"affine.cubin": str(new / "KEY" / "affine.cubin")}}
    assert (new / "KEY" / "affine.cubin").read_bytes() == b"code"
    assert not (new / "KEY" / "link").exists()
