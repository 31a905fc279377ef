"""Covered elementwise ATen operations as operations of the row program."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ridgeline.graph.offline.program.ir import Builder, NotCovered, Value

Keywords = dict[str, Any]
Rule = Callable[[Builder, list[Value], Keywords], Value]

SAME_NAME = (
    "neg abs reciprocal sqrt rsqrt exp log log1p log2 expm1 exp2 tanh sigmoid silu erf relu sin cos floor ceil round "
    "trunc maximum minimum mul square"
)
PREDICATES = "eq ne lt le gt ge isnan isinf"
LOGICAL = {"logical_and": "and", "logical_or": "or", "logical_xor": "ne", "logical_not": "not"}
BITWISE = {"bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "ne", "bitwise_not": "not"}
IDENTITIES = "clone alias detach lift_fresh_copy lift_fresh contiguous"
FLOATING = ("float64", "float32", "float16", "bfloat16")


def rule_for(operation: str) -> Rule | None:
    """Return the rule of an operation, named without namespace and overload, or None when it is not covered."""
    return RULES.get(operation)


def _named(op: str, ctype: str = "float") -> Rule:
    def build(builder: Builder, args: list[Value], keywords: Keywords) -> Value:
        is_integer = ctype == "float" and all(a.ctype != "float" for a in args)
        if is_integer and op not in ("mul", "neg", "abs", "maximum", "minimum"):
            args = [as_float(builder, a) for a in args]
            is_integer = False
        return builder.apply(op, *args, ctype="int64_t" if is_integer else ctype)

    return build


def as_float(builder: Builder, value: Value) -> Value:
    """Return the value as a float."""
    if value.ctype == "float":
        return value
    return builder.apply("to_float", value)


def as_bool(builder: Builder, value: Value) -> Value:
    """Return whether the value is not zero."""
    if value.ctype == "bool":
        return value
    return builder.apply("ne", value, builder.literal(0.0, value.ctype), ctype="bool")


def _logical(op: str) -> Rule:
    def build(builder: Builder, args: list[Value], keywords: Keywords) -> Value:
        return builder.apply(op, *(as_bool(builder, a) for a in args), ctype="bool")

    return build


def _bitwise(op: str) -> Rule:
    def build(builder: Builder, args: list[Value], keywords: Keywords) -> Value:
        if any(a.ctype != "bool" for a in args):
            raise NotCovered("bitwise operation on integers")
        return builder.apply(op, *args, ctype="bool")

    return build


def _arithmetic(builder: Builder, op: str, left: Value, right: Value) -> Value:
    is_integer = left.ctype != "float" and right.ctype != "float"
    return builder.apply(op, left, right, ctype="int64_t" if is_integer else "float")


def _scaled(builder: Builder, value: Value, alpha: float) -> Value:
    return value if alpha == 1 else builder.apply("mul", value, builder.literal(alpha))


def _add(builder: Builder, args: list[Value], keywords: Keywords) -> Value:
    return _arithmetic(builder, "add", args[0], _scaled(builder, args[1], keywords.get("alpha", 1)))


def _sub(builder: Builder, args: list[Value], keywords: Keywords) -> Value:
    return _arithmetic(builder, "sub", args[0], _scaled(builder, args[1], keywords.get("alpha", 1)))


def _rsub(builder: Builder, args: list[Value], keywords: Keywords) -> Value:
    return _sub(builder, [args[1], args[0]], keywords)


def _div(builder: Builder, args: list[Value], keywords: Keywords) -> Value:
    if keywords.get("rounding_mode"):
        raise NotCovered("div with a rounding mode")
    numerator, divisor = (as_float(builder, a) for a in args)
    if divisor.op == "literal" and divisor.literal not in (0.0, math.inf, -math.inf):
        return builder.apply("mul", numerator, builder.literal(1.0 / float(divisor.literal)))
    return builder.apply("div", numerator, divisor)


def _pow(builder: Builder, args: list[Value], keywords: Keywords) -> Value:
    base, exponent = as_float(builder, args[0]), args[1]
    if exponent.op == "literal":
        special = _special_power(builder, base, float(exponent.literal))
        if special is not None:
            return special
    return builder.apply("pow", base, as_float(builder, exponent))


def _special_power(builder: Builder, base: Value, exponent: float) -> Value | None:
    if exponent in (0.5, -0.5):
        return builder.apply("sqrt" if exponent > 0 else "rsqrt", base)
    if not exponent.is_integer() or not 1 <= abs(exponent) <= 8:
        return None
    power = base
    for bit in bin(abs(int(exponent)))[3:]:
        power = builder.apply("square", power)
        power = builder.apply("mul", power, base) if bit == "1" else power
    return power if exponent > 0 else builder.apply("reciprocal", power)


def _clamp(builder: Builder, args: list[Value], keywords: Keywords) -> Value:
    lower = args[1] if len(args) > 1 else keywords.get("min")
    upper = args[2] if len(args) > 2 else keywords.get("max")
    result = args[0]
    if lower is not None:
        result = builder.apply("at_least", result, lower, ctype=result.ctype)
    return result if upper is None else builder.apply("at_most", result, upper, ctype=result.ctype)


def _clamp_max(builder: Builder, args: list[Value], keywords: Keywords) -> Value:
    return builder.apply("at_most", *args, ctype=args[0].ctype)


def _hardtanh(builder: Builder, args: list[Value], keywords: Keywords) -> Value:
    bounds = args[1:] or [builder.literal(-1.0), builder.literal(1.0)]
    return _clamp(builder, [args[0], *bounds], keywords)


def _leaky_relu(builder: Builder, args: list[Value], keywords: Keywords) -> Value:
    slope = args[1] if len(args) > 1 else builder.literal(0.01)
    positive = builder.apply("gt", args[0], builder.literal(0.0), ctype="bool")
    return builder.apply("where", positive, args[0], builder.apply("mul", args[0], slope))


def _elu(builder: Builder, args: list[Value], keywords: Keywords) -> Value:
    alpha, scale, input_scale = [*args[1:], *([builder.literal(1.0)] * 3)][:3]
    x = args[0]
    negative = builder.apply("expm1", builder.apply("mul", x, input_scale))
    negative = builder.apply("mul", builder.apply("mul", alpha, scale), negative)
    positive = builder.apply("gt", x, builder.literal(0.0), ctype="bool")
    return builder.apply("where", positive, builder.apply("mul", x, scale), negative)


def _gelu(builder: Builder, args: list[Value], keywords: Keywords) -> Value:
    if keywords.get("approximate", "none") != "tanh":
        return builder.apply("gelu", args[0])
    x = args[0]
    cubed = builder.apply("mul", builder.apply("square", x), x)
    inner = builder.apply("add", x, builder.apply("mul", cubed, builder.literal(0.044715)))
    # 0.5 (1 + tanh(u)) is sigmoid(2 u)
    gate = builder.apply("sigmoid", builder.apply("mul", inner, builder.literal(2.0 * math.sqrt(2.0 / math.pi))))
    return builder.apply("mul", x, gate)


def _where(builder: Builder, args: list[Value], keywords: Keywords) -> Value:
    condition, left, right = args
    ctype = left.ctype if left.ctype == right.ctype else "float"
    return builder.apply("where", as_bool(builder, condition), left, right, ctype=ctype)


def _masked_fill(builder: Builder, args: list[Value], keywords: Keywords) -> Value:
    return _where(builder, [args[1], args[2], args[0]], keywords)


def _to_copy(builder: Builder, args: list[Value], keywords: Keywords) -> Value:
    dtype = keywords.get("dtype")
    if dtype in FLOATING:
        return as_float(builder, args[0])
    if dtype == "bool":
        return as_bool(builder, args[0])
    if dtype is None or (args[0].ctype != "float" and str(dtype).startswith(("int", "uint"))):
        return args[0]
    raise NotCovered(f"conversion to {dtype}")


def _identity(builder: Builder, args: list[Value], keywords: Keywords) -> Value:
    return args[0]


def _softplus(builder: Builder, args: list[Value], keywords: Keywords) -> Value:
    beta, threshold = [*args[1:], builder.literal(1.0), builder.literal(20.0)][:2] if len(args) < 3 else args[1:3]
    scaled = builder.apply("mul", args[0], beta)
    soft = builder.apply("div", builder.apply("log1p", builder.apply("exp", scaled)), beta)
    linear = builder.apply("gt", scaled, threshold, ctype="bool")
    return builder.apply("where", linear, args[0], soft)


RULES: dict[str, Rule] = {
    **{name: _named(name) for name in SAME_NAME.split()},
    **{name: _named(name, "bool") for name in PREDICATES.split()},
    **{name: _logical(op) for name, op in LOGICAL.items()},
    **{name: _bitwise(op) for name, op in BITWISE.items()},
    **dict.fromkeys(IDENTITIES.split(), _identity),
    "add": _add,
    "sub": _sub,
    "rsub": _rsub,
    "div": _div,
    "pow": _pow,
    "clamp": _clamp,
    "clamp_min": _clamp,
    "clamp_max": _clamp_max,
    "hardtanh": _hardtanh,
    "leaky_relu": _leaky_relu,
    "elu": _elu,
    "gelu": _gelu,
    "where": _where,
    "masked_fill": _masked_fill,
    "_to_copy": _to_copy,
    "softplus": _softplus,
}
