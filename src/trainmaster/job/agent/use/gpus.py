"""The GPUs of this machine, of whichever make."""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, Mapping, Union

    from trainmaster.job.agent.use.amd import AmdGpus
    from trainmaster.job.agent.use.nvidia import NvidiaGpus

    Source = Union[AmdGpus, NvidiaGpus]

# Variables that say which GPUs a process may use.
_VISIBLE = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")


class GpuUse(object):
    """Measures the GPUs that `chosen` names by index or id (None: all), as far as drivers for them are there."""

    def __init__(self, chosen: "set[str] | None") -> None:
        self._sources: "list[Source | None]" = []
        if chosen is not None and not chosen:
            return
        if os.path.exists("/proc/driver/nvidia/version") or os.path.exists("/dev/nvidiactl"):
            from trainmaster.job.agent.use.nvidia import NvidiaGpus

            self._sources.append(NvidiaGpus.open(chosen))
        if os.path.exists("/sys/module/amdgpu"):
            from trainmaster.job.agent.use.amd import AmdGpus

            self._sources.append(AmdGpus(chosen))

    def measure(self) -> "dict[str, float]":
        """For each GPU as much of this as its driver says: use, memory, power and temperature."""
        return {name: value for source in self._sources if source for name, value in source.measure().items()}


def find_chosen_gpus(variables: "Iterable[Mapping[str, str]]") -> "set[str] | None":
    """The GPUs that processes with these variables may use; None if one of them may use all.

    >>> sorted(find_chosen_gpus([{"CUDA_VISIBLE_DEVICES": "0,1"}, {"CUDA_VISIBLE_DEVICES": "2"}]))
    ['0', '1', '2']
    >>> find_chosen_gpus([{"CUDA_VISIBLE_DEVICES": "0"}, {}])
    """
    found: "set[str]" = set()
    for each in variables:
        given = [each[name] for name in _VISIBLE if name in each]
        if not given:
            return None
        found.update(part.strip() for part in given[0].split(",") if part.strip())
    return found
