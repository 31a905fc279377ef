"""A small JSON file that its readers see whole: the old content or the new, whatever happens to the writer."""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import Any


def replace_json(path: Path, content: dict[str, Any]) -> None:
    """Write `content` to `path` by one rename, making its folder first.

    Raises:
        OSError: the folder cannot be made or written, or the disk is full; nothing is left behind.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, suffix=".tmp", encoding="utf-8") as file:
        fresh = Path(file.name)
        try:
            json.dump(content, file, indent=1)
            file.flush()
            fresh.replace(path)
        except OSError:
            fresh.unlink(missing_ok=True)
            raise


def is_older(path: Path, seconds: float) -> bool:
    """Say whether a file was written longer ago than that, or is not there."""
    try:
        return time.time() - path.stat().st_mtime > seconds
    except OSError:
        return True
