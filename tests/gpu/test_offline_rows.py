"""Every structure of the row-wise family on a GPU, alone and beside others, through the judge."""

from __future__ import annotations

import itertools

import pytest

from ridgeline.graph.offline.composer import compatible, merge
from ridgeline.graph.offline.rowwise.cuda.composer import RowwiseCuda
from ridgeline.graph.search.context import subject_of

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(900)]

HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n"
PARAMETERS = """    def __init__(self, cols):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(cols))
        self.norm = nn.LayerNorm(cols)
        nn.init.normal_(self.norm.weight)
        nn.init.normal_(self.norm.bias)
"""


def reference(forward: str, inputs: str, init: str = "[]", parameters: str = "") -> str:
    body = forward if forward.startswith("def ") else f"def forward(self, x):\n        return {forward}"
    return (
        f"{HEAD}class Model(nn.Module):\n{parameters}    {body}\n"
        f"def get_inputs():\n    return [{inputs}]\ndef get_init_inputs():\n    return {init}\n"
    )


BLOCK = "def forward(self, x, y):\n        return self.norm(F.gelu(x + self.bias) + y)"
GATE = "def forward(self, x, y):\n        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * F.silu(y)"
MASKED = (
    "def forward(self, x, mask):\n        return torch.softmax(x.masked_fill(~mask[:, None, :], -float('inf')), dim=-1)"
)
COSINE = "def forward(self, x, y):\n        return F.cosine_similarity(x, y, dim=-1)"
HALF = "F.layer_norm(x, x.shape[-1:]) * 2"
REFERENCES = {
    "softmax": reference("torch.softmax(x, -1)", "3 * torch.randn(300, 16384)"),
    "softmax_long": reference("torch.softmax(x, -1)", "torch.randn(40, 262144)"),
    "softmax_odd": reference("torch.softmax(x, -1)", "torch.randn(37, 1001)"),
    "layer_norm_long": reference(
        "self.norm(x)", "3 * torch.randn(6, 600000) + 2", "[600000]", PARAMETERS.replace("self.bias = ", "unused = ")
    ),
    "block": reference(BLOCK, "torch.randn(512, 4096), torch.randn(512, 4096)", "[4096]", PARAMETERS),
    "block_wide": reference(BLOCK, "torch.randn(150, 12000), torch.randn(150, 12000)", "[12000]", PARAMETERS),
    "rms_gate": reference(GATE, "torch.randn(2000, 768), torch.randn(2000, 768)"),
    "log_sum_exp": reference("torch.logsumexp(x, -1)", "torch.randn(200, 20000)"),
    "cosine": reference(COSINE, "torch.randn(700, 9000), torch.randn(700, 9000)"),
    "masked": reference(MASKED, "torch.randn(8, 128, 1200), torch.rand(8, 1200) > 0.3"),
    "tiny_rows": reference("torch.softmax(x, -1), x.amax(-1)", "torch.randn(5000, 6)"),
    "bfloat16": reference(HALF, "torch.randn(600, 8192).bfloat16()"),
    "plain": reference("F.silu(x) * 2", "torch.randn(333, 10007)"),
}
THOROUGH = ("softmax", "block_wide")
ONE_OF_EACH_DTYPE = ("block_wide", "bfloat16")


def composer_of(problem):
    return RowwiseCuda(subject_of(problem))


def largest(composer, start):
    """Return `start` with every structure that still fits beside it."""
    for structure in composer.applicable():
        start = start | {structure} if compatible(composer, start | {structure}) else start
    return start


def compositions(composer, *, thorough: bool):
    base, usable = composer.base(), composer.applicable()
    found = [frozenset(), base, *(frozenset({s}) for s in usable), *(merge(composer, base, {s}) for s in usable)]
    found += [largest(composer, frozenset({s})) for s in usable]
    if thorough:
        found += [frozenset(p) for p in itertools.combinations(usable, 2) if compatible(composer, p)]
    return list(dict.fromkeys(found))


def check(bench, name, *, thorough, variations):
    tolerance = "bf16" if name == "bfloat16" else "fp32"
    problem = bench.problem(REFERENCES[name], tolerance, name)
    composer = composer_of(problem)
    sources = {
        f"{'+'.join(sorted(c)) or 'none'}:{variation}": composer.write_source(c, variation)
        for c in compositions(composer, thorough=thorough)
        for variation in (variations if len(c) > 3 else (0,))
    }
    bench.assert_correct(problem, sources)


@pytest.mark.parametrize("name", ONE_OF_EACH_DTYPE)
def test_each_structure_is_correct_in_each_dtype(bench, name):
    check(bench, name, thorough=False, variations=(0,))


@pytest.mark.slow
@pytest.mark.parametrize("name", REFERENCES)
def test_every_composition_is_correct(bench, name):
    check(bench, name, thorough=name in THOROUGH, variations=(0, 1, 2))
