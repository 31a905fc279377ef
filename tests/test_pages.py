"""The pages name files of this checkout and link to each other."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]

_FOLDERS = "benchmarks|checkpoints|docs|examples|graph|problems|src|tests|tools"
_PATH = re.compile(rf"(?<![\w./$-])(?:{_FOLDERS})/[\w./*-]*")
_PLACEHOLDER = re.compile(r"[A-Z]{4}")  # benchmarks/NAME.py
_NAME = re.compile(r"\bridgeline(?:\.\w+)+")
_LINK = re.compile(r"\]\((?!https?://)(?P<page>[^)#\s]*)#?(?P<section>[^)\s]*)\)")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def sections(page: Path) -> set[str]:
    """Return the anchors of a page's headings."""
    return {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in _HEADING.findall(text_of(page))}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_path_on_a_page_exists(page: Path) -> None:
    named = {path.rstrip(".") for path in _PATH.findall(text_of(page)) if not _PLACEHOLDER.search(path)}
    assert sorted(path for path in named if not any(ROOT.glob(path))) == []


def module_of(folders: list[str]) -> Path | None:
    """Return the file of a module or package below `ridgeline`, or None."""
    path = ROOT / "src" / "ridgeline" / Path(*folders)
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)


def is_known(name: str) -> bool:
    """Say whether a dotted name is a module, or is named in one."""
    parts = name.split(".")[1:]
    holder = module_of(parts[:-1])
    return module_of(parts) is not None or (holder is not None and parts[-1] in re.findall(r"\w+", text_of(holder)))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_dotted_name_on_a_page_is_one(page: Path) -> None:
    assert sorted(name for name in set(_NAME.findall(text_of(page))) if not is_known(name)) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_between_pages_leads_somewhere(page: Path) -> None:
    for link in _LINK.finditer(text_of(page)):
        linked = page.parent / link["page"] if link["page"] else page
        assert linked.is_file(), link[0]
        assert not link["section"] or link["section"] in sections(linked), link[0]


def test_the_readme_lists_every_page() -> None:
    listed = text_of(ROOT / "README.md")
    assert [page.name for page in PAGES[2:] if f"(docs/{page.name})" not in listed] == []


@pytest.mark.parametrize("picture", sorted((ROOT / "docs" / "pictures").glob("*.*g")), ids=lambda path: path.name)
def test_a_picture_is_light_and_loads_nothing_from_elsewhere(picture: Path) -> None:
    assert picture.stat().st_size <= 200_000
    if picture.suffix == ".svg":
        assert ET.parse(picture).getroot().tag == "{http://www.w3.org/2000/svg}svg"
        assert not re.search(r"url\(['\"]?http|@import|href=", text_of(picture))
        assert "ridgeline" in text_of(picture) and "rounds" in text_of(picture)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_target_of_make_on_a_page_is_one(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", text_of(ROOT / "Makefile"), re.MULTILINE))
    assert set(re.findall(r"(?:^|`)make ([a-z-]+)(?=[`\s])", text_of(page), re.MULTILINE)) <= targets
