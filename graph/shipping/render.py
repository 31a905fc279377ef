"""Files from templates: the text lies in templates/, and a name that a template misses is an error."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ridgeline.checkpoints.report.wording import OVER_BEST, labels_in_words, over_best_doubt, unproven_words
from ridgeline.graph.shipping.provenance import GIVEN, provenance
from ridgeline.tools.wording import ratio_words

if TYPE_CHECKING:
    from jinja2 import Environment

_MARKDOWN = re.compile(r"[\\`|\[\]<>*_]")
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
    environment.filters["line"] = in_one_line
    environment.filters["cell"] = markdown_cell
    environment.filters["code"] = markdown_code
    environment.filters["labels"] = labels_in_words
    environment.filters["provenance"] = provenance
    environment.globals["came_as"] = GIVEN
    environment.globals["ratio"] = ratio_words
    environment.globals["unproven"] = unproven_words
    environment.globals["over_best_doubt"] = over_best_doubt
    environment.globals["over_best"] = OVER_BEST
    return environment


def render_shipped(template: str, **names: Any) -> str:
    """Return a template's text with these names."""
    return _environment().get_template(template).render(**names)


def weights_source() -> str:
    """Return the judge's own rules by which the tensors of a `ModelNew` stand for the reference's."""
    return _text("ridgeline.tools.modelnew", "weights.py")


def shipped_source(module: str) -> str:
    """Return a module of `graph/shipping/shipped/`, which Ridgeline itself runs too."""
    return _text("ridgeline.graph.shipping.shipped", f"{module}.py")


def _text(package: str, file: str) -> str:
    return resources.files(package).joinpath(file).read_text(encoding="utf-8")


def in_one_line(text: object) -> str:
    """Return a text in one line: an idea's title is a model's, and an archive's words may be a stranger's."""
    return " ".join("".join(c if c.isprintable() else " " for c in str(text)).split())


def markdown_cell(text: object) -> str:
    """Return a text as one cell of a Markdown table shows it, without a link, a tag or emphasis of its own."""
    return _MARKDOWN.sub(lambda found: f"\\{found[0]}", in_one_line(text))


def markdown_code(text: object) -> str:
    """Return a text for a place between backticks in a cell of a Markdown table."""
    return in_one_line(text).replace("`", "'").replace("|", "\\|")
