"""The published JSON schema and the page that documents it."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from ridgeline.problems.schema import SCHEMA_PATH, problem_schema, schema_text
from ridgeline.problems.spec import SCHEMA_VERSION, parse_problem, shipped_problems

PAGE = Path(__file__).parents[2] / "docs" / "problem.md"


def test_the_published_schema_is_current() -> None:
    assert SCHEMA_PATH.read_text(encoding="utf-8") == schema_text(), "run python -m ridgeline.problems.schema"


def test_the_schema_is_valid_and_carries_its_version() -> None:
    schema = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["schema_version"] == SCHEMA_VERSION


@pytest.mark.parametrize("path", shipped_problems().values(), ids=lambda path: path.parent.name)
def test_a_shipped_problem_meets_the_schema(path: Path) -> None:
    jsonschema.validate(yaml.safe_load(path.read_text()), problem_schema())


@pytest.mark.parametrize("extra", [{"zzz": 1}, {"tolerance": "fp23"}, {"targets": {"cpu": {"sizes": {"N": "x"}}}}])
def test_the_schema_refuses_what_the_loader_refuses(extra: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"name": "mine", "reference": "reference.py", **extra}, problem_schema())


def test_every_key_is_documented_with_its_default() -> None:
    rows = dict(re.findall(r"^\| `([\w.*]+)` \| [^|]+ \| ([^|]+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    documented = {key: value.strip().strip("`") for key, value in rows.items()}
    assert documented == dict(_keys(problem_schema(), problem_schema()["properties"], "", problem_schema()["required"]))


def test_the_documented_example_is_a_problem() -> None:
    example = re.search(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert example
    assert parse_problem(yaml.safe_load(example[1]), PAGE).name == "quickstart"


def _keys(
    schema: dict[str, Any], properties: dict[str, Any], prefix: str, required: list[str]
) -> list[tuple[str, str]]:
    rows = []
    for key, value in properties.items():
        section, star = value.get("$ref") or value.get("additionalProperties", {}).get("$ref"), ".*"
        if value.get("$ref"):
            star = ""
        default = "required" if key in required else json.dumps(value["default"]) if "default" in value else "absent"
        rows.append((prefix + key, default))
        if section:
            inner = schema["$defs"][section.rsplit("/")[-1]]
            rows += _keys(schema, inner["properties"], f"{prefix}{key}{star}.", inner.get("required", []))
    return rows
