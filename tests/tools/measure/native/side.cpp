// A trusted stand-in for a runner: out = 3 x + 1 over sets in a shared file, honest or with one named way to cheat.
//   side FILE COUNTER N_SETS ELEMENTS WORK MODE      says "ready"; then on stdin: "loop CALLS SET…"  ->  "done OWN_NS"
// COUNTER is a file of 8 bytes: how many calls of the loop have begun.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <unordered_map>
#include <vector>

static size_t elements;
static int work;
static std::string mode;
static std::atomic<const float*> handed_in{nullptr};
static std::atomic<float*> handed_out{nullptr};

static void honest(const float* x, float* out) {
    for (size_t i = 0; i < elements; ++i) {
        float v = x[i], extra = 0.0f;
        for (int k = 0; k < work; ++k) extra = extra * 0.5f + v;  // WORK multiplies the time, not the result
        out[i] = 3.0f * v + 1.0f + (extra == 12345.678f ? 1.0f : 0.0f);
    }
}

static void remembered(const float* x, float* out, long key) {
    static std::unordered_map<long, std::vector<float>> results;
    auto& kept = results[key];
    if (kept.empty()) {
        honest(x, out);
        kept.assign(out, out + elements);
    } else {
        memcpy(out, kept.data(), elements * sizeof(float));
    }
}

static std::atomic<long> turns{0};
static void background() {
    for (;; ++turns) {
        if (mode == "late") {
            float* out = handed_out.exchange(nullptr);
            if (out) honest(handed_in.load(), out);
            std::this_thread::sleep_for(std::chrono::microseconds(400));
        }
    }
}

static void call(const float* x, float* out, long number, long loops) {
    long bits = 0;
    memcpy(&bits, x, sizeof bits);
    if (mode == "pointer_cache") return remembered(x, out, (long)x);
    if (mode == "fingerprint_cache") return remembered(x, out, bits);
    if (mode == "skips_later" && loops > 8) return;
    if (mode == "late" && number > 0) {
        handed_in = x;
        handed_out = out;
        return;
    }
    static bool started = false;
    if (mode == "new_thread" && loops > 8 && !started) {
        started = true;
        std::thread([] { sleep(1000); }).detach();
    }
    honest(x, out);
}

static float* memory;
static float* at(int set) { return memory + 2 * elements * set; }

static std::vector<std::vector<float>> privately;
static void work_privately(int n_sets) {
    privately.assign(n_sets, std::vector<float>(elements));
    for (int set = 0; set < n_sets; ++set) honest(at(set), privately[set].data());
}

static long now_ns() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

static void* shared(const char* path, size_t bytes) {
    void* found = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, open(path, O_RDWR), 0);
    if (found == MAP_FAILED) _exit(1);
    return found;
}

int main(int, char** argv) {
    int n_sets = atoi(argv[3]);
    elements = strtoul(argv[4], nullptr, 10);
    work = atoi(argv[5]);
    mode = argv[6];
    memory = (float*)shared(argv[1], 2 * elements * n_sets * sizeof(float));
    auto begun = (std::atomic<long>*)shared(argv[2], sizeof(long));
    printf("ready\n");
    fflush(stdout);
    if (mode == "spins" || mode == "late") std::thread(background).detach();
    long number = 0, loops = 0;
    int calls;
    while (scanf(" loop %d", &calls) == 1) {
        std::vector<int> sets(calls);
        for (int& set : sets)
            if (scanf("%d", &set) != 1) return 1;
        long start = now_ns();
        if (mode == "dawdles" && calls > 1 && loops % 3 == 1) usleep(20000);
        if (mode == "works_ahead")
            for (int set = 0; set < n_sets; ++set) honest(at(set), at(set) + elements);
        if (mode == "works_privately") work_privately(n_sets);
        for (int set : sets) {
            if (mode == "works_ahead") continue;
            if (mode == "works_privately") {
                memcpy(at(set) + elements, privately[set].data(), elements * sizeof(float));
                continue;
            }
            ++*begun;  // before anything of the set is read
            call(at(set), at(set) + elements, number++, loops);
        }
        ++loops;
        long own = now_ns() - start;
        printf("done %ld\n", mode == "lies" ? own / 2 : own);
        fflush(stdout);
    }
    _exit(0);
}
