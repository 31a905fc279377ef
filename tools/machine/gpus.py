"""This machine's GPUs as `Device` records, and the files that a process needs to use one.

The driver's own library is asked through ctypes, not NVML, because NVML ignores CUDA_VISIBLE_DEVICES.
"""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

from ridgeline.tools.errors import DeviceError
from ridgeline.tools.machine.system_files import text_of
from ridgeline.tools.records.problem import Device
from ridgeline.tools.records.vocabulary import DeviceKind
from ridgeline.tools.wording import counted, option

_SHARED_NODES = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools")
_DRIVER_REFUSALS = {  # of cuda.h
    100: "the driver shows no GPU: see nvidia-smi and what CUDA_VISIBLE_DEVICES hides",
    802: "the driver is not ready: start nvidia-fabricmanager, which GPUs behind NVSwitch wait for",
    803: "libcuda.so.1 is of another version than the kernel's driver: restart the machine, or install one version",
    804: "libcuda.so.1 is a compatibility package's, which this GPU does not take: remove cuda-compat from the path",
}
_ATTRIBUTES = {"multiprocessors": 16, "l2_bytes": 38, "major": 75, "minor": 76}  # CUdevice_attribute in cuda.h


def detect_gpu(index: int) -> Device:
    """Return the GPU of this index.

    Raises:
        DeviceError: there is no driver, or no such GPU.
    """
    driver = _driver()
    count = _gpu_count(driver)
    if index >= count:
        raise DeviceError(
            f"device cuda:{index}: this machine has {counted(count, 'GPU')}; use {option('device', 'cpu')} or a lower index"
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
    from ridgeline.tools.machine.gpu_state import installed_driver  # this module's importers need no NVML but here

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


def all_gpus() -> tuple[Device, ...]:
    """Return every GPU of this machine by index; none without a driver."""
    try:
        driver = _driver()
        count = _gpu_count(driver)
    except DeviceError:
        return ()
    return tuple(detect_gpu(index) for index in range(count))


def driver_library() -> Path:
    """Return the path of the CUDA driver's library.

    Raises:
        DeviceError: there is no driver.
    """
    _driver()
    mapped = (line.split(maxsplit=5) for line in Path("/proc/self/maps").read_text().splitlines())
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
        text = text_of(facts)
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
        raise DeviceError(
            f"device cuda: no NVIDIA driver (libcuda.so.1) on this machine; use {option('device', 'cpu')}"
        ) from missing
    _check(driver.cuInit(0), "starting the CUDA driver")
    return driver


def _gpu_count(driver: ctypes.CDLL) -> int:
    count = ctypes.c_int()
    _check(driver.cuDeviceGetCount(ctypes.byref(count)), "counting GPUs")
    return count.value


def _check(code: int, doing: str) -> None:
    if code != 0:
        why = _DRIVER_REFUSALS.get(code, f"{doing} failed with CUDA error {code}: see nvidia-smi")
        raise DeviceError(f"device cuda: {why}, or use {option('device', 'cpu')}")


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
