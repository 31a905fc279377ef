"""This machine's CPU and GPUs as `Device` records, and the cores that a measurement may use.

Reads /proc, /sys and, for a GPU, the CUDA driver's own library; needs neither torch nor any external program. The
driver is asked through ctypes, not NVML, because NVML ignores CUDA_VISIBLE_DEVICES.
"""

from __future__ import annotations

import ctypes
import hashlib
import logging
import os
import re
from pathlib import Path

from ridgeline.tools.errors import DeviceError
from ridgeline.tools.records.problem import Device
from ridgeline.tools.records.vocabulary import DeviceKind
from ridgeline.tools.wording import counted

logger = logging.getLogger(__name__)

UNLIMITED = 1 << 60
"""cgroup v1 writes 2**63 rounded to a page where version 2 writes "max"."""


X86_64 = ("x86_64", "amd64", "AMD64")


def detect_device(spec: str = "cpu") -> Device:
    """Return the device named "cpu", "cuda" or "cuda:1".

    Raises:
        DeviceError: there is no such device here.
    """
    match = re.fullmatch(r"(cpu|cuda)(?::(\d+))?", spec)
    if match is None or (match[1] == "cpu" and match[2] not in (None, "0")):
        raise DeviceError(f"device {spec!r}: unknown; {_advice(spec)}")
    return _cpu() if match[1] == "cpu" else _gpu(int(match[2] or 0))


def all_gpus() -> tuple[Device, ...]:
    """Return every GPU of this machine by index; none without a driver."""
    try:
        driver = _driver()
        count = _gpu_count(driver)
    except DeviceError:
        return ()
    return tuple(_gpu(index) for index in range(count))


def same_gpus(device: Device) -> tuple[Device, ...]:
    """Return the GPUs of this machine like `device`, that one first: equal in name, architecture, memory and cores."""
    if device.kind is not DeviceKind.CUDA:
        return (device,)
    alike = (device.name, device.arch, device.memory_bytes, device.cores)
    others = [g for g in all_gpus() if g.uuid != device.uuid and (g.name, g.arch, g.memory_bytes, g.cores) == alike]
    return (device, *others)


def _advice(spec: str) -> str:
    if re.search(r"\.(cpp|cu|cc|yaml|yml)$", spec):
        return f"that is a file: --device takes cpu, cuda or cuda:N, and {spec} stands without --device"
    return "use cpu, cuda or cuda:N; ridgeline doctor says what is here"


def measurement_cores() -> tuple[int, ...]:
    """Return the CPU cores that both sides of a measurement are pinned to: the affinity mask cut to the CPU quota."""
    allowed = sorted(os.sched_getaffinity(0))
    quota = _cpu_quota()
    count = len(allowed) if quota is None else max(1, min(len(allowed), int(quota)))
    return tuple(allowed[:count])


# -------------------------------------------------------------------------------------------------------------- CPU


def _cpu() -> Device:
    machine = os.uname().machine
    if machine not in X86_64:  # the compiler's flags, the ceilings probe and the sandbox's filter are written for it
        raise DeviceError(f"device cpu: this processor is {machine}; kernels are built and measured on x86-64 only")
    facts = _cpuinfo(Path("/proc/cpuinfo").read_text())
    name = facts.get("model name") or facts.get("Processor") or os.uname().machine
    flags = facts.get("flags") or facts.get("Features") or ""
    model = "-".join(facts[k] for k in ("cpu family", "model", "stepping") if k in facts)
    digest = hashlib.sha256(" ".join(sorted(flags.split())).encode()).hexdigest()[:12]
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    return Device(
        kind=DeviceKind.CPU,
        name=name,
        arch=f"{os.uname().machine}-{slug}-{model}-{digest}" if model else f"{os.uname().machine}-{slug}-{digest}",
        uuid="cpu",
        cores=len(measurement_cores()),
        memory_bytes=_memory_bytes(),
        cache_bytes=_last_level_cache_bytes(Path("/sys/devices/system/cpu")),
    )


def _cpuinfo(text: str) -> dict[str, str]:
    """Return the first processor's facts of /proc/cpuinfo."""
    first = text.split("\n\n", 1)[0]
    pairs = (line.split(":", 1) for line in first.splitlines() if ":" in line)
    return {key.strip(): value.strip() for key, value in pairs}


def _last_level_cache_bytes(root: Path) -> int:
    """Return the size of the highest-level data cache, summed over its distinct instances among our cores."""
    instances: dict[tuple[int, str], int] = {}
    for core in measurement_cores():
        for index in (root / f"cpu{core}" / "cache").glob("index*"):
            level, kind, size, shared = (_line(index / n) for n in ("level", "type", "size", "shared_cpu_list"))
            if level and size and kind != "Instruction":
                instances[int(level), shared or str(core)] = _parse_size(size)
    if not instances:
        return 32 << 20  # a container may hide /sys; 32 MiB only decides how many sets rotate
    top = max(level for level, _ in instances)
    return sum(size for (level, _), size in instances.items() if level == top)


def _parse_size(text: str) -> int:
    units = {"K": 10, "M": 20, "G": 30}
    return int(text[:-1]) << units[text[-1]] if text[-1] in units else int(text)


def _memory_bytes() -> int:
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limits = [_cgroup_limit(path) for path in _cgroup_files("memory", "memory.max", "memory.limit_in_bytes")]
    return min([total, *(limit for limit in limits if limit is not None)])


def _cgroup_limit(path: Path) -> int | None:
    text = _line(path)
    return int(text) if text.isdigit() and int(text) < UNLIMITED else None


def _cpu_quota() -> float | None:
    """Return how many cores' worth of time the control groups allow, or None."""
    quotas = []
    for path in _cgroup_files("cpu", "cpu.max", "cpu.cfs_quota_us"):
        quota, _, period = _line(path).partition(" ")
        period = period or _line(path.with_name("cpu.cfs_period_us"))
        if quota.isdigit() and period.isdigit():
            quotas.append(int(quota) / int(period))
    return min(quotas, default=None)


def _cgroup_files(controller: str, name_v2: str, name_v1: str) -> list[Path]:
    """Return this process's limit files from its group up to the root, for both versions of control groups."""
    found: list[Path] = []
    root = Path("/sys/fs/cgroup")
    for line in _text(Path("/proc/self/cgroup")).splitlines():
        number, controllers, group = line.split(":", 2)
        is_v2 = number == "0" and not controllers
        if is_v2 or controller in controllers.split(","):
            base = root if is_v2 else root / controllers
            folder = base / group.lstrip("/")
            name = name_v2 if is_v2 else name_v1
            levels = [folder, *(p for p in folder.parents if p.is_relative_to(base))]
            found += [p / name for p in levels if (p / name).exists()]
    return found


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _line(path: Path) -> str:
    return _text(path).strip()


# -------------------------------------------------------------------------------------------------------------- GPU

_SHARED_NODES = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools")
_DRIVER_REFUSALS = {  # of cuda.h
    100: "the driver shows no GPU: see nvidia-smi and what CUDA_VISIBLE_DEVICES hides",
    802: "the driver is not ready: start nvidia-fabricmanager, which GPUs behind NVSwitch wait for",
    803: "libcuda.so.1 is of another version than the kernel's driver: restart the machine, or install one version",
    804: "libcuda.so.1 is a compatibility package's, which this GPU does not take: remove cuda-compat from the path",
}
_ATTRIBUTES = {"multiprocessors": 16, "l2_bytes": 38, "major": 75, "minor": 76}  # CUdevice_attribute in cuda.h


def _gpu(index: int) -> Device:
    driver = _driver()
    count = _gpu_count(driver)
    if index >= count:
        raise DeviceError(
            f"device cuda:{index}: this machine has {counted(count, 'GPU')}; use --device cpu or a lower index"
        )
    handle = ctypes.c_int()
    _check(driver.cuDeviceGet(ctypes.byref(handle), index), f"opening GPU {index}")
    name = ctypes.create_string_buffer(256)
    _check(driver.cuDeviceGetName(name, 256, handle), "reading the GPU's name")
    memory = ctypes.c_size_t()
    _check(driver.cuDeviceTotalMem_v2(ctypes.byref(memory), handle), "reading the GPU's memory")
    facts = {key: _attribute(driver, number, handle) for key, number in _ATTRIBUTES.items()}
    version = ctypes.c_int()
    _check(driver.cuDriverGetVersion(ctypes.byref(version)), "reading the driver's version")
    from ridgeline.tools.machine.gpu_state import installed_driver  # runners import this module, and need no NVML

    return Device(
        kind=DeviceKind.CUDA,
        index=index,
        name=name.value.decode(),
        arch=_cuda_arch(facts["major"], facts["minor"]),
        uuid=_gpu_uuid(driver, handle),
        cores=facts["multiprocessors"],
        memory_bytes=memory.value,
        cache_bytes=facts["l2_bytes"],
        driver=driver_text(installed_driver(), version.value),
    )


def driver_library() -> Path:
    """Return the path of the CUDA driver's library.

    Raises:
        DeviceError: there is no driver.
    """
    _driver()
    mapped = (line.split(maxsplit=5) for line in _text(Path("/proc/self/maps")).splitlines())
    found = next((words[5] for words in mapped if len(words) > 5 and "/libcuda.so" in words[5]), None)
    if found is None:
        raise DeviceError("device cuda: the driver's library (libcuda.so.1) is loaded from no file")
    return Path(found.strip())


def device_nodes(device: Device) -> tuple[str, ...]:
    """Return the files below /dev that a process needs to use this GPU, and no other GPU's.

    Raises:
        DeviceError: the driver does not say which node is this GPU's.
    """
    for facts in sorted(Path("/proc/driver/nvidia/gpus").glob("*/information")):
        text = _text(facts)
        minor = re.search(r"Device Minor:\s*(\d+)", text)
        if device.uuid in text and minor:
            nodes = (f"/dev/nvidia{minor[1]}", *_SHARED_NODES)
            return tuple(node for node in nodes if Path(node).exists())
    if Path("/dev/nvidia0").exists() and not Path("/dev/nvidia1").exists():
        return tuple(node for node in ("/dev/nvidia0", *_SHARED_NODES) if Path(node).exists())
    raise DeviceError(f"{device.name}: /proc/driver/nvidia does not say which of /dev/nvidia* is {device.uuid}")


def driver_text(version: str, cuda: int) -> str:
    """Return a `Device`'s driver text, "580.159.04, CUDA 13.0"; `cuda` is cuDriverGetVersion's number."""
    newest = f"CUDA {cuda // 1000}.{cuda % 1000 // 10}"
    return f"{version}, {newest}" if version else newest


def _driver() -> ctypes.CDLL:
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as missing:
        raise DeviceError("device cuda: no NVIDIA driver (libcuda.so.1) on this machine; use --device cpu") from missing
    _check(driver.cuInit(0), "starting the CUDA driver")
    return driver


def _gpu_count(driver: ctypes.CDLL) -> int:
    count = ctypes.c_int()
    _check(driver.cuDeviceGetCount(ctypes.byref(count)), "counting GPUs")
    return count.value


def _check(code: int, doing: str) -> None:
    if code != 0:
        why = _DRIVER_REFUSALS.get(code, f"{doing} failed with CUDA error {code}: see nvidia-smi")
        raise DeviceError(f"device cuda: {why}, or use --device cpu")


def _attribute(driver: ctypes.CDLL, number: int, handle: ctypes.c_int) -> int:
    value = ctypes.c_int()
    _check(driver.cuDeviceGetAttribute(ctypes.byref(value), number, handle), "reading a GPU attribute")
    return value.value


def _gpu_uuid(driver: ctypes.CDLL, handle: ctypes.c_int) -> str:
    raw = (ctypes.c_ubyte * 16)()
    _check(driver.cuDeviceGetUuid(raw, handle), "reading the GPU's UUID")
    text = bytes(raw).hex()
    return "GPU-" + "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def _cuda_arch(major: int, minor: int) -> str:
    """Return the architecture to compile for; from 9.0 on the "a" variant, which alone has wgmma and its successors."""
    return f"sm_{major}{minor}" + ("a" if major >= 9 else "")
