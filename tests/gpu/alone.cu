// The mode `--alone SETUP_FILE` of a native host and nothing else, for tests of the tools that watch a candidate: fills
// the regions with random floats, calls the candidate three times, exits 0. 2: wrong arguments; 3: a CUDA error.
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <stdint.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace {

using Call = void (*)(void* const*, const double*, void*, void*);
using WorkspaceBytes = size_t (*)();

void check(cudaError_t error, const char* doing) {
    if (error == cudaSuccess) return;
    fprintf(stderr, "%s: %s\n", doing, cudaGetErrorString(error));
    exit(3);
}

void* random_region(size_t bytes, bool is_written_by_the_candidate) {
    void* memory = nullptr;
    check(cudaMalloc(&memory, bytes), "allocating a region");
    if (is_written_by_the_candidate) return memory;
    std::mt19937 generator(20);
    std::uniform_real_distribution<float> numbers(-1.0f, 1.0f);
    std::vector<float> values(bytes / sizeof(float));
    for (float& value : values) value = numbers(generator);
    check(cudaMemcpy(memory, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice), "filling a region");
    return memory;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3 || strcmp(argv[1], "--alone") != 0) return 2;
    std::ifstream setup(argv[2]);
    std::string line, library;
    std::vector<void*> regions, pointers;
    std::vector<double> scalars;
    while (std::getline(setup, line) && line != "end") {
        std::istringstream words(line);
        std::string word, role, access, type;
        size_t number = 0, bytes = 0, offset = 0;
        words >> word;
        if (word == "library") {
            words >> library;
        } else if (word == "region") {
            words >> number >> bytes >> access;
            regions.push_back(random_region(bytes, access == "rw"));
        } else if (word == "pointer") {
            words >> role >> number >> offset;
            pointers.push_back(static_cast<char*>(regions.at(number)) + offset);
        } else if (word == "scalar") {
            double value = 0.0;
            words >> type >> value;
            scalars.push_back(value);
        }
    }
    void* candidate = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (candidate == nullptr) return fprintf(stderr, "%s\n", dlerror()), 2;
    auto call = reinterpret_cast<Call>(dlsym(candidate, "ridgeline_call"));
    auto asked = reinterpret_cast<WorkspaceBytes>(dlsym(candidate, "workspace_bytes"));
    if (call == nullptr) return fprintf(stderr, "no ridgeline_call\n"), 2;
    void* workspace = nullptr;
    if (asked != nullptr && asked() > 0) check(cudaMalloc(&workspace, asked()), "allocating the workspace");
    cudaStream_t stream = nullptr;
    check(cudaStreamCreate(&stream), "creating a stream");
    for (int i = 0; i < 3; ++i) call(pointers.data(), scalars.data(), workspace, stream);
    check(cudaGetLastError(), "launching");
    check(cudaStreamSynchronize(stream), "running");
    return 0;
}
