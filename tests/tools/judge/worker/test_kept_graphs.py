"""Graphs that were exported before: which are kept, when one is used again, and what is exported anew."""

import json
from pathlib import Path

import pytest
from tests.tools.judge.worker.judging import judging, reference

from ridgeline.tools.judge.worker.graph_export import GRAPH_SCHEMA_VERSION, Graph
from ridgeline.tools.judge.worker.kept_graphs import kept_graph, tells_all
from ridgeline.tools.records.problem import ArgSpec, Signature
from ridgeline.tools.records.vocabulary import Role

SIGNATURE = Signature(args=(ArgSpec(name="x", role=Role.INPUT, dtype="float32", shape=(4,)),))
WIDER = Signature(args=(ArgSpec(name="x", role=Role.INPUT, dtype="float32", shape=(8,)),))
SOURCE = reference("x", "return torch.relu(x)", "torch.randn(4)")


class Exporter:
    """An export that counts its calls and writes their number into the graph."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> Graph:
        self.calls += 1
        empty = {"nodes": [], "inputs": [], "parameters": {}, "outputs": [], "mutations": {}}
        return {"schema_version": GRAPH_SCHEMA_VERSION, **empty, "inputs": [str(self.calls)]}


@pytest.fixture
def export() -> Exporter:
    return Exporter()


def test_a_graph_is_exported_once(tmp_path: Path, export: Exporter) -> None:
    first = kept_graph(tmp_path / "graphs", SOURCE, SIGNATURE, export)
    assert kept_graph(tmp_path / "graphs", SOURCE, SIGNATURE, export) == first
    assert export.calls == 1


@pytest.mark.parametrize(("source", "signature"), [(SOURCE + "# other\n", SIGNATURE), (SOURCE, WIDER)])
def test_another_reference_has_another_graph(
    tmp_path: Path, export: Exporter, source: str, signature: Signature
) -> None:
    kept_graph(tmp_path, SOURCE, SIGNATURE, export)
    assert kept_graph(tmp_path, source, signature, export)["inputs"] == ["2"]


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"graph": 3}', '{"graph": {"schema_version": 1}}'])
def test_a_damaged_graph_is_exported_anew(tmp_path: Path, export: Exporter, damage: str) -> None:
    kept_graph(tmp_path, SOURCE, SIGNATURE, export)
    (kept,) = tmp_path.iterdir()
    kept.write_text(damage)
    assert kept_graph(tmp_path, SOURCE, SIGNATURE, export)["inputs"] == ["2"]
    assert kept_graph(tmp_path, SOURCE, SIGNATURE, export)["inputs"] == ["2"]


def test_what_cannot_be_kept_costs_time_alone(tmp_path: Path, export: Exporter) -> None:
    (tmp_path / "file").write_text("in the way")
    for folder in (tmp_path / "file", None):
        kept_graph(folder, SOURCE, SIGNATURE, export)
        kept_graph(folder, SOURCE, SIGNATURE, export)
    assert export.calls == 4


def test_a_reference_that_reads_more_than_its_text_is_exported_anew(tmp_path: Path, export: Exporter) -> None:
    source = SOURCE.replace("import torch\n", "import torch, weights\n", 1)
    kept_graph(tmp_path, source, SIGNATURE, export)
    kept_graph(tmp_path, source, SIGNATURE, export)
    assert export.calls == 2


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("import math", True),
        ("import torch.nn.functional as F", True),
        ("from torch.nn import functional", True),
        ("from collections.abc import Sequence", True),
        ("import os", False),
        ("import numpy", False),
        ("import torch, timm", False),
        ("from . import sizes", False),
        ("from torch import hub", False),
        ("import torch.cuda", False),
        ("from torch import cuda as device", False),
        ("WEIGHTS = torch.load('weights.pt')", False),
        ("ROWS = int(open('rows').read())", False),
        ("ROWS = eval('3')", False),
        ("torch.ops.load_library('ops.so')", False),
    ],
)
def test_only_a_text_that_tells_all_is_believed(line: str, *, expected: bool) -> None:
    assert tells_all(f"import torch\n{line}\n") is expected


@pytest.mark.usefixtures("warm_judge")
def test_a_second_judge_describes_the_reference_by_the_kept_graph(tmp_path: Path) -> None:
    with judging(SOURCE, tmp_path) as judge:
        exported = judge.problem.description
    (kept,) = (tmp_path / "graphs").iterdir()
    with judging(SOURCE, tmp_path) as judge:
        assert judge.problem.description == exported
    content = json.loads(kept.read_text())
    content["graph"]["nodes"][0]["name"] = "planted"
    kept.write_text(json.dumps(content))
    with judging(SOURCE, tmp_path) as judge:
        assert (judge.problem.description.reference_graph or {})["nodes"][0]["name"] == "planted"
