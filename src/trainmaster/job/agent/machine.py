"""What kind of machine this is, in a few words. Python 3.6, standard library: this runs on the node."""

import os

_NVIDIA = "/proc/driver/nvidia/gpus"


def describe() -> "dict[str, str]":
    """System, processor, memory and GPUs of this machine; what cannot be read is left out."""
    found = {
        "system": "{} {} {}".format(os.uname().sysname, os.uname().release, os.uname().machine),
        "processor": _read_field("/proc/cpuinfo", "model name"),
        "cpus": str(os.cpu_count() or ""),
        "memory": _memory(),
        "gpus": ", ".join(_list_gpus()),
    }
    return {name: text for name, text in found.items() if text}


def _memory() -> str:
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError):
        return ""
    return "{:.0f} GB".format(size / 1024.0**3)


def _list_gpus() -> "list[str]":
    try:
        names = sorted(os.listdir(_NVIDIA))
    except OSError:
        return []
    found = [_read_field("{}/{}/information".format(_NVIDIA, name), "Model") for name in names]
    return [name for name in found if name]


def _read_field(path: str, name: str) -> str:
    """The first value of a field in a file of lines such as `name : value`; the file may be long."""
    try:
        with open(path, "rb") as file:
            lines = file.read(4096).decode("utf-8", "replace").splitlines()
    except OSError:
        return ""
    for line in lines:
        key, colon, value = line.partition(":")
        if colon and key.strip() == name:
            return value.strip()
    return ""
