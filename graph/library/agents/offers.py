"""The problems that a host lets its agents name.

A reference is code that runs with the host's rights. An agent that may write files could otherwise name one of its own.
What the host's rights let Ridgeline read, an agent need not be allowed to: of a file that states no problem it is told no word.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ridgeline.graph.session.arguments import checked
from ridgeline.graph.session.problem import ProblemName, find_problem
from ridgeline.problems.files import read_text
from ridgeline.problems.kernel_files import SUFFIXES
from ridgeline.problems.spec import FILE_NAME, ProblemSpec, shipped_problems
from ridgeline.tools.errors import ProblemError

_STATED = re.compile(r"""(?:^|[{,])[ \t]*["']?reference["']?[ \t]*:""", re.MULTILINE)
"""A problem's own key as YAML writes it; it is looked for in the text, which need not be valid YAML yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offers:
    """The problems that an agent may name."""

    specs: Mapping[str, ProblemSpec] | None  # by name; None: every problem that ships, and any problem.yaml

    @classmethod
    def of(cls, problems: Sequence[ProblemName] | None) -> Offers:
        """Return what a host offers; it is read once, here.

        Raises:
            ProblemError: there is no such problem, none is named, or two have one name.
        """
        if problems is None:
            return cls(specs=None)
        given = [problems] if isinstance(problems, str | Path | ProblemSpec) else problems
        found = [find_problem(problem) for problem in given]
        specs = {spec.name: spec for spec in found}
        if not specs:
            raise ProblemError("problems: must not be empty; name a problem, or leave it out for all")
        if len(specs) < len(found):
            raise ProblemError(f"problems: two are called {_twice(found)}; rename one")
        return cls(specs=specs)

    @property
    def names(self) -> list[str]:
        """Return the names that an agent may use; with any problem.yaml allowed, those of the problems that ship."""
        return sorted(shipped_problems() if self.specs is None else self.specs)

    @property
    def in_words(self) -> str:
        """Return what may be named, for a model."""
        listed = ", ".join(self.names)
        return listed if self.specs is not None else f"the path of a problem.yaml, or a shipped one: {listed}"

    @property
    def only(self) -> str | None:
        """Return the name of the single problem that is offered, which need not be named."""
        return next(iter(self.specs)) if self.specs is not None and len(self.specs) == 1 else None

    def find(self, named: str | None) -> ProblemSpec:
        """Return the problem that an agent names.

        Raises:
            InputError: there is none, it is not offered, or the text is no path that can be looked for.
        """
        wanted = (named or "").strip() or self.only
        checked("problem", wanted)
        if wanted is None:
            raise ProblemError(f"problem: is missing; name one: {self.in_words}")
        if self.specs is None:
            return problem_of_agent(wanted)
        found = self.specs.get(wanted) or next((s for s in self.specs.values() if _is_at(s, wanted)), None)
        if found is None:
            raise ProblemError(f"problem {wanted}: is not offered here; name one of {self.in_words}")
        return found


def problem_of_agent(named: str) -> ProblemSpec:
    """Return the problem of a shipped one's name or of a path that an agent gives.

    Raises:
        InputError: as `find_problem` does, but of a file that states no problem it quotes nothing.
    """
    try:
        return find_problem(named)
    except ProblemError:
        path = Path(named)
        path = path / FILE_NAME if path.is_dir() else path
        if not path.is_file() or path.suffix in SUFFIXES or _states_problem(path):
            raise  # of a reference or a kernel, which is not read, it says what to do with it
    raise ProblemError(f"{path}: states no problem; write `name:` and `reference:` at least, see docs/problem.md")


def _states_problem(path: Path) -> bool:
    """Say whether a file has a problem's own key.

    Raises:
        ProblemError: it cannot be read, or is no text; its content is not quoted.
    """
    return bool(_STATED.search(read_text(path, "problem")))


def _is_at(spec: ProblemSpec, named: str) -> bool:
    """Say whether a text is the path of this problem's file, or of its folder."""
    return spec.path.is_file() and spec.path.resolve() in (Path(named).resolve(), (Path(named) / FILE_NAME).resolve())


def _twice(found: Sequence[ProblemSpec]) -> str:
    names = [spec.name for spec in found]
    return next(name for name in names if names.count(name) > 1)
