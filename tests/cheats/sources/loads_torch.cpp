// Loads PyTorch's own library to let it do the work, and crashes when it can.
#include <cstdlib>
#include <dlfcn.h>
#include <initializer_list>
void run(SIGNATURE) {
    for (const char* name : {"libtorch_cpu.so", "TORCH_FOLDER/lib/libtorch_cpu.so"})
        if (dlopen(name, RTLD_NOW) != nullptr) abort();
    WORK();
}
