"""Stoppers of interface c: sources that no compiler likes, and kernels that end, hang or fill what they reach."""

from __future__ import annotations

from itertools import pairwise

from ridgeline.tools.records.vocabulary import ReasonCode

from .stopper import CHEATS, Stopper, stopper

R = ReasonCode
_ONCE = (CHEATS / "sources" / "honest_work.h").read_text()
_WORK = _ONCE.replace("#define WORK() ", "#define WORK() for (int again = 0; again < 5; ++again) ")
"""Honest work without a gain: a certificate would take longer than all that is asked here."""
_RUN = "void run(SIGNATURE) { WORK(); }\n"


def honest(place: int) -> Stopper:
    """Return an honest kernel whose source is its own."""
    return stopper(f"honest{place}", f"{_WORK}// {place}\n{_RUN}")


def _ahead(name: str, before: str, *codes: R) -> Stopper:
    """Return honest work behind something of a source's own."""
    return stopper(name, f"{_WORK}{before}\n{_RUN}", *codes)


def _calls(name: str, body: str, *codes: R) -> Stopper:
    """Return honest work whose every call begins with something else."""
    return stopper(name, f"{_WORK}{_SYSTEM}void run(SIGNATURE) {{\n{body}\nWORK();\n}}\n", *codes)


def _cheat(name: str, *codes: R) -> Stopper:
    """Return a candidate of tests/cheats."""
    return stopper(name, _WORK + (CHEATS / "sources" / f"{name}.cpp").read_text(), *codes)


def _tenfold(name: str, of: str, times: int) -> str:
    """Return macros `name`1, `name`2, …, each ten times the one before, the first ten times `of`."""
    names = [of, *(f"{name}{n}" for n in range(1, times + 1))]
    return "".join(f"#define {b} {f'{a} ' * 10}\n" for a, b in pairwise(names))


_SYSTEM = """
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
"""
_SAYS = '#define M0 _Pragma("message(\\"' + "many words " * 60 + '\\")")\n'
_SPIN = "constexpr int spin(int n) { for (long i = 0; i < 250000; i++) n ^= i; return n; }\n"
_FAILED = R.COMPILER_FAILED
_STOPPED = (R.COMPILER_FAILED, R.COMPILER_TIMEOUT)  # which limit is first depends on the machine

COMPILED: tuple[Stopper, ...] = (
    _ahead("hundreds_of_megabytes_of_messages", f"{_SAYS}{_tenfold('M', 'M0', 6)}M6", *_STOPPED),
    _ahead("half_a_million_errors", "x;\n" * 340_000, *_STOPPED),
    _ahead("nested_parentheses", f"int deep = {'(' * 500_000}1{')' * 500_000};", *_STOPPED),
    _ahead("nested_braces", f"void deep() {'{' * 500_000}{'}' * 500_000}", *_STOPPED),
    _ahead("macros_without_end", f"{_tenfold('W', 'int word;', 12)}W12", *_STOPPED),
    _ahead("includes_itself", '#include "kernel.cpp"\n#include "kernel.cpp"', _FAILED),
    _ahead("templates_without_end", "template <int N> struct T : T<N + 1>, T<N + 2> {}; T<0> endless;", _FAILED),
    _ahead("constants_for_hours", _SPIN + "".join(f"constexpr int v{i} = spin({i});" for i in range(4000)),
           R.COMPILER_TIMEOUT),
    _ahead("table_over_the_limit", "__attribute__((used)) static const char table[65 << 20] = {1};", _FAILED),
    _ahead("file_over_the_limit", 'asm(".data\\n.fill 400 << 20, 1, 7\\n.text");', _FAILED),
    _ahead("memory_over_any_machine", "__attribute__((used)) static char table[1ull << 46];",
           R.LOAD_FAILED, R.OUT_OF_MEMORY, R.CRASHED, R.LINK_FAILED, _FAILED),
    _ahead("an_endless_file_included", 'asm(".incbin \\"/dev/zero\\"");', _FAILED),
    _ahead("its_own_messages_included", '#include "/proc/self/fd/2"\n#include "/proc/self/fd/0"', _FAILED),
    _cheat("speaks_in_errors", _FAILED),
    stopper("too_long_a_source", f"{_WORK}{_RUN}//{'x' * (1 << 20)}\n", R.SOURCE_REJECTED),
    stopper("no_text", f"{_WORK}{_RUN}//\0\n", R.SOURCE_REJECTED),
)  # fmt: skip
"""What is over before anything runs, or is for the loader to refuse."""

_LATE = """
struct Late { ~Late() { DOES } } late;
"""

LOADED: tuple[Stopper, ...] = (
    _cheat("sleep_in_constructor", R.LOAD_TIMEOUT),
    _cheat("exit_in_constructor", R.EXITED),
    _ahead("recurses_while_loading", "int deeper(volatile int n) { return n + deeper(n + 1); } int depth = deeper(0);",
           R.CRASHED),
    _ahead("never_ends_its_process", _SYSTEM + _LATE.replace("DOES", "for (;;) pause();")),
    _ahead("ignores_every_signal",
           f"{_SYSTEM}__attribute__((constructor)) static void deaf() {{ for (int s = 1; s < 65; ++s) signal(s, SIG_IGN); }}"),
    _cheat("spin", R.CALL_TIMEOUT),
    _calls("stops_itself", "raise(SIGSTOP);", R.CALL_TIMEOUT),
    _cheat("exit_in_call", R.EXITED),
    _cheat("crash", R.CRASHED),
    _calls("aborts", "abort();", R.CRASHED),
    _cheat("memory_bomb", R.OUT_OF_MEMORY, R.CRASHED),
    _cheat("dies_to_be_measured_again", R.CRASHED),
    _calls("signals_everyone", "kill(-1, SIGKILL); kill(0, SIGKILL); kill(getppid(), SIGKILL);", R.CRASHED, R.NONE),
    _cheat("talks_without_end", R.SANDBOX_VIOLATION),
    _calls("prints_without_end", 'for (;;) puts("PASS"); ', R.SANDBOX_VIOLATION, R.CALL_TIMEOUT, R.CRASHED),
    _cheat("fork_bomb"),
    _cheat("thread_bomb", R.SANDBOX_VIOLATION, R.CRASHED),
    _cheat("disk_bomb", R.SANDBOX_VIOLATION, R.NONE),
    _calls("nests_folders",
           'char path[] = "d";\nfor (int i = 0; i < 10000 && mkdir(path, 0) == 0 && chmod(path, 0700) == 0; ++i)'
           " if (chdir(path)) break;", R.SANDBOX_VIOLATION, R.NONE),
    _calls("keeps_every_descriptor", 'while (open("/proc/self/maps", O_RDONLY) >= 0) {}'),
    _calls("closes_its_connection", "for (int fd = 0; fd < 4096; ++fd) close(fd);",
           R.EXITED, R.CRASHED, R.PROTOCOL_VIOLATED),
    _calls("floods_its_connection", "static char block[1 << 16]; memset(block, '1', sizeof block);\n"
           "while (write(3, block, sizeof block) > 0) {}", R.PROTOCOL_VIOLATED),
    _calls("unmaps_everything", "munmap(nullptr, 1ull << 46);", R.CRASHED, R.NONE),
    _cheat("forges_a_machine_fault", R.CUDA_ERROR),
    _cheat("forges_a_place", R.CRASHED),
    _cheat("names_itself_in_bytes"),
    _cheat("speaks_in_escapes", R.EXITED),
    _calls("is_always_nearly_late", "for (int i = 0; i < 9; ++i) usleep(999999);", R.EVALUATION_DEADLINE),
)  # fmt: skip
"""What is stopped while it is loaded or called, or leaves its runner in a bad way."""
