"""What all programs of this machine use together, read from /proc and /sys."""

import os

from trainmaster.job.agent.process import read
from trainmaster.job.agent.use.units import GB, MB

_SECTOR = 512
# Built on other disks, or not disks at all: counting them would count the same bytes twice.
_NOT_DISKS = ("loop", "ram", "zram", "dm-", "md", "sr", "fd", "nbd")


class NodeUse(object):
    """Measures this machine. `folder` is on the disk whose free space is measured."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._disks = {name.encode() for name in _names("/sys/block") if not name.startswith(_NOT_DISKS)}
        self._devices = _list_network_devices()
        self._before = self._counters()
        self._measured_at: "float | None" = None

    def measure(self, now: float) -> "dict[str, float]":
        """What is in use now and, from the second call on, how much on average since the last one."""
        found: "dict[str, float]" = {}
        counters, before, measured_at = self._counters(), self._before, self._measured_at
        self._before, self._measured_at = counters, now
        total, available = parse_memory(read("/proc/meminfo") or b"")
        if total:
            found["memory_gb"] = round((total - available) / GB, 4)
            found["memory_percent"] = round(100.0 * (total - available) / total, 1)
        found.update(self._measure_disk_space())
        if measured_at is not None:
            busy, idle = counters["busy"] - before["busy"], counters["idle"] - before["idle"]
            found["cpu_percent"] = round(100.0 * busy / max(busy + idle, 1), 1)
            for name in ("disk_read", "disk_write", "network_receive", "network_send"):
                rate = max(0, counters[name] - before[name]) / MB / max(now - measured_at, 1e-3)
                found[name + "_mb_per_s"] = round(rate, 3)
        return found

    def _counters(self) -> "dict[str, int]":
        busy, idle = parse_cpu_times(read("/proc/stat") or b"")
        disk_read, disk_write = parse_disks(read("/proc/diskstats") or b"", self._disks)
        received, sent = parse_network(read("/proc/net/dev") or b"", self._devices)
        return {
            "busy": busy,
            "idle": idle,
            "disk_read": disk_read,
            "disk_write": disk_write,
            "network_receive": received,
            "network_send": sent,
        }

    def _measure_disk_space(self) -> "dict[str, float]":
        try:
            facts = os.statvfs(self._folder)
        except OSError:
            return {}
        return {"disk_free_gb": round(facts.f_bavail * facts.f_frsize / GB, 3)}


def parse_cpu_times(text: bytes) -> "tuple[int, int]":
    """Busy and idle time of all CPUs, in /proc/stat.

    >>> parse_cpu_times(b"cpu  10 0 20 60 10 0 0 0 0 0\\ncpu0 1\\n")
    (30, 70)
    """
    numbers = [int(word) for word in text.partition(b"\n")[0].split()[1:9]]
    if len(numbers) < 5:
        return 0, 0
    idle = numbers[3] + numbers[4]
    return sum(numbers) - idle, idle


def parse_memory(text: bytes) -> "tuple[int, int]":
    """The whole memory and what is available of it in bytes, from /proc/meminfo.

    >>> parse_memory(b"MemTotal:  100 kB\\nMemFree: 1 kB\\nMemAvailable:  40 kB\\n")
    (102400, 40960)
    """
    found = {b"MemTotal:": 0, b"MemAvailable:": 0}
    for line in text.split(b"\n", 4):
        words = line.split()
        if words and words[0] in found:
            found[words[0]] = int(words[1]) * 1024
    return found[b"MemTotal:"], found[b"MemAvailable:"]


def parse_disks(text: bytes, disks: "set[bytes]") -> "tuple[int, int]":
    """The bytes read from and written to these disks, from /proc/diskstats.

    >>> parse_disks(b" 8 0 sda 1 0 2 0 1 0 4 0\\n 8 1 sda1 1 0 2 0 1 0 4 0\\n", {b"sda"})
    (1024, 2048)
    """
    sums = [0, 0]
    for line in text.split(b"\n"):
        words = line.split()
        if len(words) > 9 and words[2] in disks:
            sums[0] += int(words[5]) * _SECTOR
            sums[1] += int(words[9]) * _SECTOR
    return sums[0], sums[1]


def parse_network(text: bytes, devices: "set[bytes] | None") -> "tuple[int, int]":
    """The bytes received and sent by these devices (None: by all but the loopback), from /proc/net/dev.

    >>> parse_network(b"head\\n  lo: 9 0 0 0 0 0 0 0 9\\neth0: 5 0 0 0 0 0 0 0 7 0\\n", None)
    (5, 7)
    """
    sums = [0, 0]
    for line in text.split(b"\n"):
        name, _, rest = line.partition(b":")
        words, name = rest.split(), name.strip()
        if len(words) > 8 and (name in devices if devices is not None else name != b"lo"):
            sums[0] += int(words[0])
            sums[1] += int(words[8])
    return sums[0], sums[1]


def _list_network_devices() -> "set[bytes] | None":
    """The devices that are hardware; None where there is none to be seen, as in a container."""
    folder = "/sys/class/net"
    return {name.encode() for name in _names(folder) if os.path.exists(os.path.join(folder, name, "device"))} or None


def _names(folder: str) -> "list[str]":
    try:
        return os.listdir(folder)
    except OSError:
        return []
