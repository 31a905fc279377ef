"""Stoppers of interface module: files whose import is the build, which may start processes and fill a folder."""

from __future__ import annotations

from ridgeline.tools.records.vocabulary import ReasonCode

from .stopper import CHEATS, Stopper, stopper

R = ReasonCode
_ONCE = (CHEATS / "modules" / "honest.py").read_text()
_HONEST = _ONCE.replace(
    "        return self.work(x, residual)", "        return [self.work(x, residual) for _ in range(5)][-1]"
)
"""Honest work without a gain: a certificate would take longer than all that is asked here."""


def honest(place: int) -> Stopper:
    """Return an honest file whose source is its own."""
    return stopper(f"honest{place}", f"{_HONEST}\n# {place}\n")


def _imported(name: str, body: str, *codes: R) -> Stopper:
    """Return a file that does something when it is imported."""
    return stopper(name, f"{_HONEST}\n{body}\n", *codes)


def _called(name: str, body: str, *codes: R) -> Stopper:
    """Return a file that does something in every call."""
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    return stopper(
        name, f"{_HONEST}\nclass ModelNew(Honest):\n    def forward(self, x, residual):\n{lines}"
        "        return self.work(x, residual)\n", *codes
    )  # fmt: skip


_NESTS = """for place in range(10_000):
    os.mkdir("d")
    open("f", "w").close()
    os.chdir("d")
"""
_CLOSES = """try:
    os.mkdir("closed", 0o300)
    open("closed/file", "w").close()
    os.mkdir("closed/inner", 0)
except OSError:
    pass
"""
_STAYS = """try:
    if os.fork() == 0:
        os.setsid()
        time.sleep(600)
except OSError:
    pass  # a runner may not fork
"""

FILES: tuple[Stopper, ...] = (
    _imported("nests_folders", _NESTS, R.COMPILER_FAILED),
    _imported("closes_folders", _CLOSES, R.COMPILER_FAILED, R.NONE),  # a guard that may not look counts it as full
    _imported("fills_its_folder", "with open('big', 'wb') as f:\n    while True:\n        f.write(bytes(1 << 20))",
              R.COMPILER_FAILED),
    _imported("makes_files_without_end", "place = 0\nwhile True:\n    open(str(place), 'w').close()\n    place += 1",
              R.COMPILER_FAILED),
    _imported("prints_without_end", "while True:\n    print('PASS' * 10_000)", R.COMPILER_FAILED, R.COMPILER_TIMEOUT),
    _imported("forks_without_end", "while True:\n    os.fork()", R.COMPILER_FAILED),
    _imported("starts_threads_without_end",
              "while True:\n    threading.Thread(target=time.sleep, args=(99,), daemon=True).start()", R.COMPILER_FAILED),
    _imported("leaves_a_process", _STAYS),
    _imported("leaves_the_process", "os._exit(0)", R.COMPILER_FAILED),
    _imported("kills_its_group", "os.kill(0, 9)", R.COMPILER_FAILED),
    _imported("deep_brackets", f"deep = {'(' * 100_000}{')' * 100_000}", R.COMPILER_FAILED),
    _imported("large_message", "raise ValueError('x' * (100 << 20))", R.COMPILER_FAILED),
    _called("nests_folders_when_called", _NESTS, R.SANDBOX_VIOLATION, R.CRASHED, R.NONE),
    _called("hangs", "while True:\n    pass", R.CALL_TIMEOUT),
    _called("raises_a_large_message", "raise ValueError('x' * (100 << 20))", R.CRASHED),
    _called("recurses", "return self.forward(x, residual)", R.CRASHED),
    _called("closes_its_connection", "os.closerange(0, 4096)", R.EXITED, R.CRASHED, R.PROTOCOL_VIOLATED),
    _called("talks_without_end", "while True:\n    print('PASS' * 10_000, file=sys.stderr)",
            R.SANDBOX_VIOLATION, R.CRASHED),
)  # fmt: skip
"""What is stopped while it is imported, or in a call."""
