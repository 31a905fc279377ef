"""Every known way to cheat, what catches it, and the test candidates that try it: one table for people and for tests.

A trick has a case for each form in which it can exist; the case names its source and how the judge must end it. Sources
lie in `sources/` (interface c on a CPU), `torch_extension.cpp` (interface torch), `modules/` (interface module) and
`../gpu/sources/` (interface c on CUDA). docs/cheats.md is this table as a page:
`PYTHONPATH=. python tests/cheats/catalogue.py`
prints it. Each group has a module in `tricks/`.
"""

from __future__ import annotations

import sys

from tests.cheats.trick import Case, Form, Group, Trick
from tests.cheats.tricks import controls, further, machine, no_kernel, replay, rounds, tampering, timing, wrong

GROUPS = (controls, timing, replay, wrong, tampering, no_kernel, machine, further, rounds)
CATALOGUE: tuple[Trick, ...] = tuple(each for group in GROUPS for each in group.TRICKS)


def cases(form: Form) -> list[Case]:
    """Return the cases of one form that are tried beside this table."""
    return [case for each in CATALOGUE for case in each.cases if case.form is form and not case.where]


def page() -> str:
    """Return the catalogue as the page docs/cheats.md."""
    lines = [
        "# Known ways to cheat",
        "",
        "Each row is a test candidate. The judge must end it as the row says, and must pass an honest candidate of the same",
        "form beside it. Forms are interface `c` on a CPU and on CUDA, a `torch` extension, and a Python `module`.",
        "",
        "- *No effect*: the attempt is stopped or finds nothing, and the candidate's honest work passes.",
        "- *No gain*: the candidate is timed, and is no faster than the honest one.",
        "- **Accepted**: the judge does not find it; the row says what it gains.",
        "",
        "A judge's secrets are drawn by chance, and a few of these rely on chance too: now and then one judge says something",
        "else. Then three fresh ones decide, as for a certificate, and two of them must end it as the row says. The run names",
        "such a case at its end (`judged again`).",
        "",
        "`tests/cheats/catalogue.py` makes the tables; a test keeps page and catalogue equal.",
    ]
    for group in Group:
        lines += ["", f"## {group}", "", "| what it does | what catches it | forms and ends |", "|---|---|---|"]
        tricks = [each for each in CATALOGUE if each.group is group]
        lines += [f"| {each.words} | {each.caught_by} | {_ends(each)} |" for each in tricks]
    return "\n".join(lines) + "\n"


def _ends(each: Trick) -> str:
    found: dict[str, list[str]] = {}
    for case in each.cases:
        forms = found.setdefault(case.end.words(), [])
        if case.form not in forms:
            forms.append(case.form)
    return "; ".join(f"{', '.join(forms)}: {words}" for words, forms in found.items())


if __name__ == "__main__":
    sys.stdout.write(page())
