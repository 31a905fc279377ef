// A driver and an NVML of one GPU that does not exist, for what is said before any work reaches it.
#include <cstdlib>
#include <cstring>

namespace {
int number(const char* name, int usual) {
  const char* text = std::getenv(name);
  return text ? std::atoi(text) : usual;
}
}  // namespace

struct Process {
  unsigned pid;
  unsigned long long used_bytes;
  unsigned gpu_instance, compute_instance;
};

extern "C" {
int cuInit(unsigned) { return number("RIDGELINE_FAKE_INIT", 0); }
int cuDeviceGetCount(int* count) { return *count = 1, 0; }
int cuDeviceGet(int* device, int) { return *device = 0, 0; }
int cuDeviceGetName(char* name, int size, int) { return std::strncpy(name, "Fake GPU", size), 0; }
int cuDeviceTotalMem_v2(size_t* bytes, int) { return *bytes = size_t{24} << 30, 0; }
int cuDeviceGetUuid(unsigned char* bytes, int) { return std::memset(bytes, 0x11, 16), 0; }
int cuDriverGetVersion(int* version) { return *version = number("RIDGELINE_FAKE_CUDA", 99000), 0; }
int cuDeviceGetAttribute(int* value, int attribute, int) {
  const int capability = number("RIDGELINE_FAKE_CAPABILITY", 90);
  *value = attribute == 75 ? capability / 10 : attribute == 76 ? capability % 10 : attribute == 38 ? 50 << 20 : 132;
  return 0;
}

int nvmlInitWithFlags(unsigned) { return 0; }
int nvmlShutdown() { return 0; }
int nvmlDeviceGetHandleByUUID(const char*, void**) { return 0; }
int nvmlSystemGetDriverVersion(char* text, unsigned size) { return std::strncpy(text, "535.104.05", size), 0; }
int nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned* count, Process* found) {
  const unsigned room = *count;
  *count = number("RIDGELINE_FAKE_PROCESSES", 0);
  if (*count > room) return 7;  // NVML_ERROR_INSUFFICIENT_SIZE: the caller makes room and asks again
  for (unsigned i = 0; i < *count; ++i) found[i] = {4100000000u + i, 3ull << 30, 0, 0};
  return 0;
}
}
