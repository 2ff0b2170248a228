"""AMD's GPUs, as their driver (amdgpu) describes them in /sys: no library is needed."""

import os

from trainmaster.job.agent.process import read
from trainmaster.job.agent.use.gpu_values import name_values

_AMD = b"0x1002"


class AmdGpus(object):
    """The GPUs that `chosen` names by index (None: all), in the order of their names below `folder`."""

    def __init__(self, chosen: "set[str] | None", folder: str = "/sys/class/drm") -> None:
        numbers = sorted(int(name[4:]) for name in _names(folder) if name.startswith("card") and name[4:].isdigit())
        devices = [os.path.join(folder, "card{}".format(number), "device") for number in numbers]
        devices = [path for path in devices if (read(os.path.join(path, "vendor")) or b"").strip() == _AMD]
        is_by_index = chosen is not None and all(each.isdigit() for each in chosen)
        self._devices = {
            index: path
            for index, path in enumerate(devices)
            if chosen is None or not is_by_index or str(index) in chosen
        }

    def measure(self) -> "dict[str, float]":
        """The metrics of all these GPUs."""
        found: "dict[str, float]" = {}
        for index, path in self._devices.items():
            sensors = os.path.join(path, "hwmon")
            sensor = os.path.join(sensors, next(iter(_names(sensors)), ""))
            microwatts = _number(os.path.join(sensor, "power1_average"))
            if microwatts is None:
                microwatts = _number(os.path.join(sensor, "power1_input"))
            heat = _number(os.path.join(sensor, "temp1_input"))
            found.update(
                name_values(
                    index,
                    _number(os.path.join(path, "gpu_busy_percent")),
                    _number(os.path.join(path, "mem_info_vram_used")),
                    _number(os.path.join(path, "mem_info_vram_total")),
                    None if microwatts is None else microwatts / 1e6,
                    None if heat is None else heat / 1000.0,
                )
            )
        return found


def _number(path: str) -> "float | None":
    text = (read(path) or b"").strip()
    return float(text) if text.isdigit() else None


def _names(folder: str) -> "list[str]":
    try:
        return os.listdir(folder)
    except OSError:
        return []
