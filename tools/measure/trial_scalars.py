"""The scalars that a candidate has while it meets a trial."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

from ridgeline.tools.judge.process import LoadedProblem


@contextlib.contextmanager
def scalars_of(trial: str, problem: LoadedProblem, give: Callable[[Sequence[float]], None]) -> Iterator[None]:
    """Let a candidate have a trial's scalars meanwhile, and the nominal ones again afterwards, where they are others.

    What ends the block in an error ends the candidate's process too, which is given nothing more then.
    """
    scalars = problem.scalars.get(trial)
    if scalars is not None:
        give(scalars)
    yield
    if scalars is not None:
        give(problem.description.signature.given_scalars)


def scalar_words(trial: str, problem: LoadedProblem) -> str:
    """Return which scalars a trial has others of than usual, "" for none: the source may have them written in."""
    scalars = problem.scalars.get(trial)
    if scalars is None:
        return ""
    usual = [arg for arg in problem.description.signature.args if arg.value is not None]
    changed = [arg.name for arg, value in zip(usual, scalars, strict=True) if value != arg.value]
    return f"; {', '.join(f'`{each}`' for each in changed)} had another value than in get_inputs()"
