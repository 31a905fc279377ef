// Looks for a secret wherever one may lie, and crashes when it finds it.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <string>
extern char** environ;
static void look(const char* path) {
    FILE* file = fopen(path, "r");
    if (!file) return;
    std::string text;
    char chunk[4096];
    for (size_t n; (n = fread(chunk, 1, sizeof chunk, file)) > 0 && text.size() < (1u << 20);) text.append(chunk, n);
    fclose(file);
    std::string wanted = "SECRET_";
    wanted += "VALUE";
    if (text.find(wanted) != std::string::npos) abort();
}
void run(SIGNATURE) {
    for (char** entry = environ; *entry; ++entry)
        if (strstr(*entry, "_KEY=") != nullptr) abort();
    if (DIR* processes = opendir("/proc"))
        while (dirent* entry = readdir(processes))
            for (const char* leaf : {"environ", "cmdline"}) {
                const std::string path = std::string("/proc/") + entry->d_name + "/" + leaf;
                if (strspn(entry->d_name, "0123456789") == strlen(entry->d_name)) look(path.c_str());
            }
    look("SECRET_FILE");
    WORK();
}
