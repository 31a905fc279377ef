// fp16 and bf16 for CPU candidates: storage of 2 bytes, arithmetic in float, rounding to nearest even.
//
// g++ 12 has no __bf16 in C++ and does not vectorise conversions of its _Float16; these branch-free forms do
// vectorise (64-byte vectors under the documented flags) and stay exact under -ffast-math and flush-to-zero.

struct fp16 {
  uint16_t bits;

  fp16() = default;

  fp16(float value) {
    const uint32_t u = __builtin_bit_cast(uint32_t, value);
    const uint32_t a = u & 0x7fffffffu;
    const uint32_t normal = (a - 0x38000000u + 0xfffu + ((a >> 13) & 1u)) >> 13;
    // Adding 0.5 rounds to a multiple of 2^-24, the step of fp16's subnormals.
    const uint32_t tiny = __builtin_bit_cast(uint32_t, __builtin_bit_cast(float, a) + 0.5f) - 0x3f000000u;
    uint32_t half = a < 0x38800000u ? tiny : normal;
    half = a >= 0x477ff000u ? 0x7c00u : half;
    half = a > 0x7f800000u ? 0x7e00u : half;
    bits = static_cast<uint16_t>(half | ((u >> 16) & 0x8000u));
  }

  operator float() const {
    const uint32_t a = bits & 0x7fffu;
    const uint32_t normal = (a << 13) + (a >= 0x7c00u ? 0x70000000u : 0x38000000u);
    const uint32_t tiny = __builtin_bit_cast(uint32_t, static_cast<float>(static_cast<int32_t>(a)) * 0x1p-24f);
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
    return __builtin_bit_cast(float, (a < 0x0400u ? tiny : normal) | sign);
  }
};

struct bf16 {
  uint16_t bits;

  bf16() = default;

  bf16(float value) {
    const uint32_t u = __builtin_bit_cast(uint32_t, value);
    const uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    bits = static_cast<uint16_t>((u & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : rounded);
  }

  operator float() const { return __builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16); }
};

static_assert(sizeof(fp16) == 2 && sizeof(bf16) == 2);
