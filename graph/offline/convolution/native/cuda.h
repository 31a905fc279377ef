//: tile
constexpr int GROUPS = TILE_ROWS * GROUPS_X;  // of 8 neighbouring outputs of one row
constexpr int PIXEL_WARPS = (GROUPS + WARP_GROUPS - 1) / WARP_GROUPS;
constexpr int WARPS = (PIXEL_WARPS * FILTER_WARPS + WARP_MULTIPLE - 1) / WARP_MULTIPLE * WARP_MULTIPLE;
constexpr int THREADS = 32 * WARPS;
constexpr int LANE_FILTERS = WARP_FILTERS / 4;  // sums of one lane for each of its outputs
constexpr int BLOCK_FILTERS = WARP_FILTERS * FILTER_WARPS;
constexpr int FILTER_BLOCKS = (FILTERS + BLOCK_FILTERS - 1) / BLOCK_FILTERS;
constexpr int TILES_Y = (RESULT_ROWS + TILE_RESULT_ROWS - 1) / TILE_RESULT_ROWS;
constexpr int TILES_X = (RESULT_COLS + TILE_RESULT_COLS - 1) / TILE_RESULT_COLS;
constexpr int TILES = IMAGES * TILES_Y * TILES_X * FILTER_BLOCKS;
constexpr int PATCH_ROWS = (TILE_ROWS - 1) * STRIDE_Y + (TAP_ROWS - 1) * DILATION_Y + 1;
constexpr int PATCH_COLS = (8 * GROUPS_X - 1) * STRIDE_X + (TAP_COLS - 1) * DILATION_X + 1 + SHIFT;
constexpr int PITCH = (PATCH_COLS + OVERHANG + 3) / 4 * 4;
constexpr int PLANE = PATCH_ROWS * PITCH + (PLANE_BANK + 32 - PATCH_ROWS * PITCH % 32) % 32;
constexpr int PATCH = (CHUNK * PLANE + 31) / 32 * 32;  // floats
constexpr int CHUNKS = (CHANNELS + CHUNK - 1) / CHUNK;
constexpr int CHUNK_WEIGHTS = CHUNK / UNIT * UNIT_WEIGHTS;  // floats
constexpr int STAGE = PATCH + (RESIDENT ? 0 : CHUNK_WEIGHTS);
constexpr int PACKED = FILTER_BLOCKS * CHUNKS * CHUNK_WEIGHTS;
constexpr int POOL_PITCH = 8 * GROUPS + 4;  // 4 more: filters of a warp's store lie in different banks
constexpr int POOL_FLOATS = FUSED_POOL ? 4 * SLAB * FILTER_WARPS * POOL_PITCH : 0;
constexpr int STAGED = STAGES * STAGE + (RESIDENT ? CHUNKS * CHUNK_WEIGHTS : 0);
constexpr bool POOL_APART = STAGES > 1 || RESIDENT;  // the next tile is being staged while this one is pooled
constexpr int SHARED_BYTES = 4 * (POOL_APART ? STAGED + POOL_FLOATS : STAGED > POOL_FLOATS ? STAGED : POOL_FLOATS);
constexpr int LANE_REGISTERS = WARP_GROUPS * LANE_FILTERS + OTHER_REGISTERS;
constexpr int REGISTER_WARPS = (WARPS + 3) / 4 * 4;  // each quarter of a multiprocessor has registers of its own
constexpr bool TWO_FIT = 64 * REGISTER_WARPS * LANE_REGISTERS <= 65536 &&
                         2 * (SHARED_BYTES + RESERVED_SHARED) <= MULTIPROCESSOR_SHARED;
static_assert(SHARED_BYTES <= SHARED_LIMIT, "the tile does not fit into shared memory: fewer TILE_ROWS");
static_assert(32 * REGISTER_WARPS * LANE_REGISTERS <= 65536, "too many registers");
static_assert(THREADS <= 1024, "too many threads");

__device__ __forceinline__ float to_tf32(float value) {
  unsigned rounded;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(value));
  return __uint_as_float(rounded);
}
//: place
struct Place {
  int image, first_filter, first_row, first_col, result_row, result_col;
};

__device__ __forceinline__ Place place_of(int tile) {
  Place place;
  place.first_filter = tile % FILTER_BLOCKS * BLOCK_FILTERS;
  tile /= FILTER_BLOCKS;
  place.result_col = tile % TILES_X * TILE_RESULT_COLS;
  tile /= TILES_X;
  place.result_row = tile % TILES_Y * TILE_RESULT_ROWS;
  place.image = tile / TILES_Y;
  place.first_row = place.result_row * RESULT_STEP_Y - RESULT_PAD_Y;
  place.first_col = place.result_col * RESULT_STEP_X - RESULT_PAD_X;
  return place;
}
//: sync
__device__ __forceinline__ void copy_weights(float* to, const float* from, int count) {
  for (int i = threadIdx.x; i < count / 4; i += THREADS) {
    reinterpret_cast<float4*>(to)[i] = reinterpret_cast<const float4*>(from)[i];
  }
}
//: copy_sync
// Elements outside of the image are zero, as the padding wants them.
__device__ __forceinline__ void copy_row(float* to, const Element* from, int x0, bool is_inside) {
#pragma unroll
  for (int first = 0; first < PATCH_COLS; first += 32) {
    const int col = first + threadIdx.x % 32;
    const int at = x0 + col;
    const bool is_read = is_inside && at >= 0 && at < WIDTH;
    const float value = is_read ? static_cast<float>(from[at]) : 0.0f;
    if (col < PATCH_COLS) to[col] = ROUND_STAGED ? to_tf32(value) : value;
  }
}
//: copy_sync_vector
__device__ __forceinline__ void copy_row(float* to, const float* from, int x0, bool is_inside) {
#pragma unroll
  for (int first = 0; first < PATCH_COLS; first += 128) {
    const int col = first + threadIdx.x % 32 * 4;
    const int at = x0 + col;  // four elements are all inside or all outside
    float4 value = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (is_inside && at >= 0 && at < WIDTH && col < PATCH_COLS) value = *reinterpret_cast<const float4*>(from + at);
    if (ROUND_STAGED) {
      value = make_float4(to_tf32(value.x), to_tf32(value.y), to_tf32(value.z), to_tf32(value.w));
    }
    if (col < PATCH_COLS) *reinterpret_cast<float4*>(to + col) = value;
  }
}
//: async
__device__ __forceinline__ void copy_async_16(float* to, const float* from, bool is_read) {
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(is_read ? 16 : 0)
               : "memory");
}

__device__ __forceinline__ void copy_weights(float* to, const float* from, int count) {
  for (int i = threadIdx.x; i < count / 4; i += THREADS) copy_async_16(to + 4 * i, from + 4 * i, true);
}
//: copy_async
__device__ __forceinline__ void copy_row(float* to, const float* from, int x0, bool is_inside) {
#pragma unroll
  for (int first = 0; first < PATCH_COLS; first += 32) {
    const int col = first + threadIdx.x % 32;
    const int at = x0 + col;
    const bool is_read = is_inside && at >= 0 && at < WIDTH;
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to + col));
    // 0 bytes read: 4 bytes of zero are written
    if (col < PATCH_COLS) {
      asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(address), "l"(from + (is_read ? at : 0)),
                   "r"(is_read ? 4 : 0)
                   : "memory");
    }
  }
}
//: copy_async_vector
__device__ __forceinline__ void copy_row(float* to, const float* from, int x0, bool is_inside) {
#pragma unroll
  for (int first = 0; first < PATCH_COLS; first += 128) {
    const int col = first + threadIdx.x % 32 * 4;
    const int at = x0 + col;  // four elements are all inside or all outside
    const bool is_read = is_inside && at >= 0 && at < WIDTH;
    if (col < PATCH_COLS) copy_async_16(to + col, from + (is_read ? at : 0), is_read);
  }
}
//: patch
// The input rows that a tile needs of some channels, once for all taps.
__device__ __forceinline__ void copy_patch(float* patch, const Element* x, const Place& place, int channel) {
  const int y0 = place.first_row * STRIDE_Y - PAD_Y;
  const int x0 = place.first_col * STRIDE_X - PAD_X - SHIFT;
  for (int row = threadIdx.x / 32; row < CHUNK * PATCH_ROWS; row += WARPS) {
    const int plane = row / PATCH_ROWS;
    const int y = y0 + row % PATCH_ROWS;
    const bool is_inside = channel + plane < CHANNELS && y >= 0 && y < HEIGHT;
    const size_t line = is_inside ? (static_cast<size_t>(place.image) * CHANNELS + channel + plane) * HEIGHT + y : 0;
    copy_row(patch + plane * PLANE + row % PATCH_ROWS * PITCH, x + line * WIDTH, x0, is_inside);
  }
}
//: pack_mma
// In the order in which a lane reads them: [filter block][chunk][unit][step][pair of 8 filters][lane][4].
__device__ __forceinline__ void unpack(int index, int& filter, int& quad, int& tap) {
  const int lane = index / 4 % 32;
  filter = (index / 128 % (WARP_FILTERS / 16) * 2 + index % 4 / 2) * 8 + lane / 4;
  quad = index / (WARP_FILTERS * 8) % UNIT_STEPS * 2 + index % 2;
  tap = lane % 4;
}
//: pack_wgmma
// As the tensor cores read them: [filter block][chunk][unit][step][half][filter][4], 8 filters a core matrix.
__device__ __forceinline__ void unpack(int index, int& filter, int& quad, int& tap) {
  filter = index / 4 % WARP_FILTERS;
  quad = index / (WARP_FILTERS * 8) % UNIT_STEPS * 2 + index / (WARP_FILTERS * 4) % 2;
  tap = index % 4;
}
//: pack_quads
// Which tap stands at an index; a quad of taps covers four neighbours along a row of the kernel or four channels.
__global__ void pack_weights(const Element* __restrict__ weights, float* __restrict__ packed) {
  const int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index >= PACKED) return;
  int filter, quad, tap;
  unpack(index, filter, quad, tap);
  filter += index / (CHUNKS * CHUNK_WEIGHTS) * BLOCK_FILTERS;
  const int unit = index / UNIT_WEIGHTS % (CHUNKS * CHUNK / UNIT);
  int channel = unit * UNIT, row, col;
  bool is_tap = quad < UNIT_QUADS;
  if (QUAD_OF_CHANNELS) {
    channel += quad / (TAP_ROWS * TAP_COLS) * 4 + tap;
    row = quad / TAP_COLS % TAP_ROWS;
    col = quad % TAP_COLS;
  } else {
    channel += quad / (TAP_ROWS * ROW_QUADS);
    row = quad / ROW_QUADS % TAP_ROWS;
    col = quad % ROW_QUADS * 4 + tap;
  }
  is_tap = is_tap && channel < CHANNELS && col < TAP_COLS && filter < FILTERS;
  const int at = ((filter * CHANNELS + channel) * TAP_ROWS + row) * TAP_COLS + col;
  packed[index] = is_tap ? to_tf32(static_cast<float>(weights[at])) : 0.0f;
}
//: pack_taps
// [filter block][chunk][channel][tap][filter]
__global__ void pack_weights(const Element* __restrict__ weights, float* __restrict__ packed) {
  const int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index >= PACKED) return;
  const int filter = index / (CHUNKS * CHUNK_WEIGHTS) * BLOCK_FILTERS + index % BLOCK_FILTERS;
  const int tap = index / BLOCK_FILTERS % (TAP_ROWS * TAP_COLS);
  const int channel = index / (BLOCK_FILTERS * TAP_ROWS * TAP_COLS) % (CHUNKS * CHUNK);
  const bool is_tap = channel < CHANNELS && filter < FILTERS;
  const int at = (filter * CHANNELS + channel) * (TAP_ROWS * TAP_COLS) + tap;
  packed[index] = is_tap ? static_cast<float>(weights[at]) : 0.0f;
}
//: lanes_mma
// A lane's outputs are one of each group; its sums are those of a tensor core's fragment.
__device__ __forceinline__ int lane_pixel() { return threadIdx.x % 32 / 4; }
__device__ __forceinline__ int lane_filter(int j) { return j / 2 * 8 + threadIdx.x % 4 * 2 + j % 2; }
//: lanes_taps
__device__ __forceinline__ int lane_pixel() { return threadIdx.x % 8; }
__device__ __forceinline__ int lane_filter(int j) { return j / 4 * 16 + threadIdx.x % 32 / 8 * 4 + j % 4; }
//: offset
// Where a quad's first tap lies in the patch, from an output's first tap. Known to the compiler in unrolled loops.
__device__ __forceinline__ constexpr int quad_offset(int quad) {
  return QUAD_OF_CHANNELS ? quad / (TAP_ROWS * TAP_COLS) * 4 * PLANE + quad / TAP_COLS % TAP_ROWS * DILATION_Y * PITCH +
                                quad % TAP_COLS * DILATION_X
                          : quad / (TAP_ROWS * ROW_QUADS) * PLANE +
                                quad / ROW_QUADS % TAP_ROWS * DILATION_Y * PITCH + quad % ROW_QUADS * 4 * DILATION_X;
}

// One lane's element of the gathered matrix. Taps that only fill a quad are zero, whatever lies there.
__device__ __forceinline__ unsigned gather(const float* patch, int quad) {
  if (quad >= UNIT_QUADS) return 0;
  constexpr int VALID = QUAD_OF_CHANNELS ? 4 : TAP_COLS - (ROW_QUADS - 1) * 4;
  float value = patch[quad_offset(quad)];
  if (!ROUND_STAGED) value = to_tf32(value);
  const bool is_short = !QUAD_OF_CHANNELS && VALID < 4 && quad % ROW_QUADS == ROW_QUADS - 1;
  return is_short && static_cast<int>(threadIdx.x) % 4 >= VALID ? 0 : __float_as_uint(value);
}
//: multiply_mma
__device__ __forceinline__ void multiply_add(float* low, float* high, const unsigned (&a)[4], float b0, float b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(low[0]), "+f"(low[1]), "+f"(high[0]), "+f"(high[1])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(__float_as_uint(b0)), "r"(__float_as_uint(b1)));
}

__device__ __forceinline__ void multiply(float (&sums)[WARP_GROUPS][LANE_FILTERS], const float* patch,
                                         const float* weights, const int (&starts)[WARP_GROUPS]) {
  const int lane = threadIdx.x % 32;
#pragma unroll 1
  for (int unit = 0; unit < CHUNK / UNIT; ++unit) {
    const float* plane = patch + unit * UNIT * PLANE;
    const float4* packed = reinterpret_cast<const float4*>(weights + unit * UNIT_WEIGHTS) + lane;
#pragma unroll
    for (int step = 0; step < UNIT_STEPS; ++step) {
      unsigned a[WARP_GROUPS / 2][4];
#pragma unroll
      for (int m = 0; m < WARP_GROUPS / 2; ++m) {
        a[m][0] = gather(plane + starts[2 * m], 2 * step);
        a[m][1] = gather(plane + starts[2 * m + 1], 2 * step);
        a[m][2] = gather(plane + starts[2 * m], 2 * step + 1);
        a[m][3] = gather(plane + starts[2 * m + 1], 2 * step + 1);
      }
#pragma unroll
      for (int pair = 0; pair < LANE_FILTERS / 4; ++pair) {
        const float4 b = packed[(step * (LANE_FILTERS / 4) + pair) * 32];
#pragma unroll
        for (int m = 0; m < WARP_GROUPS / 2; ++m) {
          multiply_add(&sums[2 * m][4 * pair], &sums[2 * m + 1][4 * pair], a[m], b.x, b.y);
          multiply_add(&sums[2 * m][4 * pair + 2], &sums[2 * m + 1][4 * pair + 2], a[m], b.z, b.w);
        }
      }
    }
  }
}
//: multiply_wgmma
__device__ __forceinline__ uint64_t weights_descriptor(const float* weights) {
  // No swizzle: core matrices of 8 filters x 16 bytes, the two halves of a step WARP_FILTERS x 16 bytes apart.
  const uint64_t address = static_cast<uint64_t>(__cvta_generic_to_shared(weights));
  return (address & 0x3ffff) >> 4 | static_cast<uint64_t>(WARP_FILTERS) << 16 | static_cast<uint64_t>(8) << 32;
}

__device__ __forceinline__ void multiply(float (&sums)[WARP_GROUPS][LANE_FILTERS], const float* patch,
                                         const float* weights, const int (&starts)[WARP_GROUPS]) {
  constexpr int BATCHES = (UNIT_STEPS + BATCH - 1) / BATCH;
#pragma unroll 1
  for (int unit = 0; unit < CHUNK / UNIT; ++unit) {
    const float* plane = patch + unit * UNIT * PLANE;
    const uint64_t descriptor = weights_descriptor(weights + unit * UNIT_WEIGHTS);
    unsigned a[2][BATCH][WARP_GROUPS / 2][4];  // one half is gathered while the other is multiplied
#pragma unroll
    for (int batch = 0; batch < BATCHES; ++batch) {
#pragma unroll
      for (int i = 0; i < BATCH; ++i) {
        const int step = batch * BATCH + i;
#pragma unroll
        for (int m = 0; m < WARP_GROUPS / 2; ++m) {
          if (step < UNIT_STEPS) {
            a[batch % 2][i][m][0] = gather(plane + starts[2 * m], 2 * step);
            a[batch % 2][i][m][1] = gather(plane + starts[2 * m + 1], 2 * step);
            a[batch % 2][i][m][2] = gather(plane + starts[2 * m], 2 * step + 1);
            a[batch % 2][i][m][3] = gather(plane + starts[2 * m + 1], 2 * step + 1);
          }
        }
      }
      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
      for (int i = 0; i < BATCH; ++i) {
        const int step = batch * BATCH + i;
#pragma unroll
        for (int m = 0; m < WARP_GROUPS / 2; ++m) {
          if (step < UNIT_STEPS) {
            // a step is WARP_FILTERS x 8 floats, in units of 16 bytes
            multiply_add(sums[2 * m], sums[2 * m + 1], a[batch % 2][i][m], descriptor + step * (WARP_FILTERS * 2));
          }
        }
      }
      asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
      asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
    for (int i = 0; i < WARP_GROUPS * LANE_FILTERS; ++i) {
      asm volatile("" : "+f"(sums[i / LANE_FILTERS][i % LANE_FILTERS])::"memory");  // sums are read only from here on
    }
  }
}
//: multiply_taps
__device__ __forceinline__ void multiply(float (&sums)[WARP_GROUPS][LANE_FILTERS], const float* patch,
                                         const float* weights, const int (&starts)[WARP_GROUPS]) {
  const int first = threadIdx.x / 32 % FILTER_WARPS * WARP_FILTERS + threadIdx.x % 32 / 8 * 4;
#pragma unroll 1
  for (int line = 0; line < CHUNK * TAP_ROWS; ++line) {
    const float* row = patch + line / TAP_ROWS * PLANE + line % TAP_ROWS * (DILATION_Y * PITCH);
    const float* packed = weights + line * (TAP_COLS * BLOCK_FILTERS) + first;
#pragma unroll TAP_UNROLL
    for (int tap = 0; tap < TAP_COLS; ++tap) {
      float b[LANE_FILTERS];
#pragma unroll
      for (int j = 0; j < LANE_FILTERS; j += 4) {
        *reinterpret_cast<float4*>(b + j) =
            *reinterpret_cast<const float4*>(packed + tap * BLOCK_FILTERS + j * 4);
      }
#pragma unroll
      for (int group = 0; group < WARP_GROUPS; ++group) {
        const float a = row[starts[group] + tap * DILATION_X];
#pragma unroll
        for (int j = 0; j < LANE_FILTERS; ++j) sums[group][j] = fmaf(a, b[j], sums[group][j]);
      }
    }
  }
}
//: finish_store
__device__ __forceinline__ void finish(const float (&sums)[WARP_GROUPS][LANE_FILTERS], const Place& place, float*,
                                       const Epilogue& epilogue, Target* __restrict__ target) {
  const int filters = place.first_filter + threadIdx.x / 32 % FILTER_WARPS * WARP_FILTERS;
#pragma unroll
  for (int i = 0; i < WARP_GROUPS; ++i) {
    const int group = threadIdx.x / 32 / FILTER_WARPS * WARP_GROUPS + i;
    const int local = group % GROUPS_X * 8 + lane_pixel();
    const int row = place.first_row + group / GROUPS_X, col = place.first_col + local;
    if (group >= GROUPS || row >= OUT_ROWS || col >= OUT_COLS || local >= TILE_COLS) continue;
#pragma unroll
    for (int j = 0; j < LANE_FILTERS; ++j) {
      const int filter = filters + lane_filter(j);
      if (filter >= FILTERS) continue;
      const Index plane = static_cast<Index>(place.image) * FILTERS + filter;
      const Index pixel = static_cast<Index>(row) * OUT_COLS + col;
      target[plane * (OUT_ROWS * OUT_COLS) + pixel] = static_cast<Target>(epilogue(sums[i][j], plane, pixel));
    }
  }
}
//: finish_pool
// The tile's outputs pass through shared memory, some filters at a time; only pooled ones are written.
__device__ __forceinline__ void finish(const float (&sums)[WARP_GROUPS][LANE_FILTERS], const Place& place,
                                       float* pool, const Epilogue& epilogue, Target* __restrict__ target) {
  const int filter_warp = threadIdx.x / 32 % FILTER_WARPS;
#pragma unroll
  for (int slab = 0; slab < LANE_FILTERS; slab += SLAB) {
    __syncthreads();  // the staged data and the slab before are no longer read
#pragma unroll
    for (int i = 0; i < WARP_GROUPS; ++i) {
      const int group = threadIdx.x / 32 / FILTER_WARPS * WARP_GROUPS + i;
      const int row = place.first_row + group / GROUPS_X;
      const int col = place.first_col + group % GROUPS_X * 8 + lane_pixel();
      const bool is_output = row >= 0 && row < OUT_ROWS && col >= 0 && col < OUT_COLS;
      if (group >= GROUPS) continue;
#pragma unroll
      for (int j = slab; j < slab + SLAB && j < LANE_FILTERS; ++j) {
        const int in_warp = lane_filter(j);
        const int filter = place.first_filter + filter_warp * WARP_FILTERS + in_warp;
        const Index plane = static_cast<Index>(place.image) * FILTERS + filter;
        const Index pixel = static_cast<Index>(row) * OUT_COLS + col;
        float value = -INFINITE;  // what is outside of the convolution's output never wins
        if (is_output && filter < FILTERS) value = epilogue(sums[i][j], plane, pixel);
        pool[(filter_warp * 4 * SLAB + in_warp - 4 * slab) * POOL_PITCH + 8 * group + lane_pixel()] = value;
      }
    }
    __syncthreads();
    for (int index = threadIdx.x; index < 4 * SLAB * FILTER_WARPS * TILE_RESULT_ROWS * TILE_RESULT_COLS;
         index += THREADS) {
      const int col = index % TILE_RESULT_COLS, row = index / TILE_RESULT_COLS % TILE_RESULT_ROWS;
      const int held = index / (TILE_RESULT_COLS * TILE_RESULT_ROWS);
      const int in_warp = 4 * slab + held % (4 * SLAB);
      const int filter = place.first_filter + held / (4 * SLAB) * WARP_FILTERS + in_warp;
      const int result_row = place.result_row + row, result_col = place.result_col + col;
      if (in_warp >= WARP_FILTERS || filter >= FILTERS || result_row >= RESULT_ROWS || result_col >= RESULT_COLS) continue;
      const float* window =
          pool + held * POOL_PITCH + row * (RESULT_STEP_Y * 8 * GROUPS_X) + col * RESULT_STEP_X;
      float best = -INFINITE;
#pragma unroll
      for (int y = 0; y < POOL_ROWS; ++y) {
#pragma unroll
        for (int x = 0; x < POOL_COLS; ++x) {
          const float value = window[y * (POOL_DILATION_Y * 8 * GROUPS_X) + x * POOL_DILATION_X];
          best = value > best || value != value ? value : best;  // NaN wins, as in PyTorch
        }
      }
      const size_t plane = static_cast<size_t>(place.image) * FILTERS + filter;
      target[(plane * RESULT_ROWS + result_row) * RESULT_COLS + result_col] = static_cast<Target>(best);
    }
  }
}
//: convolve
__global__ __launch_bounds__(THREADS, TWO_FIT ? 2 : 1) void convolve(const Element* __restrict__ x,
                                                                     const float* __restrict__ packed, BIAS_PARAMETER
                                                                     Target* __restrict__ target, Epilogue epilogue) {
  extern __shared__ __align__(128) float shared[];
  int starts[WARP_GROUPS];
#pragma unroll
  for (int i = 0; i < WARP_GROUPS; ++i) {
    int group = static_cast<int>(threadIdx.x) / 32 / FILTER_WARPS * WARP_GROUPS + i;
    group = group < GROUPS ? group : GROUPS - 1;
    starts[i] = group / GROUPS_X * (STRIDE_Y * PITCH) + (group % GROUPS_X * 8 + lane_pixel()) * STRIDE_X + SHIFT + LANE_TAP;
  }
  float sums[WARP_GROUPS][LANE_FILTERS];
  float* const resident = shared + STAGES * STAGE;
  float* const pool = POOL_APART ? shared + STAGED : shared;
  int tile = blockIdx.x, chunk = 0, stage = 0;
  if (RESIDENT) {  // a block keeps to one block of filters: the grid is a multiple of their number
    copy_weights(resident, packed + tile % FILTER_BLOCKS * (CHUNKS * CHUNK_WEIGHTS), CHUNKS * CHUNK_WEIGHTS);
  }
  STAGE_FIRST
  while (tile < TILES) {
    const Place place = place_of(tile);
    const bool is_last = chunk == CHUNKS - 1;
    const int next_tile = is_last ? tile + static_cast<int>(gridDim.x) : tile;
    const int next_chunk = is_last ? 0 : chunk + 1;
    STAGE_NEXT
    __syncthreads();
    if (chunk == 0) {
      const int filters = place.first_filter + static_cast<int>(threadIdx.x) / 32 % FILTER_WARPS * WARP_FILTERS;
#pragma unroll
      for (int j = 0; j < LANE_FILTERS; ++j) {
        const float start = filters + lane_filter(j) < FILTERS ? BIAS_START : 0.0f;
#pragma unroll
        for (int i = 0; i < WARP_GROUPS; ++i) sums[i][j] = start;
      }
    }
    const float* patch = shared + stage * STAGE;
    const float* weights = RESIDENT ? resident + chunk * CHUNK_WEIGHTS : patch + PATCH;
    multiply(sums, patch, weights, starts);
    if (is_last) finish(sums, place, pool, epilogue, target);
    __syncthreads();  // the stage may be overwritten
    STAGE_AFTER
    tile = next_tile;
    chunk = next_chunk;
    stage = STAGES - 1 - stage;
  }
}
//: stage
__device__ __forceinline__ void copy_stage(float* shared, const Element* x, const float* packed, int tile, int chunk) {
  const Place place = place_of(tile);
  copy_patch(shared, x, place, chunk * CHUNK);
  if (!RESIDENT) {
    const int block = place.first_filter / BLOCK_FILTERS;
    copy_weights(shared + PATCH, packed + (block * CHUNKS + chunk) * CHUNK_WEIGHTS, CHUNK_WEIGHTS);
  }
}
//: pool
__global__ void pool_planes(const float* __restrict__ between, Result* __restrict__ result) {
  const size_t index = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index >= static_cast<size_t>(IMAGES) * FILTERS * POOLED_ROWS * POOLED_COLS) return;
  const int col = static_cast<int>(index % POOLED_COLS) * POOL_STRIDE_X - POOL_PAD_X;
  const int row = static_cast<int>(index / POOLED_COLS % POOLED_ROWS) * POOL_STRIDE_Y - POOL_PAD_Y;
  const float* plane = between + index / (POOLED_ROWS * POOLED_COLS) * (OUT_ROWS * OUT_COLS);
  float best = -INFINITE;
#pragma unroll
  for (int y = 0; y < POOL_ROWS; ++y) {
#pragma unroll
    for (int x = 0; x < POOL_COLS; ++x) {
      const int at_row = row + y * POOL_DILATION_Y, at_col = col + x * POOL_DILATION_X;
      if (at_row < 0 || at_row >= OUT_ROWS || at_col < 0 || at_col >= OUT_COLS) continue;
      const float value = plane[at_row * OUT_COLS + at_col];
      best = value > best || value != value ? value : best;  // NaN wins, as in PyTorch
    }
  }
  result[index] = static_cast<Result>(best);
}
