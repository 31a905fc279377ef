"""The header that declares a name which a source uses and lacks: what g++ says only of some names, and nvcc of none."""

from __future__ import annotations

from collections.abc import Mapping

_STD: Mapping[str, str] = {
    "algorithm": "clamp copy copy_n fill fill_n max max_element min min_element minmax nth_element partial_sort sort transform",
    "array": "array",
    "atomic": "atomic atomic_thread_fence memory_order_relaxed memory_order_acquire memory_order_release",
    "bit": "bit_cast bit_ceil countr_zero popcount",
    "cmath": "abs acos atan cbrt ceil cos cosh erf erfc exp exp2 expm1 fabs floor fma fmax fmin fmod isfinite isinf isnan "
    "lgamma log log10 log1p log2 lround nearbyint pow round sin sinh sqrt tan tanh tgamma trunc",
    "complex": "complex",
    "cstddef": "byte max_align_t nullptr_t ptrdiff_t size_t",
    "cstdint": "int8_t int16_t int32_t int64_t intptr_t uint8_t uint16_t uint32_t uint64_t uintptr_t",
    "cstdlib": "abort aligned_alloc calloc free getenv malloc realloc",
    "cstring": "memcmp memcpy memmove memset strcmp strlen",
    "functional": "function greater less plus",
    "limits": "numeric_limits",
    "memory": "assume_aligned make_unique make_shared shared_ptr unique_ptr",
    "mutex": "lock_guard mutex once_flag call_once unique_lock",
    "numeric": "accumulate gcd inner_product iota reduce",
    "string": "string to_string",
    "thread": "thread",
    "tuple": "get make_tuple tie tuple",
    "type_traits": "conditional conditional_t enable_if enable_if_t integral_constant is_same is_same_v remove_cv_t "
    "remove_reference_t",
    "utility": "declval exchange forward index_sequence integer_sequence make_index_sequence make_pair move pair swap",
    "vector": "vector",
}
"""Names in namespace std, by the header that declares them."""
_GLOBAL: Mapping[str, str] = {
    "cfloat": "DBL_EPSILON DBL_MAX DBL_MIN FLT_EPSILON FLT_MAX FLT_MIN",
    "climits": "CHAR_BIT INT_MAX INT_MIN LONG_MAX UINT_MAX",
    "cmath": "HUGE_VALF INFINITY M_E M_LN2 M_LOG2E M_PI M_SQRT1_2 M_SQRT2 NAN acosf atanf ceilf cosf coshf erf erff erfcf "
    "exp2f expf expm1f fabsf floorf fmaf fmaxf fminf fmodf log1pf log2f logf powf roundf sinf sinhf sqrtf tanf tanhf truncf",
    "cstdint": "INT32_MAX INT32_MIN INT64_MAX UINT32_MAX UINT64_MAX int8_t int16_t int32_t int64_t intptr_t uint8_t "
    "uint16_t uint32_t uint64_t uintptr_t",
    "cstdio": "fprintf printf snprintf stderr",
    "cstdlib": "abort aligned_alloc calloc free getenv malloc posix_memalign realloc",
    "cstring": "memcmp memcpy memmove memset strcmp strlen",
}
"""Names that a C++ header declares outside of std as well."""
_HOST: Mapping[str, str] = {
    "immintrin.h": "_mm __mmask __m128 __m128d __m128i __m128h __m128bh __m256 __m256d __m256i __m256h __m256bh "
    "__m512 __m512d __m512i __m512h __m512bh",
    "omp.h": "omp_",
}
_CUDA: Mapping[str, str] = {
    "cuda_fp8.h": "__nv_fp8 __nv_fp8x",
    "cuda_bf16.h": "__nv_bfloat nv_bfloat __bfloat __float2bfloat __float22bfloat",
    "cuda_fp16.h": "__half half2 __float2half __float22half __hadd __hfma __hmul __hsub",
    "cuda_pipeline.h": "__pipeline_",
    "cooperative_groups.h": "cooperative_groups::",
    "mma.h": "nvcuda:: wmma::",
    "cuda/barrier": "cuda::barrier",
    "cuda/pipeline": "cuda::pipeline",
    "cub/cub.cuh": "cub::",
}
"""Beginnings of names by their header, of host and of GPU code; one that ends in `::` is a namespace."""


def _by_name(table: Mapping[str, str]) -> dict[str, str]:
    return {name: header for header, names in table.items() for name in names.split()}


_IN_STD, _IN_GLOBAL = _by_name(_STD), _by_name(_GLOBAL)
_BEGINNINGS = {"cpp": _by_name(_HOST), "cu": _by_name(_CUDA)}


def header_of(name: str, language: str) -> str:
    """Return the header that declares `name` ("std::sqrt", "FLT_MAX", "__half") in "cpp" or "cu", "" for one not known."""
    if name.startswith("std::"):
        return _IN_STD.get(name.removeprefix("std::"), "")
    if name in _IN_GLOBAL:
        return _IN_GLOBAL[name]
    if name == "half" and language == "cu":
        return "cuda_fp16.h"
    beginnings = _BEGINNINGS.get(language, {})
    return next((header for beginning, header in beginnings.items() if _begins(name, beginning)), "")


def _begins(name: str, beginning: str) -> bool:
    """Say whether a name begins with one of the table, no letter after it: `cubic_root` is not of namespace `cub`."""
    if beginning.endswith("::"):
        return f"{name}::".startswith(beginning)
    rest = name.removeprefix(beginning)
    return name.startswith(beginning) and (beginning.endswith("_") or not rest[:1].isalpha())
