"""The resources of a run: its report, the certificate and the best kernel's source."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from ridgeline.graph.library.run import Run, open_run
from ridgeline.graph.mcp.runs import find
from ridgeline.tools.errors import RunError

_URI = re.compile(r"ridgeline://runs/(?P<run>[^/]+)/(?P<part>\w+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """The content of a resource."""

    text: str
    mime_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A kind of resource, as a client is told of it."""

    uri: str
    name: str
    description: str
    mime_type: str
    read: Callable[[str], str]


class Resources:
    """The resources of one server's runs; `{run}` is a name in its folder, or a percent-encoded absolute path."""

    def __init__(self, runs_dir: Path) -> None:
        """Take the folder of runs."""
        self._runs_dir = runs_dir

    def templates(self) -> list[Template]:
        """Return the kinds of resource."""
        return [self._template(part, mime_type, words) for part, (mime_type, words, _) in _PARTS.items()]

    def read(self, uri: str) -> Content:
        """Return the content of a resource as it is now.

        Raises:
            RunError: there is no such run or part, or it has none yet.
        """
        found = _URI.fullmatch(uri)
        if found is None or found["part"] not in _PARTS:
            raise RunError(f"{uri}: no such resource; ridgeline://runs/RUN/ with {', '.join(_PARTS)}")
        run = find(self._runs_dir, unquote(found["run"]))
        mime_type, _, text_of = _PARTS[found["part"]]
        text = text_of(open_run(run))
        if text is None:
            raise RunError(f"{run}: has no {found['part']} yet")
        return Content(text=text, mime_type=mime_type)

    def _template(self, part: str, mime_type: str, words: str) -> Template:
        def read(run: str) -> str:
            return self.read(f"ridgeline://runs/{run}/{part}").text

        uri = f"ridgeline://runs/{{run}}/{part}"
        return Template(uri=uri, name=part, description=words, mime_type=mime_type, read=read)


def _certificate(run: Run) -> str | None:
    return json.dumps(run.certificate, indent=2) if run.certificate else None


def _source(run: Run) -> str | None:
    return run.best_source


_PARTS: dict[str, tuple[str, str, Callable[[Run], str | None]]] = {
    "report": ("text/html", "the report of a run, as it is now", Run.to_html),
    "certificate": ("application/json", "what the winner's figures rest on: certificate.json", _certificate),
    "source": ("text/plain", "the best kernel's source", _source),
}
