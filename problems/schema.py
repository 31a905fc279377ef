"""The JSON schema of problem.yaml, published beside this file; `python -m ridgeline.problems.schema` renews it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ridgeline.problems.spec import SCHEMA_VERSION, ProblemSpec

SCHEMA_PATH = Path(__file__).with_name("problem.schema.json")


def problem_schema() -> dict[str, Any]:
    """Return the schema that editors and validators read (JSON Schema 2020-12), with its own `schema_version`."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "schema_version": SCHEMA_VERSION,
        **ProblemSpec.model_json_schema(),
    }


def schema_text() -> str:
    """Return the schema as the text of its published file."""
    return json.dumps(problem_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    SCHEMA_PATH.write_text(schema_text(), encoding="utf-8")
