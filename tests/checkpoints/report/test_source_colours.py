"""Coloured source is the same text, escaped."""

from __future__ import annotations

import re
import time
from html import unescape

import pytest

from ridgeline.checkpoints.report.source_colours import colour_source


def test_coloured_source_is_the_same_text_escaped() -> None:
    source = '#include <cmath>\n// a < b && "c"\nfor (int i = 0; i < 8; ++i) puts("<b>\\"");\n'
    coloured = colour_source(source)
    assert '<i class="key">for</i>' in coloured
    assert '<i class="pre">#include &lt;cmath&gt;</i>' in coloured
    plain = re.sub(r"</?i[^>]*>", "", coloured)
    assert unescape(plain) == source


@pytest.mark.parametrize("piece", ['\\"', "/*", '"\\'])
def test_what_has_no_end_takes_no_longer_than_its_length(piece: str) -> None:
    source = piece * 30_000
    began = time.process_time()
    assert unescape(re.sub(r"</?i[^>]*>", "", colour_source(source))) == source
    assert time.process_time() - began < 1.0
