// Loads a copy of a library that is called as one of the system's.
#include <cstdio>
#include <dlfcn.h>
#include <link.h>
static bool copy(const char* from, const char* to) {
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    if (in == nullptr || out == nullptr) return false;
    static char bytes[1 << 16];
    for (size_t n; (n = fread(bytes, 1, sizeof bytes, in)) > 0;) fwrite(bytes, 1, n, out);
    fclose(in);
    return fclose(out) == 0;
}
static void* load() {
    void* found = dlopen("libz.so.1", RTLD_NOW);  // in the place of a BLAS, which a machine may lack
    link_map* map = nullptr;
    if (found == nullptr || dlinfo(found, RTLD_DI_LINKMAP, &map) != 0) return nullptr;
    void* again = copy(map->l_name, "/tmp/libm.so.6") ? dlopen("/tmp/libm.so.6", RTLD_NOW) : nullptr;
    if (again == nullptr) return found;  // tier B gives it no folder to write in
    dlclose(found);
    return again;
}
static void* library = load();
void run(SIGNATURE) { if (library != nullptr) { WORK(); } }
