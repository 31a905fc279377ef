"""The commands of a shell that tests confine."""

from __future__ import annotations

from ridgeline.tools.sandbox.sandbox import Confined


def shell(script: str, **options: object) -> Confined:
    return Confined(command=("/bin/sh", "-c", script), allow_processes=True, **options)  # type: ignore[arg-type]
