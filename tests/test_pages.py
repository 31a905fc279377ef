"""The pages name files of this checkout and link to each other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]

_FOLDERS = "benchmarks|checkpoints|docs|examples|graph|problems|src|tests|tools"
_PATH = re.compile(rf"(?<![\w./$-])(?:{_FOLDERS})/[\w./*-]*")
_PLACEHOLDER = re.compile(r"[A-Z]{4}")  # benchmarks/NAME.py
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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_between_pages_leads_somewhere(page: Path) -> None:
    for link in _LINK.finditer(text_of(page)):
        linked = page.parent / link["page"] if link["page"] else page
        assert linked.is_file(), link[0]
        assert not link["section"] or link["section"] in sections(linked), link[0]


def test_the_readme_lists_every_page() -> None:
    listed = text_of(ROOT / "README.md")
    assert [page.name for page in PAGES[2:] if f"(docs/{page.name})" not in listed] == []
