"""Composed CUDA sources as C++ for a CPU, so that their indices and reductions are tested where no GPU is."""

import re
from pathlib import Path

from ridgeline.graph.offline.text.sections import needed_sections

CUDA = ("ridgeline.graph.offline.rowwise", "cuda.h")
HERE = Path(__file__).parent
IN_CPP = {
    "cluster": """
static char emulated_boards[8][1 << 16];
__device__ void rl_cluster_sync() { emulated_peers(); }
template <int CLUSTER, class T>
__device__ T rl_cluster(T value, T*, int part) {
  emulated_peers();  // the board of the meeting before may still be read
  if (threadIdx.x == 0) memcpy(emulated_boards[part], &value, sizeof(T));
  emulated_peers();
  T result;
  for (int i = 0; i < CLUSTER; ++i) {
    T theirs;
    memcpy(&theirs, emulated_boards[i], sizeof(T));
    if (i == 0) result = theirs; else result.merge(theirs);
  }
  return result;
}
""",
    "bulk": """
__device__ void rl_barrier_init(uint64_t* barrier) { *barrier = 0; }
__device__ void rl_barrier_expect(uint64_t* barrier, unsigned) { *barrier += 1; }
__device__ void rl_barrier_wait(uint64_t* barrier, unsigned parity) {
  while (*barrier == 0 || (*barrier - 1) % 2 != parity) emulated_yield();
}
__device__ void rl_bulk(void* to, const void* from, unsigned bytes, uint64_t*) {
  if (bytes % 16 || reinterpret_cast<uintptr_t>(to) % 16 || reinterpret_cast<uintptr_t>(from) % 16) std::abort();
  memcpy(to, from, bytes);
}
""",
    "rcp": "static float rl_rcp(float x) { return 1.0f / x; }\n",
    "sqrt": "static float rl_sqrt(float x) { return std::sqrt(x); }\n",
}
TEAM_SYNC = re.compile(r"__device__ __forceinline__ void rl_team_sync\(.*?\n}\n", re.DOTALL)
EMULATED_TEAM_SYNC = """
__device__ void rl_team_sync(unsigned* counter, unsigned goal) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __atomic_fetch_add(counter, 1u, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(counter, __ATOMIC_SEQ_CST) < goal) std::this_thread::yield();
  }
  __syncthreads();
}
"""
LAUNCH = re.compile(r"(rl_\w+)<<<(.*), (THREADS), (\w+), stream>>>\((.*)\);")
GRID_LAUNCH = re.compile(
    r"  cudaLaunchConfig_t config = \{\};\n.*?cudaLaunchKernelEx\(&config, rl_rows, (.*?)\);", re.DOTALL
)
RESIDENT = re.compile(r"static const int64_t resident = \[\] \{.*?\}\(\);", re.DOTALL)


def on_cpu(source: str) -> str:
    """Return C++ with the product's entry that does what the source does on a GPU."""
    body = source.replace('#include "problem.h"', "")
    for name, text in IN_CPP.items():
        own = needed_sections([name], *CUDA).split(needed_sections(["words"], *CUDA))[-1].lstrip("\n")
        body = body.replace(own, text)
    body = TEAM_SYNC.sub(EMULATED_TEAM_SYNC, body)
    body = body.replace('asm("ex2.approx.f32 %0, %1;" : "=f"(power) : "f"(high));', "power = std::exp2(high);")
    body = body.replace('asm volatile("" : "+r"(at));', "")
    body = body.replace(
        "extern __shared__ __align__(128) unsigned char shared[];", "unsigned char* shared = emulated_shared();"
    )
    body = re.sub(r"__shared__ (alignas\(\d+\))", r"\1 __shared__", body)
    body = body.replace(
        "static_cast<float*>(workspace)",
        "static_cast<float*>(memset(malloc(workspace_bytes()), 255, workspace_bytes()))",
    )
    body = RESIDENT.sub("const int64_t resident = 2;", body)
    together = "PARTS" if "__cluster_dims__" in body else "1"
    body = LAUNCH.sub(rf"emulated_launch(\2, THREADS, \4, {together}, [=] {{ \1(\5); }});", body)
    body = GRID_LAUNCH.sub(
        r"emulated_launch(PARTS * TEAMS, THREADS, SHARED_BYTES, PARTS * TEAMS, [=] { rl_rows(\1); });", body
    )
    # a CPU's entry has no stream
    head, entry = body.split('extern "C" void run(')
    entry = entry.replace(",\n    cudaStream_t stream)", ")", 1)
    return (HERE / "emulation.h").read_text() + head + 'extern "C" void run(' + entry
