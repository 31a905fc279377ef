"""The frame of every family's source: parameters, constants, tunables, sections."""

from ridgeline.graph.offline.program.ir import Load
from ridgeline.graph.offline.text.frame import choice, memory_type, prototype, tunable
from ridgeline.graph.offline.text.sections import native_sections
from ridgeline.tools.records.problem import ArgSpec, Signature
from ridgeline.tools.records.vocabulary import ArgKind, Role


def test_prototype_leaves_none_out_and_adds_what_the_target_has():
    x = ArgSpec(name="x", role=Role.INPUT, dtype="float16", shape=(2,), strides=(1,))
    factor = ArgSpec(name="factor", role=Role.INPUT, kind=ArgKind.SCALAR, dtype="float64", value=0.5)
    mask = ArgSpec(name="mask", role=Role.INPUT, kind=ArgKind.NONE)
    out = ArgSpec(name="out", role=Role.OUTPUT, dtype="int8", shape=(2,), strides=(1,))
    assert prototype(Signature(args=(x, factor, mask, out)), "void*") == (
        'extern "C" void run(\n    const fp16* __restrict__ x_data,\n    double factor_value,\n'
        "    int8_t* __restrict__ out_data,\n    void*)"
    )


def test_tunable_defaults_to_one_of_its_values():
    assert tunable("BN", 96, (64, 128)) == "constexpr int BN = 128;  // tune: BN = 64 | 128"
    assert tunable("CHUNK", 4, (4, 16), "int64_t") == "constexpr int64_t CHUNK = 4;  // tune: CHUNK = 4 | 16"


def test_choice_of_one_value_is_a_constant():
    assert choice("VEC", 4, [2]) == "constexpr int VEC = 2;"
    assert choice("VEC", 4, []) == "constexpr int VEC = 4;"
    assert choice("VEC", 4, [2, 4]).endswith("// tune: VEC = 2 | 4")


def test_truth_is_loaded_as_a_byte():
    assert memory_type(Load(argument="m", dtype="bool")) == "uint8_t"
    assert memory_type(Load(argument="x", dtype="bfloat16")) == "bf16"


def test_sections_keep_their_whole_titles():
    titles = native_sections("ridgeline.graph.offline.rowwise", "cuda.h")
    assert "all words" in titles and titles["words"].endswith("};\n")
