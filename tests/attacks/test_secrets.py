"""Secrets stay out of reach: in the environment, in files, and while a source is compiled."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ridgeline.tools.sandbox.python import python_paths
from ridgeline.tools.sandbox.sandbox import Confined, Sandbox, claim_workdir

from .conftest import SECRET

pytestmark = pytest.mark.timeout(60)
Confine = Callable[..., Confined]


@pytest.fixture
def home(open_path: Path) -> Path:
    """A home folder with a key in it, readable by everyone so that only the sandbox protects it."""
    (open_path / "home" / ".ssh").mkdir(parents=True)
    (open_path / "home" / ".ssh" / "id_rsa").write_text(f"{SECRET}\n")
    return open_path / "home"


def test_secrets_of_the_environment_are_not_visible(
    sandbox: Sandbox, confine: Confine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    _, printed = sandbox.run(replace(confine("secrets"), env={"GIVEN": "openly"}))
    assert SECRET not in printed
    assert "GIVEN=openly" in printed


def test_a_key_in_a_home_folder_cannot_be_read(sandbox: Sandbox, confine: Confine, home: Path) -> None:
    key = home / ".ssh" / "id_rsa"
    assert SECRET not in sandbox.run(confine("read", key))[1]
    # The control: the same file, given.
    assert SECRET in sandbox.run(replace(confine("read", key), readable=(*confine("x").readable, key)))[1]


def test_a_link_in_the_workdir_does_not_reveal_a_file(
    sandbox: Sandbox, confine: Confine, home: Path, workdir: Path
) -> None:
    (workdir / "link").symlink_to(home / ".ssh" / "id_rsa")
    assert SECRET not in sandbox.run(confine("read", workdir / "link"))[1]


@pytest.mark.parametrize(
    "body",
    [
        'asm(".globl secret\\nsecret: .incbin \\"{key}\\"\\n");',
        '#include "{key}"',
        'asm(".include \\"{key}\\"");',
        '#embed "{key}"',
        '#if __has_include("{key}")\n#include "{key}"\n#endif',
    ],
    ids=["incbin", "include", "as-include", "embed", "has-include"],
)
def test_a_secret_cannot_be_read_at_compile_time(sandbox: Sandbox, workdir: Path, home: Path, body: str) -> None:
    source = workdir / "candidate.cpp"
    source.write_text(body.format(key=home / ".ssh" / "id_rsa") + "\nint run() { return 0; }\n")
    claim_workdir(workdir)
    command = ("g++", "-shared", "-fPIC", str(source), "-o", str(workdir / "candidate.so"))
    _, printed = sandbox.run(Confined(command=command, workdir=workdir, allow_processes=True))
    assert SECRET not in printed
    for product in workdir.iterdir():
        assert SECRET.encode() not in product.read_bytes()


def test_a_linker_script_cannot_read_a_secret(sandbox: Sandbox, workdir: Path, home: Path) -> None:
    key = home / ".ssh" / "id_rsa"
    (workdir / "a.cpp").write_text("int run() { return 0; }\n")
    claim_workdir(workdir)
    command = (
        "g++",
        "-shared",
        "-fPIC",
        "a.cpp",
        "-o",
        "a.so",
        "-Wl,--format=binary",
        str(key),
        "-Wl,--format=default",
    )
    _, printed = sandbox.run(Confined(command=command, workdir=workdir, allow_processes=True))
    assert SECRET not in printed
    assert not (workdir / "a.so").exists()


def test_an_honest_include_is_compiled(sandbox: Sandbox, workdir: Path, tmp_path: Path) -> None:
    header = tmp_path / "header.h"
    header.write_text("inline int given() { return 7; }\n")
    (workdir / "a.cpp").write_text(f'#include "{header}"\n#include <vector>\nint run() {{ return given(); }}\n')
    claim_workdir(workdir)
    command = ("g++", "-shared", "-fPIC", "-O2", "-fopenmp", "a.cpp", "-o", "a.so")
    ended, printed = sandbox.run(Confined(command=command, workdir=workdir, readable=(header,), allow_processes=True))
    assert ended.is_success, printed
    assert (workdir / "a.so").stat().st_size > 0


def test_python_in_the_sandbox_reads_no_secret(sandbox: Sandbox, home: Path) -> None:
    program = (
        "import os, pathlib, sys\n"
        "print('python', sys.version_info.major)\n"
        f"for path in ({str(home / '.ssh' / 'id_rsa')!r}, '/proc/1/environ', os.path.expanduser('~root/.ssh/id_rsa')):\n"
        "    try: print(pathlib.Path(path).read_text())\n"
        "    except OSError as error: print(error)\n"
    )
    command = (sys.executable, "-c", program)
    ended, printed = sandbox.run(Confined(command=command, readable=python_paths()))
    assert ended.is_success, printed
    assert "python 3" in printed
    assert SECRET not in printed
