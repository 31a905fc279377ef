"""A reference outlined on tensors without values: one small file of our own for each kind of construct."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.environments import child_environment

from ridgeline.tools.errors import EngineError
from ridgeline.tools.judge.outline import Outline
from ridgeline.tools.judge.outline_process import OutlineProcess
from ridgeline.tools.judge.process import JudgeProcess
from ridgeline.tools.judge.set_count import WORKING_SETS, count_sets
from ridgeline.tools.machine.devices import detect_device
from ridgeline.tools.records.problem import Target
from ridgeline.tools.records.vocabulary import ArgKind, DeviceKind, Interface, PrecisionClass, Role

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("warm_judge")]

HEAD = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n"
TRITONS = "raise RuntimeError('0 active drivers ([]). There should only be one.')"
GIB = 1 << 30


def reference(init: str = "pass", args: str = "x", body: str = "return x * 2", inputs: str = "torch.rand(4, 8)") -> str:
    return (
        f"{HEAD}class Model(nn.Module):\n    def __init__(self, n=8, *, bias=True):\n        super().__init__()\n"
        f"        {init}\n    def forward(self, {args}):\n        {body}\n"
        f"def get_inputs():\n    return [{inputs}]\ndef get_init_inputs():\n    return [8]\n"
    )


@pytest.fixture(scope="module")
def outlines(warm_judge: None) -> Iterator[OutlineProcess]:
    with OutlineProcess(limit_s=10.0, memory_bytes=GIB) as process:
        yield process


@pytest.fixture(scope="module")
def telling(warm_judge: None) -> Iterator[OutlineProcess]:
    """Outlines with all that may be asked for."""
    with OutlineProcess(with_graphs=True, with_calls=True) as process:
        yield process


def names(outline: Outline, role: Role) -> list[str]:
    assert outline.signature is not None
    return [a.name for a in outline.signature.with_role(role)]


@pytest.mark.first_case
@pytest.mark.parametrize(
    ("source", "inputs", "outputs"),
    [
        (reference(args="a, b", body="return a @ b", inputs="torch.rand(4, 8), torch.rand(8, 2)"), ["a", "b"], ["out"]),
        (reference(args="x, s", body="return x * s", inputs="torch.rand(4), 3.14"), ["x", "s"], ["out"]),
        (reference(args="x, m", body="return x * m", inputs="torch.rand(4), torch.rand(4) > 0.5"), ["x", "m"], ["out"]),
        (reference(body="return torch.argmax(x, dim=1)"), ["x"], ["out"]),
        (reference(body="return x + 1, (x - 1, {'z': x * 2})"), ["x"], ["out_0", "out_1", "out_2"]),
        (reference(args="xs", body="return torch.cat(xs)", inputs="[torch.rand(4), torch.rand(4)]"), ["xs_0", "xs_1"], ["out"]),
        (reference(args="x, h=None", body="return x if h is None else x + h"), ["x"], ["out"]),
        (reference(args="p, t", body="return p[t]", inputs="torch.rand(4, 8), torch.arange(4)"), ["p", "t"], ["out"]),
    ],
)  # fmt: skip
def test_arguments_of_every_kind_are_outlined(
    outlines: OutlineProcess, source: str, inputs: list[str], outputs: list[str]
) -> None:
    found = outlines.outline(source)
    assert (found.code, found.reason) == ("", "")
    assert names(found, Role.INPUT) == inputs
    assert names(found, Role.OUTPUT) == outputs


@pytest.mark.parametrize(
    ("body", "sources"),
    [
        ("return {'y': x + 1, 'n': 3, 'parts': [x - 1]}", ["result['y']", "result['parts'][0]"]),
        ("return x + 1, (x - 1, {'z': x * 2})", ["result[0]", "result[1][0]", "result[1][1]['z']"]),
        ("return x + 1, x - 1", ["out_0", "out_1"]),
        ("x.mul_(2); return {'y': x + 1}", ["result['y']", "x_after"]),
    ],
)
def test_an_output_tells_where_in_a_nested_result_it_lies(
    outlines: OutlineProcess, body: str, sources: list[str]
) -> None:
    signature = outlines.outline(reference(body=body)).signature
    assert signature is not None
    assert [a.source for a in signature.with_role(Role.OUTPUT)] == sources


@pytest.mark.parametrize(
    ("source", "code", "says"),
    [
        (reference(body="return x + torch.randn(4, 8)"), "random", r"draws random numbers \(randn\)"),
        (reference(body="return F.dropout(x)"), "random", "draws random numbers"),
        (reference(body="return F.dropout(x, training=self.training)"), "", ""),
        (reference(init="self.d = nn.Dropout(0.5); self.b = nn.BatchNorm1d(8)", body="return self.b(self.d(x))"), "", ""),
        (reference(init="self.b = nn.BatchNorm1d(8)", body="self.b.train(); return self.b(x)"), "state", r"its own `b\.\w+`"),
        (reference(init="self.seen = nn.Buffer(torch.ones(8))", body="self.seen.add_(1); return x"), "state", r"own `seen` \("),
        (reference(body="return F.scaled_dot_product_attention(x, x, x)"), "", ""),
        (reference(body="return F.scaled_dot_product_attention(x, x, x, dropout_p=0.5)"), "random", "draws random numbers"),
        (reference(body="return x.relu_()"), "", ""),
        (reference(body="x.relu_(); return x.sum(1)"), "", ""),
        (reference(inputs="'text'"), "form", "is a str"),
        (reference(body="return x.to(torch.complex64)"), "form", "complex64"),
        (reference(inputs="torch.rand(0, 8)"), "form", r"only empty tensors: a kernel would have nothing to do"),
        (reference(body="return x[:0], x + 1"), "", ""),
        (reference(body="return x + 1, {'rows': x.shape[0], 'is_even': True, 'weights': None}"), "", ""),
        (reference(body="return {'y': x + 1, 'lr': 0.1}"), "form", r"returns 0\.1 as result\['lr'\]: .* return it as a tensor"),
        (reference(body="raise ValueError('no rows')"), "raised", r"ValueError: no rows \(line \d+ in forward\)"),
        ("import a_package_nobody_has\n", "package", "No module named"),
        (reference(init="import os; os._exit(3)"), "raised", "ended the process"),
        (reference(init="self.t = torch.linspace(0, 1, 3)[2].item()"), "", ""),
        (reference(init="self.l = nn.LazyLinear(4)", body="return self.l(x)"), "form", r"parameter l\.weight has no shape yet"),
        (reference(body="return x[x > 0]"), "values", "only the judge can tell.*a result has another shape.* a run refuses it"),
        (reference(body="return x * float(x.sum())"), "values", r"only the judge can tell.*\(line \d+ in forward\)$"),
    ],
)  # fmt: skip
def test_what_speaks_against_a_reference_is_told(outlines: OutlineProcess, source: str, code: str, says: str) -> None:
    found = outlines.outline(source)
    assert found.code == code, found.reason
    assert not says or re.search(says, found.reason), found.reason
    assert "\n" not in found.reason


@pytest.mark.parametrize(
    ("body", "code", "says"),
    [
        ("return x.long().bincount()", "raised", "RuntimeError: bincount only supports 1-d"),
        ("return x * float(x.sum()) + torch.rand(4, 8)", "form", "is nondeterministic"),
        ("return x[x > 0.5]", "form", r"gives float32 \(\d+,\) and then float32 \(\d+,\): a kernel takes one form"),
        ("return x * float(x.sum())", "values", "only the judge can tell"),
        ("x * float(x.sum()); import os; os._exit(0)", "values", "only the judge can tell"),
        ("x * float(x.sum()); raise MemoryError", "values", "only the judge can tell"),
        ("float(x.sum())\n        while True: pass", "values", "only the judge can tell"),
        (
            "x.sum().item(); return torch.ops.aten._convert_weight_to_int4pack(x.int(), 2)",
            "gpu",
            "NotImpl.*Could not run '",
        ),
        (
            "float(x.sum()); y = x.to(torch.float8_e5m2); return y + y",
            "gpu",
            r"not implemented for 'Float8_e5m2' \(line \d+ in",
        ),
        ("float(x.sum()); torch.cuda.current_stream(); return x * 2", "gpu", r"not compiled with CUDA.* in forward\)$"),
        ("float(x.sum()); torch.cuda.Stream(); return x * 2", "gpu", "RuntimeError: "),
        ("float(x.sum()); exec(compile(TRITONS, 'driver.py', 'exec'))", "gpu", "RuntimeError: 0 active drivers"),
        (
            "float(x.sum()); return x.cuda() * 2",
            "raised",
            "; make model and inputs on the CPU: Ridgeline moves them to",
        ),
        ("float(x.sum()); nn.Linear(8, 8).to('cuda')", "raised", "; make model and inputs on the CPU"),
        ("float(x.sum()); return torch.histc(x.int(), 16, 0, 15)", "gpu", "not implemented for 'Int'"),
        ("float(x.sum()); return torch.softmax(x.long(), -1)", "raised", "not implemented for 'Long'"),
        ("float(x.sum()); return nn.Module()(x)", "raised", 'is missing the required "forward" function'),
        ("float(x.sum()); assert len(x) == 9, 'the GPU kernel takes 9 rows'", "raised", "the GPU kernel takes 9 rows"),
        (
            "float(x.sum()); raise NotImplementedError('the second half')",
            "raised",
            "NotImplementedError: the second half",
        ),
        ("float(x.sum()); raise RuntimeError('CUDA alone')", "raised", "CUDA alone"),
        ("float(x.sum()); return {}['GPU']", "raised", "KeyError: 'GPU'"),
        ("float(x.sum()); import triton_of_nobody", "package", "No module named 'triton_of_nobody'"),
    ],
)
def test_a_reference_that_reads_values_runs_for_real_where_that_is_asked_for(
    outlines: OutlineProcess, body: str, code: str, says: str
) -> None:
    assert outlines.outline(reference(body=body)).code == "values"
    found = outlines.outline(f"TRITONS = {TRITONS!r}\n{reference(body=body)}", with_run=True)
    assert found.code == code, found.reason
    assert re.search(says, found.reason), found.reason


def test_what_tensors_without_values_cannot_be_is_told_by_a_run(outlines: OutlineProcess) -> None:
    source = reference(inputs="torch.nested.nested_tensor([torch.rand(2, 3), torch.rand(4, 3)])")
    found = outlines.outline(source)
    assert (found.code, found.reason[:23]) == ("values", "only the judge can tell")
    found = outlines.outline(source, with_run=True)
    assert (found.code, found.reason) == ("form", "input x is a nested tensor, which kernels cannot read")


OUTLINING = """
import sys
from ridgeline.tools.judge.outline_process import OutlineProcess
with OutlineProcess(with_graphs=True) as outlines:
    print(outlines.outline(sys.argv[1]).description is not None)
"""


@pytest.mark.parametrize("cache", ["cache", "file/cache"])
def test_an_outline_leaves_no_folder_among_the_temporary_files(cache: str, tmp_path: Path) -> None:
    (tmp_path / "temporary").mkdir()
    (tmp_path / "file").touch()  # in which no folder can be made
    folders = {"TMPDIR": tmp_path / "temporary", "RIDGELINE_CACHE_DIR": tmp_path / cache}
    env = child_environment(**{name: str(folder) for name, folder in folders.items()})
    command = [sys.executable, "-c", OUTLINING, reference()]  # in no process that imported torch before
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout == "True\n", done.stderr
    if cache == "cache":
        assert list((tmp_path / "temporary").iterdir()) == []


def test_a_reference_sees_no_key_of_a_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-user")
    with OutlineProcess(limit_s=10.0, memory_bytes=GIB) as process:
        found = process.outline(reference(init="import os; raise ValueError(os.environ.get('OPENAI_API_KEY'))"))
    assert "ValueError: None" in found.reason


def test_a_process_that_a_reference_leaves_holds_no_answer_back(outlines: OutlineProcess) -> None:
    """It ends by itself, some seconds after the limit of the outline."""
    body = "import os, time; os.fork() or (time.sleep(15), os._exit(0)); return x * 2"
    outline = outlines.outline(reference(body=body), PrecisionClass.FP32)
    assert names(outline, Role.INPUT) == ["x"], outline


@pytest.mark.parametrize("said", [r"\xff{\"x\": 1}", "hello", "{}", r"\xff\n\xff"])
@pytest.mark.parametrize("end", [r"\n", ""])
def test_what_a_reference_writes_to_descriptors_that_are_not_its_own_is_no_answer(
    outlines: OutlineProcess, said: str, end: str
) -> None:
    write = f"    try:\n        os.write(fd, b'{said}{end}')\n    except OSError:\n        pass\n"
    writes = f"import os\nfor fd in range(3, 20):\n{write}"
    found = outlines.outline(writes + reference(body="return x + 1"))
    assert (found.code, names(found, Role.INPUT)) == ("", ["x"]), found.reason
    left = outlines.outline(writes + "os._exit(0)\n")
    assert (left.code, left.signature) == ("raised", None)


def test_a_reference_of_many_gib_is_outlined_without_them(outlines: OutlineProcess) -> None:
    init, inputs = "self.l = nn.Linear(65536, 65536)", "torch.rand(65536, 65536)"
    found = outlines.outline(reference(init=init, body="return torch.relu(self.l(x))", inputs=inputs))
    assert found.code == ""
    assert found.set_bytes == 2 * 16 * GIB
    assert found.parameter_bytes == 16 * GIB + 4 * 65536
    assert found.forward_bytes == 3 * 16 * GIB + 16 * GIB + 4 * 65536, "what relu is given lives beside its result"


def test_a_device_that_is_or_may_be_too_small_is_named_with_both_figures(outlines: OutlineProcess) -> None:
    cpu = detect_device("cpu")
    found = outlines.outline(reference(inputs="torch.rand(1024, 1048576)"))
    large, tight, small = (replace(cpu, kind=DeviceKind.CUDA, memory_bytes=n * GIB) for n in (141, 80, 32))
    assert found.on(large) == found
    sets = count_sets(8 * GIB, kind=large.kind, cache_bytes=large.cache_bytes, memory_bytes=large.memory_bytes)
    assert found.judge_bytes(large) == (sets + WORKING_SETS) * 8 * GIB
    assert found.on(tight).code == "tight"
    assert re.match(
        r"judging it takes about [\d.]+ GB, this device has 85.9 GB: only a run can", found.on(tight).reason
    )
    assert found.on(small).code == "memory"
    assert re.match(r"judging it takes at least [\d.]+ GB .* has 34.4 GB: choose smaller", found.on(small).reason)
    assert "targets.cuda.sizes" in found.on(small).reason


def test_a_reference_that_allocates_for_real_meets_its_limit(outlines: OutlineProcess) -> None:
    found = outlines.outline(reference(init="self.b = bytearray(3 << 30)"))
    assert found.code == "memory"
    assert outlines.outline(reference()).code == "", "the next one is not concerned"


def test_a_reference_that_never_ends_is_told_and_the_next_one_answered() -> None:
    with OutlineProcess(limit_s=2.0) as process:
        found = process.outline(reference(body="while True: pass"))
        assert found.code == "hung"
        assert found.reason.startswith(
            "line 9 in forward did not end within 1 s, even on tensors without values; mend"
        ), found
        assert process.outline("import a_package_nobody_has\n").code == "package"
        process._process.kill()
        with pytest.raises(EngineError, match="ended with status -9"):
            process.outline(reference())


def test_the_outline_describes_a_reference_as_the_judge_does(
    outlines: OutlineProcess, telling: OutlineProcess, tmp_path: Path
) -> None:
    init = "self.l = nn.Linear(8, 8); self.register_buffer('scale', torch.ones(8))"
    source = reference(init=init, args="x, s, ys", body="return self.l(x) * self.scale + s * ys[0], x.argmax(1)")
    source = source.replace("return [torch.rand(4, 8)]", "return [torch.rand(8, 4).T, 0.5, [torch.rand(4, 1)]]")
    problem = Target(
        name="p",
        reference_source=source,
        interface=Interface.C,
        tolerance=PrecisionClass.FP32,
        device=detect_device("cpu"),
    )
    judge = JudgeProcess(problem, os.urandom(16), tmp_path)
    try:
        expected = judge.problem.description
    finally:
        judge.close()
    found = outlines.outline(source)
    assert (found.signature, found.description) == (expected.signature, None)
    assert any(a.kind is ArgKind.SCALAR for a in expected.signature.args)
    described = telling.outline(source).description
    assert described == replace(expected, skipped_trials=())
    assert described.reference_graph is not None and described.flops > 0


def test_how_a_reference_is_called_is_told_where_it_was_asked_for(
    outlines: OutlineProcess, telling: OutlineProcess
) -> None:
    inputs = "torch.rand(4), [torch.rand(4)], 0.5"
    source = reference(args="x, xs, t, m=None", body="return x + xs[0], {'k': [x * t]}", inputs=inputs)
    assert outlines.outline(source).call is None
    told = telling.outline(source).call
    writing = telling.outline(reference(body="return x.add_(1) * 2")).call
    refused = telling.outline(reference(body="return torch.max(x, dim=1)"))
    assert told is not None
    assert told.to_json() == {
        "names": ["x", "xs", "t"],
        "arguments": [0, {"list": [1]}, {"value": "0.5"}],
        "result": {"tuple": [0, {"dict": [["'k'", {"list": [1]}]]}]},
        "written": [],
    }
    assert writing is not None and writing.written == (0,)
    assert refused.call is None
    assert refused.reason == "forward() gives a max: plain lists, tuples and dicts alone"
