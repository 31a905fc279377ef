"""Runs kernels inside the sandbox with nothing but the standard library: `python3 confined_host.py FOLDER`.

FOLDER/job.json lists arguments, and the kernels by name with the library of each, whose symbols begin with the name;
inputs are raw files, outputs are written as raw files.
"""

import ctypes
import json
import os
import sys


def main(folder):
    os.chdir(folder)
    with open("job.json") as file:
        job = json.load(file)
    inputs = {}
    for name in job["inputs"]:
        with open(name, "rb") as file:
            inputs[name] = aligned(file.read())
    scalars = (ctypes.c_double * max(len(job["scalars"]), 1))(*job["scalars"])
    for kernel, library in job["kernels"].items():
        outputs = [aligned(b"\xff" * size) for size in job["outputs"]]
        tensors = [inputs[n] for n in job["inputs"]] + outputs
        pointers = (ctypes.c_void_p * len(tensors))(*[address for _, address, _ in tensors])
        loaded = ctypes.CDLL(f"./{library}")
        _kept, workspace, _ = aligned(b"\xff" * workspace_bytes(loaded, kernel))
        getattr(loaded, f"{kernel}_ridgeline_call")(pointers, scalars, ctypes.c_void_p(workspace), None)
        for i, (_, address, size) in enumerate(outputs):
            with open(f"{kernel}.out{i}", "wb") as file:
                file.write(ctypes.string_at(address, size))


def workspace_bytes(library, kernel):
    name = f"{kernel}_workspace_bytes"
    if not hasattr(library, name):
        return 0
    entry = getattr(library, name)
    entry.restype = ctypes.c_size_t
    return entry()


def aligned(data):
    buffer = ctypes.create_string_buffer(len(data) + 64)
    address = (ctypes.addressof(buffer) + 63) // 64 * 64
    ctypes.memmove(address, data, len(data))
    return buffer, address, len(data)


if __name__ == "__main__":
    main(sys.argv[1])
