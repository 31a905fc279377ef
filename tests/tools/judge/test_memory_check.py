"""What judging a problem takes at least, and which devices have it."""

import pytest

from ridgeline.tools.errors import ProblemError
from ridgeline.tools.judge.memory_check import check_room, least_bytes
from ridgeline.tools.records.problem import ArgSpec, Signature
from ridgeline.tools.records.vocabulary import DeviceKind, Role

GB = 10**9


def tensor(name: str, role: Role, elements: int, dtype: str = "float32") -> ArgSpec:
    return ArgSpec(name=name, role=role, shape=(elements,), strides=(1,), dtype=dtype)


def test_the_least_is_three_sets_parameters_and_a_float64_copy() -> None:
    signature = Signature(
        args=(
            tensor("x", Role.INPUT, 100, "float16"),
            tensor("index", Role.INPUT, 100, "int32"),
            tensor("weight", Role.PARAMETER, 10),
            tensor("out", Role.OUTPUT, 50),
        )
    )
    assert least_bytes(signature) == 3 * (200 + 400 + 200) + 40 + 8 * (100 + 10 + 50)


@pytest.mark.parametrize(("memory_gb", "fits"), [(141, True), (24, True), (22, True), (21, False), (8, False)])
def test_the_softmax_of_4096_rows_is_refused_where_its_sets_do_not_fit(memory_gb: int, fits: bool) -> None:
    """3 sets of 2.15 GB are 6.4, both tensors in float64 4.3: 10.7 GB; a problem of twice that needs 21.5."""
    elements = 2 * 4096 * 65536
    signature = Signature(args=(tensor("x", Role.INPUT, elements), tensor("out", Role.OUTPUT, elements)))
    if fits:
        check_room(signature, kind=DeviceKind.CUDA, memory_bytes=memory_gb * GB)
        return
    with pytest.raises(
        ProblemError, match=rf"at least 21.5 GB .*this GPU has {memory_gb} GB: .*targets.cuda.sizes"
    ) as e:
        check_room(signature, kind=DeviceKind.CUDA, memory_bytes=memory_gb * GB)
    assert "\n" not in str(e.value)
