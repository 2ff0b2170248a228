"""ResourceConfiguration: what a service of a model needs."""

from trainmaster.job.errors import WebserviceException

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping


class ResourceConfiguration:
    """CPUs, memory and GPUs for a service of a model."""

    def __init__(
        self, cpu: "float | None" = None, memory_in_gb: "float | None" = None, gpu: "int | None" = None
    ) -> None:
        self.cpu = _check_positive("cpu", cpu)
        self.memory_in_gb = _check_positive("memory_in_gb", memory_in_gb)
        self.gpu = gpu
        if gpu is not None and (isinstance(gpu, bool) or not isinstance(gpu, int) or gpu < 0):
            raise WebserviceException("gpu has to be a whole number, not {!r}".format(gpu))

    def serialize(self) -> "dict[str, Any]":
        """As plain data, with v1's keys."""
        return {"cpu": self.cpu, "memoryInGB": self.memory_in_gb, "gpu": self.gpu}

    @staticmethod
    def deserialize(payload_obj: "Mapping[str, Any] | None") -> "ResourceConfiguration | None":
        """From what `serialize` returned; None for None."""
        if payload_obj is None:
            return None
        return ResourceConfiguration(payload_obj.get("cpu"), payload_obj.get("memoryInGB"), payload_obj.get("gpu"))

    def __repr__(self) -> str:
        return "ResourceConfiguration(cpu={}, memory_in_gb={}, gpu={})".format(self.cpu, self.memory_in_gb, self.gpu)


def to_plain(resources: "ResourceConfiguration | None") -> "dict[str, Any]":
    """A ResourceConfiguration as the registry keeps it; empty for None."""
    if resources is None:
        return {}
    if not isinstance(resources, ResourceConfiguration):
        raise WebserviceException(
            "resource_configuration has to be a ResourceConfiguration, not {}".format(type(resources).__name__)
        )
    return {"cpu": resources.cpu, "memory_in_gb": resources.memory_in_gb, "gpu": resources.gpu}


def from_plain(plain: "Mapping[str, Any]") -> "ResourceConfiguration | None":
    """From what `to_plain` returned."""
    return ResourceConfiguration(**plain) if plain else None


def _check_positive(name: str, value: "float | None") -> "float | None":
    if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0):
        raise WebserviceException("{} has to be a number above 0, not {!r}".format(name, value))
    return value
