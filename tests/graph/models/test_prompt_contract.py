"""What the prompts say of the device, the problem and the contract of a kernel."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.graph.requests_made import DESCRIPTION, ideation, kernel, subject

from ridgeline.graph.models.prompts import (
    argument_lines,
    describe_argument,
    render_ideation,
    render_kernel,
    render_prefix,
)
from ridgeline.tools.build.interfaces import entry_declaration, problem_header
from ridgeline.tools.records.problem import ArgSpec, DeviceFact, Signature
from ridgeline.tools.records.vocabulary import ArgKind, DeviceKind, Interface, Role


def test_the_devices_table_is_part_of_the_problem() -> None:
    given = replace(subject(), facts=(DeviceFact(name="L2 cache", value="2 MiB a core"),))
    assert "- L2 cache: 2 MiB a core\n" in render_prefix(given)


def test_rates_that_the_device_s_table_has_are_not_told_again_with_the_floor() -> None:
    given = replace(subject(), facts=(DeviceFact(name="memory bandwidth", value="193 GB/s read and written"),))
    assert " GB/s; no kernel is faster" in render_kernel(kernel())
    assert " ms; no kernel is faster" in render_kernel(kernel(subject=given))


@pytest.mark.parametrize(("arch", "is_told"), [("sm_90a", True), ("sm_100a", True), ("sm_80", False)])
def test_a_gpu_that_copies_tiles_is_told_where_their_maps_come_from(arch: str, is_told: bool) -> None:
    device = replace(subject().device, kind=DeviceKind.CUDA, arch=arch)
    text = render_prefix(replace(subject(), language="cu", device=device))
    assert ("cuTensorMapEncodeTiled" in text) == is_told


def test_a_module_is_asked_for_in_python_with_the_references_names() -> None:
    weight = ArgSpec(name="ln_weight", role=Role.PARAMETER, shape=(8,), strides=(1,), source="ln.weight")
    described = replace(DESCRIPTION, signature=Signature(args=(*DESCRIPTION.signature.args, weight)))
    given = replace(subject(), interface=Interface.MODULE, language="py", description=described)
    text = render_kernel(kernel(subject=given))
    for part in (
        "One whole Python (.py) file",
        "defines `ModelNew`",
        "load_inline",
        "- ln.weight: parameter float32 (8,)",
    ):
        assert part in text
    assert "`run`" not in text and "RIDGELINE_STAGE" not in text


def test_a_torch_source_for_a_gpu_is_asked_for_in_cuda_on_torchs_own_stream() -> None:
    device = replace(subject().device, kind=DeviceKind.CUDA, arch="sm_90a")
    text = render_prefix(replace(subject(), interface=Interface.TORCH, language="cu", device=device))
    for part in ("One whole CUDA C++ (.cu) file", "c10::cuda::getCurrentCUDAStream()", "Outputs are new memory"):
        assert part in text
    for part in ("(.cpp)", "the given stream", "allocate nothing", "poisoned", "-std="):
        assert part not in text
    assert "(name in upper case).\n\nBuilt for" in text


def test_a_module_on_a_cpu_keeps_infinities_as_the_other_interfaces_do() -> None:
    given = replace(subject(), interface=Interface.MODULE, language="py")
    for interface in (subject(), given):
        assert "-fno-finite-math-only" in render_prefix(interface)


def test_strides_are_told_where_a_tensor_is_not_contiguous() -> None:
    across = ArgSpec(name="x", role=Role.INPUT, shape=(4, 8), strides=(1, 4))
    assert describe_argument(across) == "x: input float32 (4, 8), strides (1, 4)"
    assert describe_argument(replace(across, strides=(8, 1))) == "x: input float32 (4, 8)"


def test_neighbouring_arguments_that_differ_by_name_alone_are_told_in_one_line() -> None:
    x = ArgSpec(name="x", role=Role.INPUT, shape=(4, 8), strides=(8, 1))
    eps = ArgSpec(name="eps", role=Role.INPUT, kind=ArgKind.SCALAR, dtype="float64", value=1e-5)
    args = (x, replace(x, name="y"), eps, replace(x, name="z"), replace(x, name="out", role=Role.OUTPUT))
    assert argument_lines(args, Interface.C) == [
        "x, y: input float32 (4, 8)",
        "eps: input scalar float64, nominally 1e-05",
        "z: input float32 (4, 8)",
        "out: output float32 (4, 8)",
    ]


@pytest.mark.parametrize(
    ("kind", "dtype"), [(DeviceKind.CPU, "float16"), (DeviceKind.CPU, "bfloat16"), (DeviceKind.CUDA, "float16")]
)
def test_what_is_shown_of_the_header_is_in_the_one_that_is_compiled(kind: DeviceKind, dtype: str) -> None:
    signature = Signature(
        args=(
            ArgSpec(name="x", role=Role.INPUT, dtype=dtype, shape=(4, 8), strides=(8, 1)),
            ArgSpec(name="eps", role=Role.INPUT, kind=ArgKind.SCALAR, dtype="float64", value=1e-5),
            ArgSpec(name="out", role=Role.OUTPUT, dtype=dtype, shape=(4, 8), strides=(8, 1)),
        )
    )
    language = "cpp" if kind is DeviceKind.CPU else "cu"
    given = replace(
        subject(), language=language, header=entry_declaration(signature, kind),
        description=replace(DESCRIPTION, signature=signature), device=replace(subject().device, kind=kind),
    )  # fmt: skip
    shown, compiled = render_prefix(given), " ".join(problem_header(signature, kind).split())
    for name in ("X_NDIM", "X_SHAPE_0", "X_STRIDE_0", "X_NUMEL", "EPS_VALUE", "RIDGELINE_ALIGNED(pointer)"):
        assert name in shown and name in compiled
    parameters = shown.partition('extern "C" void run(')[2].partition(");")[0]
    assert f"void run( {parameters});" in compiled
    types = [word for word in ("fp16", "bf16") if f"struct {word} " in compiled or f"using {word} " in compiled]
    told = [word for word in ("fp16", "bf16") if f"`{word}`" in shown]
    assert told == [{"float16": "fp16", "bfloat16": "bf16"}[dtype]] and set(told) <= set(types)


def test_stages_are_asked_for_by_an_identifier_and_where_they_may_stand() -> None:
    text = render_prefix(subject())
    assert "`RIDGELINE_STAGE(pack);` (an identifier) in any function, in parallel regions too" in text


def test_types_and_inputs_that_the_problem_lacks_are_not_told() -> None:
    """The toy problem is fp32 without parameters."""
    text = render_prefix(subject())
    for absent in ("fp16", "bf16", "CUDA", "Masks, lengths", "arameters are random"):
        assert absent not in text
    lengths = ArgSpec(name="lengths", role=Role.INPUT, dtype="int64", shape=(8,), strides=(1,))
    signature = Signature(args=(*DESCRIPTION.signature.args, lengths))
    given = replace(subject(), description=replace(DESCRIPTION, signature=signature))
    assert "Masks, lengths, tables and parameters are random too." in render_prefix(given)


def test_the_contract_says_what_a_writer_of_intrinsics_asks() -> None:
    text = render_prefix(subject())
    for part in (
        "each row of the last dimension", "Inputs hold no NaN", "OpenMP has a thread a core; keep large buffers off stacks",
        "masked-off lanes may lie outside a tensor", "only where unrolling makes all indices constants",
        "the expression `RIDGELINE_ALIGNED(pointer)`", "of 2 to 5 values, sampled",
    ):  # fmt: skip
        assert part in text
    assert "may come back to you" in render_kernel(kernel())


def test_the_contract_says_what_of_inputs_workspace_and_stages_a_writer_has_to_know() -> None:
    text = render_prefix(subject())
    for part in (
        "infinities only where `get_inputs` gives them",
        "`workspace`: the same memory at every call, aligned to 4096, undefined contents",
        "one name may stand twice",
        "the mean over threads",
    ):
        assert part in text


def test_ideas_are_asked_for_in_few_words_and_each_plan_complete() -> None:
    text = render_ideation(ideation(implementations=2))
    assert "in at most 80 words: which stage, loop, data" in text and "`title`: at most 12 words" in text
    assert "state 2 `plans` of at most 50 words, each complete without the others" in text
