"""Files from templates: the text lies in templates/, and a name that a template misses is an error."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ridgeline.checkpoints.report.wording import labels_in_words
from ridgeline.tools.wording import ratio_words

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).parent / "templates"


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    environment.filters["literal"] = json.dumps
    environment.filters["labels"] = labels_in_words
    environment.globals["ratio"] = ratio_words
    return environment


def render(template: str, **names: Any) -> str:
    """Return a template's text with these names."""
    return _environment().get_template(template).render(**names)
