"""docs/architecture.md is what the tree and the import contracts say."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("graph", "tools", "checkpoints", "problems")
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]

_FIRST_CELL = re.compile(r"^\| ((?:`[\w/]+/`(?:, )?)+) \|", re.MULTILINE)
_FOLDER = re.compile(r"`([\w/]+/)`")


def folders_with_modules() -> list[str]:
    modules = (module for room in ROOMS for module in (ROOT / room).rglob("*.py"))
    folders = {module.parent for module in modules if not (module.parent / "problem.yaml").exists()}
    return sorted(f"{folder.relative_to(ROOT)}/" for folder in folders)


def lines_of_folders() -> list[str]:
    """Return the folders that a row of a table is about."""
    return [folder for cell in _FIRST_CELL.findall(PAGE) for folder in _FOLDER.findall(cell)]


def orders() -> list[str]:
    """Return each order of folders that an import contract holds, as the page writes it: `a | b → c`."""
    return [order_of(contract) for contract in CONTRACTS if contract["type"] == "layers"]


def order_of(contract: dict[str, Any]) -> str:
    layers = [re.findall(r"[\w.]+|[|:]", layer) for layer in contract["layers"]]
    return " → ".join(" ".join(word.rpartition(".")[2] for word in layer) for layer in layers)


@pytest.mark.parametrize("folder", folders_with_modules())
def test_every_folder_with_modules_has_one_line(folder: str) -> None:
    assert lines_of_folders().count(folder) == 1


def test_no_line_is_about_a_folder_that_is_gone() -> None:
    assert [folder for folder in lines_of_folders() if not (ROOT / folder).is_dir()] == []


def test_every_module_of_nodes_has_its_row() -> None:
    section = PAGE.partition("\n## The graph of a search\n")[2].partition("\n## ")[0]
    modules = {module.stem for module in (ROOT / "graph" / "nodes").glob("*.py")} - {"__init__"}
    assert set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) == modules


@pytest.mark.parametrize("order", orders())
def test_the_page_gives_every_order_that_a_contract_holds(order: str) -> None:
    assert order in " ".join(PAGE.split())


def what_checkpoints_may_import() -> list[str]:
    """Return the folders and modules of tools that the contract lets `checkpoints` import, as the page writes them."""
    [contract] = [each for each in CONTRACTS if each.get("source_modules") == ["ridgeline.checkpoints"]]
    targets = [line.partition(" -> ")[2].removeprefix("ridgeline.") for line in contract["ignore_imports"]]
    return [f"{t[:-2].replace('.', '/')}/" if t.endswith(".*") else f"{t.replace('.', '/')}.py" for t in targets]


@pytest.mark.parametrize("path", what_checkpoints_may_import())
def test_the_page_names_all_that_checkpoints_may_import_of_tools(path: str) -> None:
    sentence = PAGE.partition("`checkpoints/` imports from tools only")[2].partition("LangGraph")[0]
    assert f"`{path}`" in sentence


_DECIDES = re.compile(r"(?:\b(?:is|not|return) |== |\bkind ?= ?)DeviceKind\.[A-Z]|DeviceKind\.[A-Z]+:")


def modules_that_decide_by_the_kind_of_device() -> list[str]:
    modules = (module for room in ROOMS for module in (ROOT / room).rglob("*.py"))
    return sorted(str(m.relative_to(ROOT)) for m in modules if _DECIDES.search(m.read_text(encoding="utf-8")))


@pytest.mark.parametrize("module", modules_that_decide_by_the_kind_of_device())
def test_every_module_that_decides_by_the_kind_of_device_is_named(module: str) -> None:
    section = PAGE.partition("### A kind of device\n")[2].partition("\n## ")[0]
    assert f"`{module}`" in section


def test_every_path_on_the_page_exists() -> None:
    named = re.findall(r"`((?:graph|tools|checkpoints|problems)/[\w/]+(?:\.\w+)?/?)`", PAGE)
    assert [path for path in named if not (ROOT / path).exists()] == []
