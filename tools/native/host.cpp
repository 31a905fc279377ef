// The native host: loads one candidate, maps the judge's memory, calls the candidate when told to, and says how long it
// took by its own clock (a cross-check: the parent's clock is the score). One candidate per process.
//
// It runs inside the sandbox beside untrusted code in one address space, so nothing it says is believed: the parent
// checks the outputs, counts the replies and keeps the time. See docs/runner-protocol.md for the wire.
//
// Memory is behind `Memory`: a CUDA host replaces `map` and `allocate_workspace`, and passes a stream.

#include <dlfcn.h>
#include <omp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define POISON(base, size) __asan_poison_memory_region(base, size)
#define UNPOISON(base, size) __asan_unpoison_memory_region(base, size)
#else
#define POISON(base, size) ((void)0)
#define UNPOISON(base, size) ((void)0)
#endif

namespace {

constexpr int kSocket = 3;
constexpr size_t kPage = 4096;
constexpr size_t kGuard = 1 << 20;  // unreadable space on both sides of a region: an overrun faults instead of passing

using Call = void (*)(void *const *pointers, const double *scalars, void *workspace, void *stream);
using WorkspaceBytes = size_t (*)();

struct Region {
    char *base = nullptr;
    size_t bytes = 0;
    bool read_only = false;
};

struct Pointer {
    std::string role;
    size_t region = 0, offset = 0, set_stride = 0, bytes = 0;
};

// ------------------------------------------------------------------------------------------------------------- wire

void say(const char *line, size_t length) {
    while (length > 0) {
        ssize_t n = write(kSocket, line, length);
        if (n <= 0) _exit(1);  // the parent is gone
        line += n;
        length -= static_cast<size_t>(n);
    }
}

void say(const std::string &line) { say((line + "\n").c_str(), line.size() + 1); }

[[noreturn]] void fail(const std::string &code, std::string message) {
    for (char &c : message)
        if (c == '\n') c = ' ';
    say("failed " + code + " " + message);
    _exit(1);
}

class Lines {
   public:
    std::string next() {
        for (;;) {
            size_t end = pending_.find('\n');
            if (end != std::string::npos) {
                std::string line = pending_.substr(0, end);
                pending_.erase(0, end + 1);
                return line;
            }
            char chunk[4096];
            ssize_t n = read(kSocket, chunk, sizeof chunk);
            if (n <= 0) _exit(0);  // the parent closed the socket
            pending_.append(chunk, static_cast<size_t>(n));
        }
    }

   private:
    std::string pending_;
};

// ----------------------------------------------------------------------------------------------------------- memory

struct Memory {
    static Region map(int fd, size_t bytes, bool read_only) {
        size_t mapped = (bytes + kPage - 1) / kPage * kPage;
        char *space = static_cast<char *>(
            mmap(nullptr, mapped + 2 * kGuard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
        if (space == MAP_FAILED) fail("out_of_memory", "no address space for the judge's memory");
        int access = read_only ? PROT_READ : PROT_READ | PROT_WRITE;
        void *base = mmap(space + kGuard, mapped, access, MAP_SHARED | MAP_FIXED, fd, 0);
        if (base == MAP_FAILED) fail("out_of_memory", "cannot map the judge's memory");
        close(fd);
        return Region{static_cast<char *>(base), bytes, read_only};
    }

    static void *allocate_workspace(size_t bytes) {
        if (bytes == 0) return nullptr;
        void *space = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (space == MAP_FAILED) fail("out_of_memory", "cannot allocate " + std::to_string(bytes) + " workspace bytes");
        return space;
    }
};

// ----------------------------------------------------------------------------------------------------------- faults

std::vector<Region> g_regions;  // global for the signal handler alone

// Formats without the heap: a fault may have come from inside malloc.
void on_fault(int number, siginfo_t *info, void *context) {
    char *address = static_cast<char *>(info->si_addr);
    bool is_write = false;
#if defined(__x86_64__)
    is_write = (static_cast<ucontext_t *>(context)->uc_mcontext.gregs[REG_ERR] & 2) != 0;
#else
    (void)context;
#endif
    char line[160];
    for (size_t i = 0; i < g_regions.size(); ++i) {
        const Region &r = g_regions[i];
        if (address < r.base - kGuard || address >= r.base + r.bytes + kGuard) continue;
        bool inside = address >= r.base && address < r.base + r.bytes;
        const char *code = inside && r.read_only ? "input_written" : "crashed";
        int n = snprintf(line, sizeof line, "failed %s %d %s %zu %td\n", code, number, is_write ? "write" : "read", i,
                         address - r.base);
        say(line, static_cast<size_t>(n));
        _exit(1);
    }
    int n = snprintf(line, sizeof line, "failed crashed %d %s - %#zx\n", number, is_write ? "write" : "read",
                     reinterpret_cast<size_t>(address));
    say(line, static_cast<size_t>(n));
    _exit(1);
}

void watch_faults() {
    static char stack[64 << 10];
    stack_t alternate{};
    alternate.ss_sp = stack;
    alternate.ss_size = sizeof stack;
    sigaltstack(&alternate, nullptr);
    struct sigaction action {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    for (int number : {SIGSEGV, SIGBUS}) sigaction(number, &action, nullptr);
}

// ------------------------------------------------------------------------------------------------------------ set-up

size_t element_bytes(const std::string &dtype) {
    if (dtype == "float64" || dtype == "int64") return 8;
    if (dtype == "float32" || dtype == "int32") return 4;
    if (dtype == "float16" || dtype == "bfloat16" || dtype == "int16") return 2;
    return 1;
}

struct Setup {
    std::string library;
    size_t sets = 0, max_workspace = 0;
    std::vector<Region> regions;
    std::vector<Pointer> pointers;
    std::vector<double> scalars;
};

// istream >> double takes neither "inf" nor "nan", which Python writes.
double parse_scalar(const std::string &text) {
    char *end = nullptr;
    const double value = strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0') fail("protocol", "not a number: " + text);
    return value;
}

Pointer parse_pointer(std::istringstream &in) {
    Pointer p;
    std::string dtype;
    size_t dims = 0;
    in >> p.role >> p.region >> p.offset >> p.set_stride >> dtype >> dims;
    std::vector<size_t> shape(dims), strides(dims);
    for (size_t &s : shape) in >> s;
    for (size_t &s : strides) in >> s;
    size_t last = 0, count = 1;
    for (size_t i = 0; i < dims; ++i) {
        count *= shape[i];
        if (shape[i] > 0) last += (shape[i] - 1) * strides[i];
    }
    p.bytes = count == 0 ? 0 : (last + 1) * element_bytes(dtype);
    return p;
}

Setup read_setup(Lines &lines) {
    Setup setup;
    for (;;) {
        std::istringstream in(lines.next());
        std::string word;
        in >> word;
        if (word == "end") return setup;
        if (word == "library") {
            std::getline(in >> std::ws, setup.library);
        } else if (word == "sets") {
            in >> setup.sets;
        } else if (word == "region") {
            int fd = -1;
            size_t bytes = 0;
            std::string access;
            in >> fd >> bytes >> access;
            setup.regions.push_back(Memory::map(fd, bytes, access == "ro"));
        } else if (word == "pointer") {
            setup.pointers.push_back(parse_pointer(in));
        } else if (word == "scalar") {
            std::string dtype, text;
            in >> dtype >> text;
            setup.scalars.push_back(parse_scalar(text));
        } else if (word == "workspace") {
            in >> setup.max_workspace;
        } else if (word != "setup") {
            fail("protocol", "unknown line: " + word);
        }
    }
}

struct Candidate {
    Call call = nullptr;
    size_t workspace_bytes = 0;
};

Candidate load(const Setup &setup) {
    void *library = dlopen(setup.library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) fail("load_failed", dlerror());
    Candidate candidate;
    candidate.call = reinterpret_cast<Call>(dlsym(library, "ridgeline_call"));
    if (candidate.call == nullptr) fail("load_failed", "the library does not export ridgeline_call");
    auto bytes = reinterpret_cast<WorkspaceBytes>(dlsym(library, "workspace_bytes"));
    candidate.workspace_bytes = bytes == nullptr ? 0 : bytes();
    if (candidate.workspace_bytes > setup.max_workspace)
        fail("out_of_memory", "workspace_bytes() asks for " + std::to_string(candidate.workspace_bytes) + ", at most " +
                                  std::to_string(setup.max_workspace) + " are given");
    return candidate;
}

// [set][argument]
std::vector<std::vector<void *>> addresses_of(const Setup &setup) {
    std::vector<std::vector<void *>> sets(setup.sets);
    for (const Region &region : setup.regions) {
        POISON(region.base, region.bytes);
        (void)region;
    }
    for (size_t set = 0; set < setup.sets; ++set) {
        for (const Pointer &p : setup.pointers) {
            char *address = setup.regions.at(p.region).base + p.offset + set * p.set_stride;
            UNPOISON(address, p.bytes);
            sets[set].push_back(address);
        }
    }
    return sets;
}

// ------------------------------------------------------------------------------------------------------------- calls

int64_t now_ns() {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return static_cast<int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

void serve(Lines &lines, const Setup &setup, const Candidate &candidate, void *workspace) {
    const auto sets = addresses_of(setup);
    for (;;) {
        std::istringstream in(lines.next());
        std::string word, nonce;
        size_t first = 0, calls = 1;
        in >> word;
        if (word == "quit") return;
        in >> nonce >> first;
        if (word == "loop") in >> calls;
        if (word == "collect") calls = 0;
        size_t set = first % setup.sets;
        const int64_t start = now_ns();
        for (size_t i = 0; i < calls; ++i) {
            candidate.call(sets[set].data(), setup.scalars.data(), workspace, nullptr);
            if (++set == setup.sets) set = 0;
        }
        const int64_t elapsed = now_ns() - start;
        say("done " + nonce + " " + std::to_string(word == "collect" ? 0 : elapsed));
    }
}

}  // namespace

int main() {
    prctl(PR_SET_DUMPABLE, 0);
    Lines lines;
    Setup setup = read_setup(lines);
    g_regions = setup.regions;
#if !defined(__SANITIZE_ADDRESS__)
    watch_faults();
#endif
    Candidate candidate = load(setup);
    void *workspace = Memory::allocate_workspace(candidate.workspace_bytes);
    say("ready " + std::to_string(candidate.workspace_bytes) + " " + std::to_string(omp_get_max_threads()));
    serve(lines, setup, candidate, workspace);
    _exit(0);  // no destructor of the candidate has a say
}
