"""What a stranger's archive may not bring into a package, a script or a compiler's command."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.graph.cli.command_line import ridgeline

from ridgeline.graph.shipping.render import in_one_line, markdown_cell, markdown_code
from ridgeline.graph.shipping.ship import ShipRequest, ship
from ridgeline.problems.spec import load_problem, shipped_problems
from ridgeline.tools.build.flags import base_flags, link_flags
from ridgeline.tools.errors import RunError
from ridgeline.tools.machine.devices import detect_device
from ridgeline.tools.records.problem import Signature
from ridgeline.tools.records.vocabulary import DeviceKind, Interface

from .finished_run import Finished, signature, write_run

CPU = detect_device("cpu")
USUAL = (*base_flags(CPU), *link_flags(CPU.kind))


def first_named(**changes: object) -> Signature:
    first, *others = signature().args
    return Signature(args=(replace(first, **changes), *others))


@pytest.mark.parametrize(
    ("flag", "of_certificate"),
    [
        ("-fplugin=x.so", True),
        ("-DX=`id`", False),
        *(
            pytest.param(flag, of_certificate, marks=pytest.mark.slow)
            for flag in ("-wrapper", "sh,-c,id", "-include/etc/passwd", "@more")
            for of_certificate in (True, False)
        ),
    ],
)
def test_a_flag_that_no_build_has_reaches_no_compiler(tmp_path: Path, flag: str, of_certificate: bool) -> None:
    odd = {"certified_flags": (*USUAL, flag)} if of_certificate else {"flags": (*USUAL, flag)}
    run = write_run(tmp_path / "run", Finished(**odd))
    with pytest.raises(RunError, match=f"names a flag that no build here has: {re.escape(repr(flag))}"):
        ship(ShipRequest(run=run, out=tmp_path / "out"))
    assert not (tmp_path / "out").exists()
    assert not (run / "use_kernel.py").exists()


@pytest.mark.parametrize(
    ("odd", "words"),
    [
        (Finished(problem='x"""\nimport os'), "is no problem's name"),
        (Finished(signature=first_named(name="x, y=print()")), "is no argument's name"),
        (Finished(signature=first_named(name="x\n")), "is no argument's name"),
        (Finished(signature=first_named(dtype="float32), exit(")), "is no type of x"),
        (Finished(language="../../x"), "is no language of interface c"),
        (Finished(device=replace(CPU, kind=DeviceKind.CUDA, arch="sm_90 -x"), flags=USUAL), "is no GPU's architecture"),
    ],
)
def test_a_name_that_no_search_writes_is_refused(tmp_path: Path, odd: Finished, words: str) -> None:
    try:
        run = write_run(tmp_path / "run", odd)
    except Exception as error:  # noqa: BLE001  # a header that cannot be made is no package either
        assert "ridgeline" in type(error).__module__  # noqa: PT017
        return
    with pytest.raises(RunError, match=words):
        ship(ShipRequest(run=run, out=tmp_path / "out"))
    assert not (run / "use_kernel.py").exists()


def test_the_flags_are_the_certificates(tmp_path: Path) -> None:
    certified = (*USUAL, "-funroll-loops")
    ship(ShipRequest(run=write_run(tmp_path / "run", Finished(certified_flags=certified)), out=tmp_path / "out"))
    told = json.loads((tmp_path / "out" / "scaled_kernel" / "kernel.json").read_text())
    assert told["build"]["flags"] == list(certified)


@pytest.mark.parametrize("interface", [Interface.C, Interface.TORCH])
def test_flags_that_were_not_kept_are_not_made_up(tmp_path: Path, interface: Interface) -> None:
    run = write_run(tmp_path / "run", Finished(interface=interface, flags=()))
    with pytest.raises(RunError, match="its build's flags were not kept; run the search anew"):
        ship(ShipRequest(run=run, out=tmp_path / "out"))
    assert not (run / "use_kernel.py").exists()


def test_words_of_an_archive_stay_in_their_line_and_cell() -> None:
    assert in_one_line("a\nb\x1b[0m\u2028c") == "a b [0m c"
    assert markdown_cell("a | b\n\n# c <img> [d](e) `f`") == r"a \| b # c \<img\> \[d\](e) \`f\`"
    assert markdown_code("xs['`|`']") == r"xs[''\|'']"


def test_a_title_with_bars_and_lines_stays_in_its_cell(tmp_path: Path) -> None:
    device = replace(CPU, name="A | B\n\n# C")
    ship(ShipRequest(run=write_run(tmp_path / "run", Finished(device=device)), out=tmp_path / "out"))
    text = (tmp_path / "out" / "README.md").read_text()
    assert r"on | A \| B # C |" in text
    assert "\n# C" not in text


def test_a_reference_that_nobody_here_wrote_is_warned_of_before_it_runs(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", Finished(device=replace(CPU, name="A CPU\x1b[2J\x07")))
    done = ridgeline("ship", str(run), "--out", "out", cwd=tmp_path)
    assert "warning:" in done.stderr
    assert "its reference is none that ships: it is run as you, outside of any sandbox" in done.stderr
    told = json.loads((tmp_path / "out" / "scaled_kernel" / "kernel.json").read_text())
    assert "certified on A CPU [2J" in done.stdout and told["device"]["name"] == "A CPU [2J "
    assert "\x1b" not in done.stdout, "no text of an archive commands the terminal"


def test_a_reference_that_ships_is_not_warned_of(tmp_path: Path) -> None:
    reference = load_problem(shipped_problems()["softmax"]).reference_source("cpu")
    said: list[str] = []
    run = write_run(tmp_path / "run", Finished(reference=reference))
    ship(ShipRequest(run=run, out=tmp_path / "out"), on_warning=said.append)
    assert said == []
