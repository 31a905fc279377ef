// The native host's GPU: the judge's imported memory, a stream, events, a check of every CUDA error.
//
// The host uses the driver API alone. The candidate brings a runtime of its own, which finds the primary context current.
#pragma once

#include <cuda.h>

#include "host_wire.h"

namespace host {

constexpr size_t kGuard = 64 << 20;  // address space without memory on both sides of a region: an overrun faults

class Device {
   public:
    static constexpr bool kOpensASet = false;  // compute-sanitizer runs the host alone, with allocations of its own

    void open() {
        must(cuInit(0), "starting the driver");
        must(cuDeviceGet(&device_, 0), "opening the GPU");
        must(cuDevicePrimaryCtxSetFlags(device_, CU_CTX_SCHED_SPIN), "choosing how to wait");
        must(cuDevicePrimaryCtxRetain(&context_, device_), "making a context");
        must(cuCtxSetCurrent(context_), "making a context");
        must(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "making a stream");
        must(cuEventCreate(&first_, CU_EVENT_DEFAULT), "making an event");
        must(cuEventCreate(&last_, CU_EVENT_DEFAULT), "making an event");
        start();  // the driver starts threads on first use: before the candidate is loaded
        stop();
    }

    char *map(const RegionSpec &spec) {
        CUmemGenericAllocationHandle handle{};
        auto fd = reinterpret_cast<void *>(static_cast<intptr_t>(spec.fd));
        must(cuMemImportFromShareableHandle(&handle, fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
             "importing the judge's memory");
        CUdeviceptr space = 0;
        must(cuMemAddressReserve(&space, spec.bytes + 2 * kGuard, 0, 0, 0), "reserving addresses");
        const CUdeviceptr base = space + kGuard;
        must(cuMemMap(base, spec.bytes, 0, handle, 0), "mapping the judge's memory");
        CUmemAccessDesc access{};
        access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        access.location.id = device_;
        access.flags = spec.read_only ? CU_MEM_ACCESS_FLAGS_PROT_READ : CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        must(cuMemSetAccess(base, spec.bytes, &access, 1), "opening the judge's memory");
        must(cuMemRelease(handle), "letting go of the handle");  // the mapping keeps the memory
        close(spec.fd);
        return reinterpret_cast<char *>(base);
    }

    void expose(void *, size_t) {}

    void hide(void *, size_t) {}

    // Memory as the driver gives it, so that a sanitizer finds reads of bytes that nobody wrote.
    void *allocate(size_t bytes) {
        if (bytes == 0) return nullptr;
        CUdeviceptr memory = 0;
        if (cuMemAlloc(&memory, bytes) != CUDA_SUCCESS)
            fail(wire::failure::kOutOfMemory, "cannot allocate " + std::to_string(bytes) + " bytes on the GPU");
        return reinterpret_cast<void *>(memory);
    }

    // Fill memory with NaN: no candidate may count on zeros.
    void spoil(void *memory, size_t bytes) {
        if (bytes > 0) must(cuMemsetD8(reinterpret_cast<CUdeviceptr>(memory), 0xFF, bytes), "filling memory");
    }

    void upload(void *to, const void *from, size_t bytes) {
        must(cuMemcpyHtoD(reinterpret_cast<CUdeviceptr>(to), from, bytes), "copying to the GPU");
    }

    void ready_for_candidate() {}

    void *stream() { return stream_; }

    int threads() { return 1; }

    void start() { check(cuEventRecord(first_, stream_), "an event"); }

    // Waits for everything on every stream, and returns what passed on the candidate's stream.
    int64_t stop() {
        check(cuEventRecord(last_, stream_), "an event");
        check(cuCtxSynchronize(), "a kernel");
        float milliseconds = 0;
        check(cuEventElapsedTime(&milliseconds, first_, last_), "an event");
        return static_cast<int64_t>(static_cast<double>(milliseconds) * 1e6);
    }

    void check(CUresult error, const char *what) {
        if (error == CUDA_SUCCESS) return;
        if (error == CUDA_ERROR_OUT_OF_MEMORY) fail(wire::failure::kOutOfMemory, "the GPU's memory is used up");
        std::string hint;
        if (error == CUDA_ERROR_ILLEGAL_ADDRESS)
            hint = ": it read or wrote outside its tensors, or wrote an input (inputs are read-only)";
        fail(wire::failure::kCudaError, std::string(what) + " ended in " + name_of(error) + hint);
    }

    bool begin_capture() { return cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS; }

    bool end_capture() {
        CUgraph graph = nullptr;
        if (cuStreamEndCapture(stream_, &graph) != CUDA_SUCCESS || graph == nullptr) return false;
        if (cuGraphInstantiate(&graph_, graph, 0) != CUDA_SUCCESS) return false;
        return cuGraphUpload(graph_, stream_) == CUDA_SUCCESS && cuCtxSynchronize() == CUDA_SUCCESS;
    }

    void replay() { check(graph_ == nullptr ? CUDA_ERROR_INVALID_VALUE : cuGraphLaunch(graph_, stream_), "a graph"); }

   private:
    static std::string name_of(CUresult error) {
        const char *name = nullptr, *text = nullptr;
        cuGetErrorName(error, &name);
        cuGetErrorString(error, &text);
        return std::string(name ? name : "an unknown CUDA error") + (text ? std::string(" (") + text + ")" : "");
    }

    void must(CUresult error, const char *what) {
        if (error != CUDA_SUCCESS) fail(wire::failure::kDevice, std::string(what) + " failed: " + name_of(error));
    }

    CUdevice device_ = 0;
    CUcontext context_ = nullptr;
    CUstream stream_ = nullptr;
    CUevent first_ = nullptr, last_ = nullptr;
    CUgraphExec graph_ = nullptr;
};

}  // namespace host
