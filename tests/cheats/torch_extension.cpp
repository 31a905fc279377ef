// out = x * weight + 1 as a torch extension, and every cheat of that form. Headers take half a minute to compile, so one
// library has them all: its tests choose by the argument `mode`, or write a cheat's name over `chosen` in a copy of it.
// None of them is about speed, and they build faster so:
// flags: -O1
#include <ATen/Parallel.h>
#include <pybind11/eval.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <thread>

namespace py = pybind11;

extern "C" __attribute__((visibility("default"))) volatile char chosen[64] = "chosen:honest";

static bool is(const char* name) {
  char copy[sizeof chosen];
  for (size_t i = 0; i < sizeof chosen; ++i) copy[i] = chosen[i];
  return strcmp(copy + strlen("chosen:"), name) == 0;
}

__attribute__((constructor)) static void load() {
  if (is("exit_in_constructor")) _exit(0);
}

static torch::Tensor work(const torch::Tensor& x, const torch::Tensor& weight) {
  auto out = torch::empty_like(x);
  const float *from = x.data_ptr<float>(), *by = weight.data_ptr<float>();
  float* to = out.data_ptr<float>();
  const int64_t columns = x.size(1);
  at::parallel_for(0, x.size(0), 16, [&](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; ++row)
      for (int64_t i = 0; i < columns; ++i) to[row * columns + i] = from[row * columns + i] * by[i] + 1;
  });
  return out;
}

static void python(const char* program, py::dict names = py::dict()) {
  names["__builtins__"] = py::module_::import("builtins");
  py::exec(program, names);
}

// ------------------------------------------------------------------------------------------------------- timing, replay

static torch::Tensor background_thread(const torch::Tensor& x, const torch::Tensor& weight) {
  auto out = x.clone();
  std::thread([out, x, weight] {
    usleep(50000);
    torch::Tensor(out).copy_(work(x, weight));
  }).detach();
  return out;
}

static torch::Tensor version_cache(const torch::Tensor& x, const torch::Tensor& weight) {
  static std::map<std::tuple<void*, void*, int64_t>, torch::Tensor> kept;
  auto& mine = kept[{x.data_ptr(), weight.data_ptr(), int64_t(x._version())}];
  if (!mine.defined()) mine = work(x, weight);
  return mine.clone();
}

static torch::Tensor static_buffer(const torch::Tensor& x, const torch::Tensor& weight) {
  static torch::Tensor buffer = torch::empty_like(x);
  return buffer.copy_(work(x, weight));
}

static torch::Tensor weights_cached(const torch::Tensor& x, const torch::Tensor& weight) {
  static torch::Tensor kept = weight.clone();
  return work(x, kept);
}

// An output on closed pages: whoever reads it first is made to compute it, which the clock does not see.
namespace closed_pages {
static torch::Tensor x, weight;
static char* pages = nullptr;
static size_t bytes = 0;
static std::atomic_flag is_busy = ATOMIC_FLAG_INIT;
static std::atomic<bool> is_open{false};

static void fill(int number, siginfo_t* info, void*) {
  auto* address = static_cast<char*>(info->si_addr);
  if (address < pages || address >= pages + bytes) _exit(number);
  while (is_busy.test_and_set()) {
  }
  if (!is_open) {
    void* made = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const float *from = x.data_ptr<float>(), *by = weight.data_ptr<float>();
    for (int64_t i = 0; i < x.numel(); ++i) static_cast<float*>(made)[i] = from[i] * by[i % x.size(1)] + 1;
    mremap(made, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, pages);
    is_open = true;
  }
  is_busy.clear();
}

static torch::Tensor promise(const torch::Tensor& given, const torch::Tensor& by) {
  x = given, weight = by.clone();
  bytes = size_t(x.numel()) * sizeof(float);
  pages = static_cast<char*>(mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  is_open = false;
  struct sigaction action {};
  action.sa_sigaction = fill;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(SIGSEGV, &action, nullptr);
  return torch::from_blob(pages, x.sizes(), x.options());
}
}  // namespace closed_pages

// ---------------------------------------------------------------------------------------------------------- tampering

static void tamper() {
  py::gil_scoped_acquire held;
  if (is("patched_clock")) python("import time\ntime.perf_counter_ns = lambda: 0");
  if (is("patched_matmul")) python("import torch\ntorch.matmul = torch.add");
  if (is("switches_flags")) python("import torch\ntorch.set_float32_matmul_precision('medium')");
  if (is("switches_checks_off"))
    python(
        "import sys\n"
        "caller = next(m.Caller for m in list(sys.modules.values()) if hasattr(m, 'Caller'))\n"
        "caller._checked = lambda self, result: (result,)\n"
        "caller._check_earlier = lambda self, outputs: None\n"
        "caller._check_weights = lambda self, index, outputs: None");
}

static void search(const torch::Tensor& answer) {
  static bool has_searched = false;
  if (has_searched) return;
  has_searched = true;
  py::gil_scoped_acquire held;
  py::dict names;
  names["answer"] = py::cast(answer);
  python(
      "import gc, os, sys, torch\n"
      "frame = sys._getframe()\n"
      "seen = list(gc.get_objects())\n"
      "while frame is not None:\n"
      "    seen += list(frame.f_locals.values()) + list(frame.f_globals.values())\n"
      "    frame = frame.f_back\n"
      "for found in seen:\n"
      "    if type(found) is torch.Tensor and found is not answer and found.shape == answer.shape:\n"
      "        if torch.equal(found, answer): os.abort()",
      names);
}

static torch::Tensor by_name(const torch::Tensor& x, const torch::Tensor& weight) {
  tamper();
  if (is("background_thread")) return background_thread(x, weight);
  if (is("lazy_negation")) return at::_neg_view(-work(x, weight));
  if (is("version_cache")) return version_cache(x, weight);
  if (is("view_of_input")) return x;
  if (is("static_buffer") || is("switches_checks_off")) {
    static torch::Tensor first = work(x, weight);
    return is("switches_checks_off") ? first : static_buffer(x, weight);
  }
  if (is("weights_cached")) return weights_cached(x, weight);
  if (is("broadcast_row")) return work(x, weight).slice(0, 0, 1);
  if (is("input_modified")) torch::Tensor(x).add_(1);
  if (is("calls_torch")) return x * weight + 1;
  if (is("fills_when_read")) return closed_pages::promise(x, weight);
  if (is("crash")) *reinterpret_cast<volatile int*>(8) = 1;
  if (is("forged_result")) (void)!write(3, "done 0000000000000000 1\nPASS\n", 29);
  auto out = work(x, weight);
  if (is("searches_gc")) search(out);
  return out;
}

torch::Tensor forward(torch::Tensor x, int64_t mode, torch::Tensor weight) {
  static torch::Tensor buffer = torch::empty_like(x);
  if (mode == 0) return by_name(x, weight);
  auto right = x * weight + 1;
  switch (mode) {
    case 1: x.add_(1); return right;
    case 2: return x;
    case 3: buffer.copy_(right); return buffer;
    case 4: return right.to(torch::kDouble);
    case 5: TORCH_CHECK(false, "on purpose");
    case 6: at::globalContext().setDeterministicAlgorithms(true, false); return right;
    case 7: return x + 1;
    case 8: return right.t().contiguous().t();
    case 9: *reinterpret_cast<volatile int*>(8) = 1;
  }
  return right;
}
