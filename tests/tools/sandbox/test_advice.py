"""What a machine lacks for a tier is told with the command that gives it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ridgeline.tools.sandbox.advice import (
    TIER_WORDS,
    bubblewrap_advice,
    closed_folders,
    landlock_advice,
    no_bubblewrap,
    own_network_advice,
    python_advice,
)
from ridgeline.tools.sandbox.rules import Tier


@pytest.fixture
def bwrap(tmp_path: Path) -> Path:
    return tmp_path / "bwrap"


@pytest.mark.parametrize(
    ("scope", "remedy"), [("2", "sysctl -w kernel.yama.ptrace_scope=1"), ("1", "Linux 5.14 or newer")]
)
def test_a_tool_without_sockets_of_its_own_is_told_how_it_gets_them(tmp_path: Path, scope: str, remedy: str) -> None:
    (tmp_path / "ptrace_scope").write_text(f"{scope}\n")
    assert remedy in own_network_advice(tmp_path / "ptrace_scope")
    assert "bubblewrap" in own_network_advice(tmp_path / "ptrace_scope")


def says(program: Path, version: str) -> str:
    program.write_text(f"#!/bin/sh\necho bubblewrap {version}\n")
    program.chmod(0o755)
    return str(program)


def test_every_tier_is_told_in_words() -> None:
    assert set(TIER_WORDS) == set(Tier)


def test_a_missing_bubblewrap_is_to_be_installed() -> None:
    assert "apt-get install bubblewrap" in no_bubblewrap()


def test_an_old_bubblewrap_is_to_be_replaced(bwrap: Path) -> None:
    assert "bubblewrap 0.6 cannot size a tmpfs: install 0.7 or newer" in bubblewrap_advice(says(bwrap, "0.6.1"))


@pytest.mark.parametrize(
    ("setting", "value", "command"),
    [
        ("kernel/unprivileged_userns_clone", "0", "sysctl -w kernel.unprivileged_userns_clone=1"),
        ("user/max_user_namespaces", "0", "sysctl -w user.max_user_namespaces=15000"),
        (
            "kernel/apparmor_restrict_unprivileged_userns",
            "1",
            "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
        ),
    ],
)
def test_the_setting_that_forbids_namespaces_is_named(
    bwrap: Path, tmp_path: Path, setting: str, value: str, command: str
) -> None:
    path = tmp_path / "sys" / setting
    path.parent.mkdir(parents=True)
    path.write_text(f"{value}\n")
    assert command in bubblewrap_advice(says(bwrap, "0.8.0"), tmp_path / "sys")


def test_settings_that_allow_namespaces_are_not_blamed(bwrap: Path, tmp_path: Path) -> None:
    path = tmp_path / "sys" / "kernel" / "unprivileged_userns_clone"
    path.parent.mkdir(parents=True)
    path.write_text("1\n")
    assert "sysctl" not in bubblewrap_advice(says(bwrap, "0.8.0"), tmp_path / "sys")


def test_an_old_kernel_has_no_landlock(tmp_path: Path) -> None:
    assert "Linux 5.10.0-8-amd64 has no Landlock: it needs 5.13" in landlock_advice("5.10.0-8-amd64", tmp_path / "lsm")


def test_landlock_that_was_not_started_is_to_be_booted_with(tmp_path: Path) -> None:
    (tmp_path / "lsm").write_text("capability,yama,apparmor")
    assert "lsm=landlock,capability,yama,apparmor" in landlock_advice("6.1.0", tmp_path / "lsm")


def test_a_machine_with_landlock_gets_no_advice(tmp_path: Path) -> None:
    (tmp_path / "lsm").write_text("capability,landlock,yama")
    assert landlock_advice("6.1.0", tmp_path / "lsm") == ""


def test_a_python_under_a_closed_home_is_told_with_what_to_open(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".pyenv" / "bin").mkdir(parents=True)
    home.chmod(0o700)
    assert home in closed_folders([home / ".pyenv" / "bin" / "python"])
    assert f"{home}" in python_advice([home / ".pyenv"])
    assert "chmod o+x" in python_advice([home / ".pyenv"])


def test_an_open_python_needs_nothing() -> None:
    assert python_advice([Path("/usr/bin")]) == ""
