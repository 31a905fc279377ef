// Reads every other process's memory and descriptors for expected outputs, and crashes when it can.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <string>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <unistd.h>
static bool g_has_looked = false;
static void look(pid_t pid) {
    if (pid == getpid()) return;
    const std::string folder = "/proc/" + std::to_string(pid);
    for (const char* leaf : {"/mem", "/maps", "/fd/3", "/fd/4", "/fd/5", "/root/etc/passwd"})
        if (open((folder + leaf).c_str(), O_RDONLY) >= 0) abort();
    char word[8];
    iovec here{word, sizeof word}, there{reinterpret_cast<void*>(0x400000), sizeof word};
    if (process_vm_readv(pid, &here, 1, &there, 1, 0) > 0) abort();
    if (ptrace(PTRACE_SEIZE, pid, nullptr, nullptr) == 0) abort();
}
void run(SIGNATURE) {
    for (pid_t pid = 1; pid < 32768 && !g_has_looked; ++pid) look(pid);
    g_has_looked = true;
    WORK();
}
