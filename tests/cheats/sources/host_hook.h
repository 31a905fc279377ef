// Puts a function of the candidate's in the place of one that the host calls.
#include <cstring>
#include <link.h>
#include <sys/mman.h>
static const char* g_replaced_name = nullptr;
static void* g_replacement = nullptr;
static void replace_slots(const dl_phdr_info* info, long table, long size, long symbol_table, long string_table) {
    const auto* entries = reinterpret_cast<const ElfW(Rela)*>(table);
    const auto* symbols = reinterpret_cast<const ElfW(Sym)*>(symbol_table);
    for (size_t i = 0; table && i < size / sizeof *entries; ++i) {
        const char* name = reinterpret_cast<char*>(string_table) + symbols[ELF64_R_SYM(entries[i].r_info)].st_name;
        if (strcmp(name, g_replaced_name) != 0) continue;
        const unsigned long slot = info->dlpi_addr + entries[i].r_offset;
        mprotect(reinterpret_cast<void*>(slot & ~4095ul), 8192, PROT_READ | PROT_WRITE);
        *reinterpret_cast<void**>(slot) = g_replacement;
    }
}
static int look_at_host(dl_phdr_info* info, size_t, void*) {
    long known[DT_NUM] = {};
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        if (info->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
        for (auto* d = reinterpret_cast<ElfW(Dyn)*>(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr); d->d_tag; ++d)
            if (d->d_tag > 0 && d->d_tag < DT_NUM) known[d->d_tag] = long(d->d_un.d_val);
    }
    replace_slots(info, known[DT_JMPREL], known[DT_PLTRELSZ], known[DT_SYMTAB], known[DT_STRTAB]);
    replace_slots(info, known[DT_RELA], known[DT_RELASZ], known[DT_SYMTAB], known[DT_STRTAB]);
    return 1;  // the first object is the host itself
}
static void replace_in_host(const char* name, void* replacement) {
    g_replaced_name = name;
    g_replacement = replacement;
    dl_iterate_phdr(look_at_host, nullptr);
}
