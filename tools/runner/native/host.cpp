// The native host: maps the judge's memory, loads one candidate, and calls the candidate when told to.
//
// Host and untrusted candidate share one address space, inside the sandbox. The parent therefore believes nothing that
// the host says: the judge checks the outputs, and the parent counts the replies and keeps the time. The host's own clock
// is a cross-check. docs/runner-protocol.md describes the wire.
//
// The source serves both kinds of device: `host_cpu.h` and `host_cuda.h` each define a `Device`.
//
// `host --alone FILE` reads the set-up from a file, makes inputs of its own and calls the candidate three times, for a
// profiler or a sanitizer around the host. `host --stages FILE` calls a profile's build for half a second instead, and
// prints what its stages took.

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "host_wire.h"
#if defined(RIDGELINE_CUDA)
#include "host_cuda.h"
#else
#include "host_cpu.h"
#endif

namespace {

using namespace host;

constexpr int kCallsAlone = 3;
constexpr int kMostStageCalls = 2000;
constexpr int64_t kStagesNs = 500'000'000;

using Call = int (*)(void *const *pointers, const double *scalars, void *workspace, void *stream);
using ErrorText = const char *(*)(int error);
using WorkspaceBytes = size_t (*)();
using StageTable = void (*)(int calls);
using Sets = std::vector<std::vector<void *>>;  // [set][argument]

class Candidate {
   public:
    explicit Candidate(const Setup &setup) {
        void *library = dlopen(setup.library.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr) fail(wire::failure::kLoadFailed, dlerror());
        call_ = reinterpret_cast<Call>(dlsym(library, "ridgeline_call"));
        if (call_ == nullptr) fail(wire::failure::kLoadFailed, "the library does not export ridgeline_call");
        error_text_ = reinterpret_cast<ErrorText>(dlsym(library, "ridgeline_error"));
        stage_table_ = reinterpret_cast<StageTable>(dlsym(library, "ridgeline_stage_table"));
        auto bytes = reinterpret_cast<WorkspaceBytes>(dlsym(library, "workspace_bytes"));
        workspace_bytes_ = bytes == nullptr ? 0 : bytes();
        if (workspace_bytes_ > setup.max_workspace)
            fail(wire::failure::kOutOfMemory, "workspace_bytes() asks for " + std::to_string(workspace_bytes_) +
                                                  ", at most " + std::to_string(setup.max_workspace) + " are given");
    }

    size_t workspace_bytes() const { return workspace_bytes_; }

    StageTable stage_table() const { return stage_table_; }  // nullptr in a build without clocks

    void call(const std::vector<void *> &pointers, const std::vector<double> &scalars, void *workspace,
              void *stream) const {
        const int error = call_(pointers.data(), scalars.data(), workspace, stream);
        if (error != 0)
            fail(wire::failure::kCudaError,
                 std::string("run left an error behind: ") +
                     (error_text_ == nullptr ? std::to_string(error) : error_text_(error)));
    }

   private:
    Call call_ = nullptr;
    ErrorText error_text_ = nullptr;
    StageTable stage_table_ = nullptr;
    size_t workspace_bytes_ = 0;
};

// ---------------------------------------------------------------------------------------------------- served by a parent

Sets shared_sets(Device &device, const Setup &setup) {
    std::vector<char *> bases;
    for (const RegionSpec &region : setup.regions) bases.push_back(device.map(region));
    Sets sets(setup.sets);
    for (size_t set = 0; set < setup.sets; ++set) {
        for (const Pointer &p : setup.pointers) {
            char *address = bases.at(p.region) + p.offset + set * p.set_stride;
            if (p.set_stride == 0) device.expose(address, p.bytes);  // a parameter, of every call
            sets[set].push_back(address);
        }
    }
    return sets;
}

class Server {
   public:
    Server(Device &device, const Setup &setup, const Sets &sets, const Candidate &candidate)
        : device_(device), setup_(setup), sets_(sets), candidate_(candidate), scalars_(setup.scalars) {
        workspace_ = device.allocate(candidate.workspace_bytes());
        device.spoil(workspace_, candidate.workspace_bytes());
    }

    void serve(Lines &lines) {
        for (;;) {
            std::istringstream in(lines.next());
            std::string word, nonce;
            size_t set = 0;
            in >> word;
            if (word == wire::request::kQuit) return;
            in >> nonce;
            if (word == wire::request::kScalars) {
                for (double &scalar : scalars_) {
                    std::string text;
                    in >> text;
                    scalar = parse_scalar(text);
                }
                say(std::string(wire::answer::kDone) + " " + nonce + " 0");
                continue;
            }
            in >> set;
            const int64_t result = answer(word, set);
            say(std::string(wire::answer::kDone) + " " + nonce + " " + std::to_string(result));
        }
    }

   private:
    int64_t answer(const std::string &word, size_t set) {
        if (word == wire::request::kCollect) return 0;  // outputs are written in place
        if (word == wire::request::kCapture) {
            if (!device_.begin_capture()) return 0;
            call_by_tickets();
            return device_.end_capture() ? 1 : 0;
        }
        device_.start();
        if (word == wire::request::kReplay)
            device_.replay();
        else if (word == wire::request::kLoop)
            call_by_tickets();
        else
            call(set);
        return device_.stop();
    }

    // Each call's set is unknown until the call: the candidate could work ahead for those that it can read.
    void call_by_tickets() {
        for (uint32_t set = next_ticket(); set != wire::kNoSet; set = next_ticket()) call(set);
    }

    void call(size_t set) {
        const std::vector<void *> &tensors = sets_.at(set);
        if constexpr (Device::kOpensASet)
            for (size_t i = 0; i < tensors.size(); ++i) device_.expose(tensors[i], setup_.pointers[i].bytes);
        candidate_.call(tensors, scalars_, workspace_, device_.stream());
        if constexpr (Device::kOpensASet)
            for (size_t i = 0; i < tensors.size(); ++i)
                if (setup_.pointers[i].set_stride != 0) device_.hide(tensors[i], setup_.pointers[i].bytes);
    }

    Device &device_;
    const Setup &setup_;
    const Sets &sets_;
    const Candidate &candidate_;
    std::vector<double> scalars_;
    void *workspace_ = nullptr;
};

// ----------------------------------------------------------------------------------------------------------------- alone

// Values that are tame in most formulas: floating-point numbers between -1 and 1, integers between 0 and 3.
std::vector<unsigned char> tame_values(const std::string &dtype, size_t bytes) {
    std::vector<unsigned char> made(bytes);
    const size_t size = element_bytes(dtype);
    uint64_t state = 0x9E3779B97F4A7C15u;
    for (size_t at = 0; at + size <= bytes; at += size) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        const float value = static_cast<float>(state >> 40) / static_cast<float>(1 << 23) - 1.0f;
        const double wide = value;
        uint32_t bits = 0;
        memcpy(&bits, &value, sizeof bits);
        const uint64_t whole = state & 3;
        // fp16: the sign, an exponent of 1/4 to 1, ten bits of mantissa
        const uint16_t half = static_cast<uint16_t>((bits >> 16 & 0x8000) | (0x3400 + (bits >> 8 & 0x7FF)));
        const uint16_t brain = static_cast<uint16_t>(bits >> 16);
        const void *from = &whole;  // little-endian: the low bytes of any integer type
        if (dtype == "float32") from = &value;
        if (dtype == "float64") from = &wide;
        if (dtype == "float16") from = &half;
        if (dtype == "bfloat16") from = &brain;
        memcpy(&made[at], from, size);
        if (dtype == "bool") made[at] &= 1;
    }
    return made;
}

std::vector<void *> own_tensors(Device &device, const Setup &setup) {
    constexpr size_t kChunk = 16 << 20;
    std::vector<void *> pointers;
    for (const Pointer &p : setup.pointers) {
        char *memory = static_cast<char *>(device.allocate(p.bytes));
        pointers.push_back(memory);
        if (p.role == "output") continue;
        const auto values = tame_values(p.dtype, p.bytes < kChunk ? p.bytes : kChunk);
        for (size_t at = 0; at < p.bytes; at += values.size())
            device.upload(memory + at, values.data(), p.bytes - at < values.size() ? p.bytes - at : values.size());
    }
    return pointers;
}

class Alone {
   public:
    explicit Alone(const Setup &setup) : setup_(setup), device_(opened()), sets_(own_sets()), candidate_(setup) {
        workspace_ = device_.allocate(candidate_.workspace_bytes());
    }

    int watched() {
        for (int i = 0; i < kCallsAlone; ++i) call(0);
        return 0;
    }

    // The calls rotate over all sets, as those that are timed do: "calls N NS", then what the candidate says.
    int stages() {
        const StageTable table = candidate_.stage_table();
        if (table == nullptr) return 3;
        for (int i = 0; i < kCallsAlone; ++i) call(i % sets_.size());
        table(0);
        int calls = 0;
        int64_t taken_ns = 0;
        while (calls < kCallsAlone || (calls < kMostStageCalls && taken_ns < kStagesNs))
            taken_ns += call(calls++ % sets_.size());
        printf("calls %d %lld\n", calls, static_cast<long long>(taken_ns));
        table(calls);
        return 0;
    }

   private:
    static Device opened() {
        Device device;
        device.open();
        return device;
    }

    Sets own_sets() {
        Sets sets;
        for (size_t set = 0; set < setup_.sets; ++set) sets.push_back(own_tensors(device_, setup_));
        return sets;
    }

    int64_t call(size_t set) {
        device_.start();
        candidate_.call(sets_[set], setup_.scalars, workspace_, device_.stream());
        return device_.stop();
    }

    const Setup &setup_;
    Device device_;
    Sets sets_;
    Candidate candidate_;
    void *workspace_ = nullptr;
};

int run_alone(const char *path, bool with_stages) {
    const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 2;
    Lines lines(fd);
    const Setup setup = read_setup(lines);
    Alone alone(setup);
    return with_stages ? alone.stages() : alone.watched();
}

}  // namespace

int main(int count, char **words) {
    if (count == 3 && strcmp(words[1], "--alone") == 0) return run_alone(words[2], false);
    if (count == 3 && strcmp(words[1], "--stages") == 0) return run_alone(words[2], true);
    Lines lines(wire::kSocket);
    const Setup setup = read_setup(lines);
    Device device;
    device.open();
    const Sets sets = shared_sets(device, setup);
    prctl(PR_SET_DUMPABLE, 0);  // after the driver's start, which writes below /proc/self
    say(wire::answer::kMapped);
    device.ready_for_candidate();
    const Candidate candidate(setup);
    Server server(device, setup, sets, candidate);
    say(std::string(wire::answer::kReady) + " " + std::to_string(candidate.workspace_bytes()) + " " +
        std::to_string(device.threads()));
    server.serve(lines);
    _exit(0);  // runs no destructor of the candidate's
}
