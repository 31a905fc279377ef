"""References that the judge's process cannot judge: each is told in one line that says what to mend."""

from pathlib import Path

import pytest
from tests.tools.judge.worker.judging import HEAD, INPUTS, judging, reference

from ridgeline.tools.errors import BadReferenceError, ProblemError
from ridgeline.tools.judge import hang_limit

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("warm_judge")]


def stateful(value: str) -> str:
    """A reference that has a buffer of this value and does not read it."""
    made = f"    def __init__(self):\n        super().__init__()\n        self.register_buffer('state', {value})\n"
    return reference("x", "return x + 1", "torch.ones(4, 4)").replace("    def forward", f"{made}    def forward", 1)


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (
            reference("x", "raise ValueError('no rows')", "torch.ones(4, 4)"),
            r"forward.* raised ValueError: no rows \(line 7 in forward\)$",
        ),
        (reference("x", "return x @ torch.ones(3)", "torch.ones(4, 4)"), r"RuntimeError: .* \(line 7 in forward\)$"),
        (
            HEAD + "class Model(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n",
            r"Model\(\) raised TypeError: .*'d'; the list that get_init_inputs\(\) returns holds its arguments$",
        ),
        (
            reference("x, y", "return x", "torch.ones(4, 4)"),
            r"forward\(\) raised TypeError: .*'y'; the list that get_inputs\(\) returns holds its arguments$",
        ),
        (reference("x", "return x + torch.rand(4, 4)", "torch.ones(4, 4)"), "nondeterministic.*self.training"),
        (
            reference("x", "return torch.autograd.grad((x * x).sum(), x)[0]", "torch.ones(4, 4, requires_grad=True)"),
            r"does not require grad .*\(line 7 in forward\); forward\(\) is called without gradients: write the",
        ),
        (reference("x", "return 3", "torch.ones(4, 4)"), "must return a tensor"),
        (
            reference("x", "return {'y': [x, 0.5]}", "torch.ones(4, 4)"),
            r"forward\(\) returns 0\.5 as result\['y'\]\[1\]: .* whole numbers, booleans and None alone; return it as a tensor",
        ),
        (reference("x", "return x, {'s': {1}}", "torch.ones(4, 4)"), r"returns a set as result\[1\]\['s'\]: "),
        (
            reference("x", "return x + 1, int(x[0, 0] * 2**20)", "torch.rand(4, 4)"),
            r"forward\(\) returns \d+ as result\[1\] and then \d+: no kernel gives a number; return it as a tensor",
        ),
        (
            reference("x", "return {'y': x + 1, 'large': bool((x.abs() > 20).any())}", "torch.rand(64, 64)"),
            r"forward\(\) returns False as result\['large'\] and then True: no kernel gives",  # in a trial of outliers
        ),
        (
            reference("x", "x.mul_(2); return x + 1, int(x[0, 0] * 2**20)", "torch.rand(4, 4)"),
            r"forward\(\) returns \d+ as result\[1\] and then",
        ),
        (reference("x", "return torch.ones(4)", "3.0"), "gives no tensor"),
        (
            reference("x", "return x.add_(1) if x[0, 0] > 0.6 else x + 1", "torch.rand(4, 4)"),
            "in place on an input for some",
        ),
        (reference("x", "return x", "torch.ones(4, 4, dtype=torch.complex64)"), "complex64"),
        (reference("x", "return x", "'text'"), "is a str"),
        (HEAD, "Model is missing"),
        ("import torch\n1 / 0\n", "ZeroDivisionError"),
        ("raise SystemExit('bye')", r"module raised SystemExit: bye \(line 1\)$"),
        (
            reference("x", "raise KeyboardInterrupt", "torch.ones(4, 4)"),
            "forward.* raised KeyboardInterrupt .line 7 in forward.$",
        ),
        (
            "raise AssertionError('Torch not compiled with CUDA enabled')",  # as `.cuda()` does without a GPU
            "make model and inputs on the CPU: Ridgeline moves them to the device$",
        ),
        ("import helper_beside_it", r"No module named 'helper_beside_it' \(line 1\); .*a reference is one file"),
        ("import os; os.listdir(os.path.dirname(__file__))", "'__file__' is not defined .*; a reference is one file"),
        ("raise ValueError('\\udcff \\x1b[31m\\nred')", r"ValueError: \\udcff \\x1b\[31m red \(line 1\)$"),
        (HEAD + "def Model():\n    return abs\n" + INPUTS.format(inputs="1"), "must give a torch.nn.Module"),
        (reference("x", "return x", "torch.ones(4, 4).to_sparse()"), "input x is sparse_coo"),
        (
            reference("x", "return torch.nested.nested_tensor([x, x[:3]])", "torch.ones(4, 4)"),
            r"forward\(\) returns a nested tensor, which kernels cannot write$",
        ),
        (reference("x", "return x.to_sparse()", "torch.ones(4, 4)"), "returns sparse_coo"),
        (reference("x", "return x", "torch.ones(4, 4, device='meta')"), "input x is on the meta device"),
        (
            reference("x", "return x.exp() / x.exp().sum(-1, keepdim=True)", "40 * torch.randn(256, 512)"),
            "it overflows on the way",
        ),
        (
            reference("x", "return x.tanh()", "torch.ones(4, 4).as_subclass(type('Own', (torch.Tensor,), {}))"),
            "input x is a Own, a subclass of torch.Tensor, which kernels cannot read$",
        ),
        (
            "class Key:\n    def __str__(self):\n        return self + 1\n"
            + reference("x", "return torch.ones(4, 4)", "{Key(): torch.ones(4, 4)}"),
            r"^reference.py: TypeError: unsupported operand",
        ),
        (stateful("torch.eye(4).to_sparse()"), "buffer state is sparse_coo, which kernels cannot read$"),
        (stateful("torch.quantize_per_tensor(torch.ones(4), 0.1, 0, torch.qint8)"), "buffer state is qint8"),
        (stateful("torch.ones(4).to(torch.float8_e4m3fn)"), "buffer state is float8_e4m3fn"),
        (reference("x", "return x[:0]", "torch.ones(4, 4)"), "only empty tensors"),
        (reference("x", "return x[x > 0]", "torch.randn(64, 64)"), r"forward\(\) gives float32 .* and then float32"),
        (reference("x", "return x", "torch.randn(int(torch.randint(9, 99, ())))"), r"get_inputs\(\) gives float32"),
        (reference("x, n", "return x * n", "torch.ones(4, 4), 10**400"), "input n exceeds 2\\^53"),
        (
            reference("x", "return x[0]", "given") + "given = [torch.ones(4, 4)]\ngiven.append({'again': given})\n",
            r"get_inputs\(\) returns a list that holds itself$",
        ),
        (
            reference("x", "made = [x + 1]; made.append(made); return made", "torch.ones(4, 4)"),
            r"forward\(\) returns a list that holds itself$",
        ),
    ],
)
def test_a_reference_that_cannot_be_judged_gives_one_line(source: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match=says) as caught, judging(source, tmp_path):
        pass
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("source", "where"),
    [
        ("while True:\n    pass\n", "line [12] in <module>"),
        (reference("x", "while True: pass", "torch.ones(4, 4)"), "line 7 in forward"),
        ("import time\n\ntime.sleep(1e6)\n", "line 3 in <module>"),
        ("while True:\n    try:\n        while True: pass\n    except BaseException:\n        pass\n", "line 3"),
    ],
)
def test_a_reference_that_does_not_end_is_named_with_its_line(
    source: str, where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hang_limit, "SHORTEST_S", 1.0)
    with (
        pytest.raises(ProblemError, match=rf"reference.py: {where}.*: did not end within 2 s; mend") as caught,
        judging(source, tmp_path, call_timeout_s=1.0),
    ):
        pass
    assert "\n" not in str(caught.value)


def test_words_like_those_of_a_hang_on_standard_error_are_no_hang(tmp_path: Path) -> None:
    source = "import os, sys\nsys.stderr.write('Timeout (0:01:00)!\\n')\nsys.stderr.flush()\nos._exit(1)\n"
    with pytest.raises(ProblemError, match="ended the process that ran it"), judging(source, tmp_path):
        pass


def test_a_reference_that_ends_or_crashes_its_process_gives_one_line(tmp_path: Path) -> None:
    for source, says in (("import os; os._exit(0)", "exit status 0"), ("import os; os.abort()", "signal 6")):
        with (
            pytest.raises(ProblemError, match=rf"ended the process that ran it \(.*{says}\)"),
            judging(source, tmp_path),
        ):
            pass


@pytest.mark.parametrize("said", ["hello", "[1]"])
def test_a_reference_that_writes_to_the_judges_connection_is_named(said: str, tmp_path: Path) -> None:
    source = f"""
import os, stat
for fd in range(3, 100):
    try:
        if stat.S_ISSOCK(os.fstat(fd).st_mode):
            os.write(fd, b"{said}\\n")
    except OSError:
        pass
"""
    with (
        pytest.raises(
            BadReferenceError, match=r"^reference.py: it wrote .* to a descriptor that is not its own"
        ) as caught,
        judging(source, tmp_path),
    ):
        pass
    assert "\n" not in str(caught.value)


def test_a_reference_that_the_kernel_ends_is_told_of_memory(tmp_path: Path) -> None:
    line = r"killed by signal 9\); memory probably ran out: .*choose smaller sizes \(targets.cpu.sizes\)$"
    with pytest.raises(ProblemError, match=line), judging("import os; os.kill(os.getpid(), 9)", tmp_path):
        pass


def test_a_problem_that_does_not_fit_the_memory_is_refused_before_it_is_judged(tmp_path: Path) -> None:
    """3 x 2 x 4 MiB of sets and 2 x 8 MiB in float64."""
    line = (
        r"^reference.py: judging it takes at least 42 MB \(3 sets of inputs and outputs, and one in float64\), "
        r"this machine has 42 MB: choose smaller sizes \(targets.cpu.sizes\)$"
    )
    source = reference("x", "return x * 2", "torch.randn(1024, 1024)")
    with pytest.raises(ProblemError, match=line), judging(source, tmp_path, memory_bytes=(40 << 20) - 1):
        pass


def test_inputs_that_memory_does_not_hold_are_one_line_with_figures_and_remedy(tmp_path: Path) -> None:
    source = reference("x", "return x * 2", "torch.empty(1 << 50)")
    line = r"^reference.py: memory ran out: judging it takes about \d+ GB, this machine has .* \(targets.cpu.sizes\)$"
    with pytest.raises(ProblemError, match=line) as raised, judging(source, tmp_path):
        pass
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("raise torch.OutOfMemoryError('CUDA out of memory. Tried to allocate 12.00 GiB.')", "forward"),
        (
            "if x.dtype is torch.float64: raise torch.OutOfMemoryError('Tried to allocate 24 GiB.')\n        return x * x",
            "",
        ),
    ],
)
def test_a_problem_that_does_not_fit_the_gpu_is_one_line_with_the_remedy(body: str, what: str, tmp_path: Path) -> None:
    with (
        pytest.raises(
            ProblemError, match=rf"{what}.*Tried to allocate.*smaller sizes \(targets.cuda.sizes\)$"
        ) as raised,
        judging(reference("x", body, "torch.randn(8, 8)"), tmp_path),
    ):
        pass
    assert "\n" not in str(raised.value)
    assert str(raised.value).count("smaller sizes") == 1
