"""Which shipped problems need no key is what the offline model says of them."""

from __future__ import annotations

import argparse

import pytest

from ridgeline.graph.cli.commands import problems
from ridgeline.graph.cli.keyless import KEYLESS_PATH, keyless_targets, keyless_text
from ridgeline.problems.spec import shipped_problems

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("warm_judge")]


@pytest.mark.thorough
def test_the_file_says_what_the_offline_model_says_now() -> None:
    assert KEYLESS_PATH.read_text(encoding="utf-8") == keyless_text(), "run python -m ridgeline.graph.cli.keyless"
    known = keyless_targets()
    assert set(known) == set(shipped_problems())
    assert known["quickstart"] == ["cpu", "cuda"]
    assert known["rms_norm_gate_torch"] == known["attention_fp16"] == []


def test_problems_marks_those_that_need_no_key(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(problems, "keyless_targets", lambda: {"quickstart": ["cpu", "cuda"], "softmax": ["cuda"]})
    monkeypatch.setenv("COLUMNS", "200")
    assert problems.execute(argparse.Namespace(json=False, problem=None)) == 0
    said = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line.strip()}
    assert " yes " in said["quickstart"]
    assert " on cuda " in said["softmax"]
    assert " no " in said["matmul"]
