"""Measuring: ranks by their processes, GPUs by their drivers."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from trainmaster.job.agent import memory
from trainmaster.job.agent.use.amd import AmdGpus
from trainmaster.job.agent.use.interval import BUDGET, next_interval
from trainmaster.job.agent.use.node_use import NodeUse
from trainmaster.job.agent.use.nvidia import NvidiaGpus
from trainmaster.job.agent.use.rank_use import RankUse

# A rank that has 64 MB, as does its child; it says when both are there, and ends with its input.
RANK = """
import os, sys
data = os.urandom(1 << 26)
reading, writing = os.pipe()
if os.fork() == 0:
    data = os.urandom(1 << 26)
    os.write(writing, b"x")
    sys.stdin.read()
    os._exit(0)
os.read(reading, 1)
print("ready", flush=True)
sys.stdin.read()
os.wait()
"""


@pytest.fixture
def rank() -> Iterator[subprocess.Popen[bytes]]:
    variables = {**os.environ, "TRAINMASTER_AGENT": "test/0", "TRAINMASTER_RANK": "5"}
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", RANK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=variables
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    yield process
    process.communicate()


@pytest.mark.parametrize("marker", [None, b"TRAINMASTER_AGENT=test/0"], ids=["by descent", "by variables"])
def test_a_rank_is_measured_with_its_children(rank: subprocess.Popen[bytes], marker: bytes | None) -> None:
    use = RankUse({} if marker else {5: rank.pid}, os.getpid(), marker)
    now = time.monotonic()
    for moment in (now, now + 1):
        found = use.measure(moment, since_start=1.0)
        assert found["processes"] == {5: 2}
        assert 0.125 < found["memory_gb"][5] < 1.0
    assert set(found) == {"cpu_percent", "memory_gb", "processes", "disk_read_mb_per_s", "disk_write_mb_per_s"}


def test_processor_time_is_that_since_the_last_measurement(rank: subprocess.Popen[bytes]) -> None:
    use = RankUse({0: rank.pid}, os.getpid())
    now = time.monotonic()
    assert use.measure(now, since_start=0.01)["cpu_percent"][0] > 0
    assert use.measure(now + 1000, since_start=0.01)["cpu_percent"][0] < 1


def test_a_node_has_rates_from_the_second_measurement_on(tmp_path: Path) -> None:
    use = NodeUse(str(tmp_path))
    first, second = use.measure(0.0), use.measure(2.0)
    assert {"memory_gb", "memory_percent", "disk_free_gb"} == set(first)
    assert 0 <= second["cpu_percent"] <= 100
    assert {"disk_read_mb_per_s", "network_send_mb_per_s"} < set(second)


def test_a_week_has_few_measurements_and_costs_little() -> None:
    for ranks in (1, 64):
        elapsed, count = 0.0, 0
        while elapsed < 7 * 24 * 3600:
            elapsed += next_interval(elapsed, 0.001, ranks)
            count += 1
        assert count < 12_000 / (1 if ranks == 1 else 3)
    assert 0.05 / next_interval(10, 0.05, 1) == pytest.approx(BUDGET)


def test_limits_of_this_process() -> None:
    found = memory.find_limit(os.getpid())
    assert found is not None
    assert found[0] > 1 << 20


# There is no GPU in the machines that run these tests, so a library with the interface of NVIDIA's stands for one.
NVML = r"""
#include <string.h>
int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) { *device = (void *)(long)(index + 1); return 0; }
int nvmlDeviceGetUUID(void *device, char *text, unsigned size) {
    strncpy(text, device == (void *)1 ? "GPU-aaaa-1" : "GPU-bbbb-2", size); return 0; }
int nvmlDeviceGetUtilizationRates(void *device, unsigned *rates) { rates[0] = 37; rates[1] = 12; return 0; }
int nvmlDeviceGetMemoryInfo(void *device, unsigned long long *sizes) {
    sizes[0] = 4ull << 30; sizes[1] = 3ull << 30; sizes[2] = 1ull << 30; return 0; }
int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts) { *milliwatts = 75500; return 0; }
int nvmlDeviceGetTemperature(void *device, unsigned sensor, unsigned *celsius) {
    if (device == (void *)2) return 3; *celsius = 61; return 0; }
"""


@pytest.fixture(scope="module")
def nvml(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("nvml")
    (folder / "nvml.c").write_text(NVML)
    library = folder / "libnvidia-ml.so.1"
    subprocess.run(["cc", "-shared", "-fPIC", "-w", "-o", library, folder / "nvml.c"], check=True)
    return str(library)


def test_gpus_of_nvidia(nvml: str) -> None:
    gpus = NvidiaGpus.open(None, nvml)
    assert gpus is not None
    found = gpus.measure()
    first = {"percent": 37, "memory_gb": 1, "memory_percent": 25, "watts": 75.5, "celsius": 61}
    assert {name: found[f"gpu0_{name}"] for name in first} == first
    # What a GPU does not say is left out.
    assert {name for name in found if name.startswith("gpu1_")} == {
        f"gpu1_{name}" for name in first if name != "celsius"
    }


@pytest.mark.parametrize(
    ("chosen", "indexes"), [({"1"}, {"gpu1"}), ({"GPU-aaaa"}, {"gpu0"}), (set(), set()), ({"7"}, set())]
)
def test_only_gpus_that_the_run_may_use(nvml: str, chosen: set[str], indexes: set[str]) -> None:
    gpus = NvidiaGpus.open(chosen, nvml)
    assert gpus is not None
    assert {name.partition("_")[0] for name in gpus.measure()} == indexes


def test_without_a_driver_there_are_no_gpus(tmp_path: Path) -> None:
    assert NvidiaGpus.open(None, str(tmp_path / "missing.so")) is None
    assert AmdGpus(None, str(tmp_path / "missing")).measure() == {}


def test_gpus_of_amd(tmp_path: Path) -> None:
    for card, vendor in (("card0", "0x8086"), ("card1", "0x1002"), ("card10", "0x1002"), ("card1-DP-1", "0x1002")):
        device = tmp_path / card / "device"
        (device / "hwmon" / "hwmon3").mkdir(parents=True)
        (device / "vendor").write_text(f"{vendor}\n")
        (device / "gpu_busy_percent").write_text("55\n")
        (device / "mem_info_vram_used").write_text(f"{1 << 30}\n")
        (device / "mem_info_vram_total").write_text(f"{16 << 30}\n")
        (device / "hwmon" / "hwmon3" / "power1_average").write_text("120000000\n")
        (device / "hwmon" / "hwmon3" / "temp1_input").write_text("48000\n")
    found = AmdGpus(None, str(tmp_path)).measure()
    assert {name.partition("_")[0] for name in found} == {"gpu0", "gpu1"}
    assert (found["gpu1_percent"], found["gpu1_watts"], found["gpu1_celsius"]) == (55, 120, 48)
    assert set(AmdGpus({"1"}, str(tmp_path)).measure()) == {name for name in found if name.startswith("gpu1_")}


@pytest.mark.parametrize("path", ["/", "/kubepods/pod1/container"])
def test_in_a_container_the_mount_is_the_cgroup(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    """The container sees its cgroup at the mount, whatever the kernel says its path is."""
    files = {
        "/proc/mounts": b"cgroup /sys/fs/cgroup/memory cgroup ro,memory 0 0\n",
        "/proc/self/cgroup": f"4:memory:{path}\n".encode(),
        "/sys/fs/cgroup/memory/memory.limit_in_bytes": b"268435456\n",
        "/proc/meminfo": b"MemTotal: 25165824 kB\n",
    }
    monkeypatch.setattr(memory, "read", files.get)
    assert memory.find_limit(1) == (268435456, memory.CGROUP)
