"""Which tier works here, why another does not, and a sandbox whose program is gone."""

from __future__ import annotations

import os
import resource
import shutil
import sys
from pathlib import Path

import pytest
from tests.tools.sandbox.commands import shell

from ridgeline.tools.errors import SandboxError
from ridgeline.tools.sandbox import sandbox as sandbox_module
from ridgeline.tools.sandbox.sandbox import Sandbox, Tier, probe_sandbox, reason_against


def test_probe_reports_a_tier_and_the_reasons() -> None:
    report = probe_sandbox(allow_unsafe=True)
    assert report.tiers_tried
    assert (report.tier is Tier.NONE) == all(reason for _, reason in report.tiers_tried)


def test_probe_names_the_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox_module.shutil, "which", lambda name, path=None: None)
    assert "apt-get install bubblewrap" in reason_against(Tier.BUBBLEWRAP)


@pytest.mark.parametrize(
    ("lowered", "limits", "expected"),
    [
        ("RLIMIT_NOFILE", (32, 4096), "the limit of open files is 32, below 256: raise it (`ulimit -n`)"),
        (
            "RLIMIT_FSIZE",
            (102400, 102400),
            "the limit of file size is 102400, below 268435456: raise it (`ulimit -H -f`)",
        ),
        ("RLIMIT_CPU", (3, 3), "the limit of CPU time is 3, below 121: raise it (`ulimit -H -t`)"),
        (
            "RLIMIT_AS",
            (921600000, -1),
            "the limit of virtual memory is 921600000, below 4294967296: raise it (`ulimit -v`)",
        ),
        ("RLIMIT_NPROC", (20, 20), "the limit of processes is 20, below 128: raise it (`ulimit -H -u`)"),
    ],
)
def test_a_limit_of_the_process_itself_is_the_reason(
    monkeypatch: pytest.MonkeyPatch, lowered: str, limits: tuple[int, int], expected: str
) -> None:
    """A confined process gets limits of its own, and a hard one that is lower stays, whatever is installed."""
    monkeypatch.setattr(sandbox_module.shutil, "which", lambda name, path=None: f"/usr/bin/{name}")
    number, of_others = getattr(resource, lowered), resource.getrlimit
    monkeypatch.setattr(sandbox_module.resource, "getrlimit", lambda n: limits if n == number else of_others(n))
    assert [reason_against(tier) for tier in (Tier.BUBBLEWRAP, Tier.LANDLOCK)] == [expected] * 2


def test_one_reason_against_both_tiers_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox_module, "reason_against", lambda tier: "no space left on device")
    sandbox_module._probe.cache_clear()
    try:
        with pytest.raises(SandboxError, match="no sandbox works here: for tier A and B: no space left on device$"):
            probe_sandbox()
    finally:
        sandbox_module._probe.cache_clear()


def test_no_tier_is_refused_unless_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox_module, "reason_against", lambda tier: f"tier {tier} is not on this machine")
    sandbox_module._probe.cache_clear()
    try:
        with pytest.raises(SandboxError) as caught:
            probe_sandbox()
        said = "for tier A: tier A is not on this machine; for tier B: tier B is not on this machine"
        assert str(caught.value) == f"no sandbox works here: {said}"
        assert probe_sandbox(allow_unsafe=True).tier is Tier.NONE
    finally:
        sandbox_module._probe.cache_clear()


def test_another_system_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    sandbox_module._probe.cache_clear()
    try:
        with pytest.raises(SandboxError, match="Linux only") as caught:
            probe_sandbox()
        assert "\n" not in str(caught.value)
    finally:
        sandbox_module._probe.cache_clear()


def test_a_full_disk_is_named_and_nothing_that_a_tier_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "scratch"
    words = f"as: error: writing {scratch}/cc1.o: No space left on device"
    (tmp_path / "g++").write_text(f'#!/bin/sh\necho "{words}" >&2\nexit 1\n')
    (tmp_path / "g++").chmod(0o755)
    (tmp_path / "bwrap").symlink_to("/bin/true")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setenv("RIDGELINE_CACHE_DIR", str(tmp_path / "cache"))
    for tier in (Tier.BUBBLEWRAP, Tier.LANDLOCK):
        line = f"{scratch}: no space left on device, where g++ builds the sandbox's launcher: free some space"
        assert reason_against(tier) == line


def test_bubblewraps_own_words_are_the_reason(open_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bwrap = open_path / "bwrap"
    bwrap.write_text("#!/bin/sh\necho 'bwrap: No permissions to create a new namespace' >&2\nexit 1\n")
    bwrap.chmod(0o755)
    monkeypatch.setenv("PATH", f"{open_path}:{os.environ['PATH']}")
    assert "No permissions to create a new namespace" in reason_against(Tier.BUBBLEWRAP)


@pytest.mark.any_tier
def test_a_program_of_the_sandbox_that_disappeared_is_named_with_the_way_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher = tmp_path / "confine"
    shutil.copy2(Sandbox(Tier.LANDLOCK).launcher, launcher)
    in_bubblewrap, alone = Sandbox(Tier.BUBBLEWRAP), Sandbox(Tier.NONE, launcher=launcher)
    monkeypatch.setenv("PATH", str(tmp_path))
    launcher.unlink()
    for gone, program in ((in_bubblewrap, "bwrap"), (alone, str(launcher))):
        with pytest.raises(SandboxError) as refused:
            gone.start(shell("exit 0"))
        said = str(refused.value)
        assert f"its program {program} was here when this began and is gone" in said
        assert "`ridgeline doctor`" in said and "--resume" in said
