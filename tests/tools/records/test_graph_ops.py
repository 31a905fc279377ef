"""Names of operations."""

from ridgeline.tools.records.graph_ops import base_name


def test_only_atens_operations_lose_their_namespace_and_overload():
    assert base_name("aten.mul.Tensor") == "mul"
    assert base_name("getitem") == "getitem"
    assert base_name("prims.convert_element_type.default") == "prims.convert_element_type.default"
