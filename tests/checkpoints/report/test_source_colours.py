"""Coloured source is the same text, escaped."""

from __future__ import annotations

import re
from html import unescape

from ridgeline.checkpoints.report.source_colours import colour_source


def test_coloured_source_is_the_same_text_escaped() -> None:
    source = '#include <cmath>\n// a < b && "c"\nfor (int i = 0; i < 8; ++i) puts("<b>\\"");\n'
    coloured = colour_source(source)
    assert '<i class="key">for</i>' in coloured
    assert '<i class="pre">#include &lt;cmath&gt;</i>' in coloured
    plain = re.sub(r"</?i[^>]*>", "", coloured)
    assert unescape(plain) == source
