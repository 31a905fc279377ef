"""A rendered page as a tree of elements, strict about what a browser would mend in silence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = frozenset({"meta", "br", "img", "link", "input"})


@dataclass
class Element:
    tag: str
    attributes: dict[str, str | None]
    children: list[Element] = field(default_factory=list)
    texts: list[str | Element] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Return all text in it, blanks joined."""
        return " ".join("".join(self._pieces()).split())

    def _pieces(self) -> Iterator[str]:
        for piece in self.texts:
            if isinstance(piece, str):
                yield piece
            else:
                yield from piece._pieces()
                yield " " if piece.tag in {"div", "td", "th", "li", "p", "summary", "br", "tr"} else ""

    def all(self) -> Iterator[Element]:
        for child in self.children:
            yield child
            yield from child.all()

    def find(self, tag: str, **attributes: str) -> list[Element]:
        """Return the elements of this tag in it, in their order; `class_` is one of an element's classes."""
        css = attributes.pop("class_", None)
        wanted = {name.replace("_", "-"): value for name, value in attributes.items()}
        return [
            each
            for each in self.all()
            if each.tag == tag
            and all(each.attributes.get(name) == value for name, value in wanted.items())
            and (css is None or css in (each.attributes.get("class") or "").split())
        ]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.root = Element("", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attributes}) == len(attributes), f"{tag}: an attribute twice"
        element = Element(tag, dict(attributes))
        self.open[-1].children.append(element)
        self.open[-1].texts.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        self.open[-1].texts.append(data)


@dataclass
class Page(Element):
    @property
    def tags(self) -> list[str]:
        return [each.tag for each in self.all()]

    @property
    def every_attribute(self) -> list[tuple[str, str | None]]:
        return [pair for each in self.all() for pair in each.attributes.items()]


def read_page(page: str) -> Page:
    """Return the page; AssertionError where a tag is not closed, or an attribute or an id stands twice."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == [reader.root]
    found = Page("", {}, reader.root.children, reader.root.texts)
    ids = [each.attributes["id"] for each in found.all() if "id" in each.attributes]
    assert len(set(ids)) == len(ids)
    return found
