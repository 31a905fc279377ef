"""What `ridgeline problems` lists."""

from __future__ import annotations

import json

from tests.graph.cli.command_line import ridgeline


def test_problems_lists_what_ships_as_json() -> None:
    rows = json.loads(ridgeline("problems", "--json").stdout)
    assert {"quickstart": ["cpu", "cuda"]}.items() <= {row["name"]: row["keyless"] for row in rows}.items()
