"""NVIDIA's GPUs, through the library that comes with their driver (NVML)."""

import ctypes

from trainmaster.job.agent.use.gpu_values import name_values

_LIBRARY = "libnvidia-ml.so.1"
_LONGEST_ID = 96
_TEMPERATURE_OF_GPU = 0


class _Utilization(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class _Memory(ctypes.Structure):
    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


class NvidiaGpus(object):
    """The GPUs that `chosen` names by index or id (None: all)."""

    def __init__(self, library: ctypes.CDLL, chosen: "set[str] | None") -> None:
        self._library = library
        self._handles = {}
        count = ctypes.c_uint()
        if not self._ask("nvmlDeviceGetCount_v2", ctypes.byref(count)):
            return
        for index in range(count.value):
            handle = ctypes.c_void_p()
            if self._ask("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(handle)):
                if chosen is None or self._is_chosen(index, handle, chosen):
                    self._handles[index] = handle

    @classmethod
    def open(cls, chosen: "set[str] | None", library: str = _LIBRARY) -> "NvidiaGpus | None":
        """None where the library is missing or does not work."""
        try:
            loaded = ctypes.CDLL(library)
            return cls(loaded, chosen) if loaded.nvmlInit_v2() == 0 else None
        except (OSError, AttributeError):
            return None

    def measure(self) -> "dict[str, float]":
        """The metrics of all these GPUs."""
        found: "dict[str, float]" = {}
        for index, handle in self._handles.items():
            use, memory, milliwatts, celsius = _Utilization(), _Memory(), ctypes.c_uint(), ctypes.c_uint()
            has_use = self._ask("nvmlDeviceGetUtilizationRates", handle, ctypes.byref(use))
            has_memory = self._ask("nvmlDeviceGetMemoryInfo", handle, ctypes.byref(memory))
            has_power = self._ask("nvmlDeviceGetPowerUsage", handle, ctypes.byref(milliwatts))
            temperature_of = ctypes.c_uint(_TEMPERATURE_OF_GPU)
            has_heat = self._ask("nvmlDeviceGetTemperature", handle, temperature_of, ctypes.byref(celsius))
            found.update(
                name_values(
                    index,
                    float(use.gpu) if has_use else None,
                    float(memory.used) if has_memory else None,
                    float(memory.total) if has_memory else None,
                    milliwatts.value / 1000.0 if has_power else None,
                    float(celsius.value) if has_heat else None,
                )
            )
        return found

    def _is_chosen(self, index: int, handle: ctypes.c_void_p, chosen: "set[str]") -> bool:
        text = ctypes.create_string_buffer(_LONGEST_ID)
        if str(index) in chosen:
            return True
        is_known = self._ask("nvmlDeviceGetUUID", handle, text, ctypes.c_uint(_LONGEST_ID))
        identity = text.value.decode("ascii", "replace")
        # CUDA accepts the first characters of an id, too.
        return is_known and any(identity.startswith(each) for each in chosen if each.startswith("GPU-"))

    def _ask(self, name: str, *arguments: object) -> bool:
        function = getattr(self._library, name, None)
        return function is not None and function(*arguments) == 0
