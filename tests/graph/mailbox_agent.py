"""An agent that answers a mailbox: it reads the request's document and nothing else."""

from __future__ import annotations

import json
import re
from pathlib import Path


def answer_of(document: str) -> tuple[str, str]:
    """Return the ending of an answer's file and its text: as many ideas as are asked for, or a kernel of the idea."""
    head, _, prompt = document.partition("# Prompt\n")
    if 'purpose: "kernel"' in head:
        found = re.search(r"## The idea\n\n\*\*(.*?)\*\*", prompt)
        assert found is not None
        variation = re.search(r"This is implementation (\d+)", prompt)
        number = variation[1] if variation else "1"
        return "cpp", f"// {found[1]} {number}\n// speed 1.{20 + len(found[1]) % 7}{number}\n"
    wanted, round_ = re.search(r"Propose (\d+) ", prompt), re.search(r"This is round (\d+)", prompt)
    assert wanted is not None and round_ is not None
    words = [f"{chr(97 + int(round_[1]))}{chr(97 + n)}word" for n in range(int(wanted[1]))]
    ideas = [{"title": f"{w} {w}x", "mechanism": f"{w}one {w}two {w}three", "category": "memory_access"} for w in words]
    return "json", json.dumps({"ideas": ideas, "usage": {"input_tokens": 100, "output_tokens": 20}})


def requests_in(run_dir: Path) -> list[Path]:
    """Return the files of the requests that wait in a run's mailbox."""
    return sorted((run_dir / "mailbox").glob("*.request.md"))


def drop_answers(run_dir: Path, at_most: int = 1000) -> int:
    """Put answers beside the requests of a run and return their number."""
    requests = [path for path in requests_in(run_dir) if not list(path.parent.glob(f"{_stem(path)}.answer.*"))][
        :at_most
    ]
    for path in requests:
        suffix, text = answer_of(path.read_text())
        path.with_name(f"{_stem(path)}.answer.{suffix}").write_text(text)
    return len(requests)


def _stem(path: Path) -> str:
    return path.name.removesuffix(".request.md")
