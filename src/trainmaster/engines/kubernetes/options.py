"""What the pods of a run request and have: the settings of the target, with those of the run over them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from trainmaster.engines.kubernetes.docker_arguments import DockerArguments, read_arguments
from trainmaster.job.errors import ComputeTargetException
from trainmaster.shared.job_spec import ContainerSpec, JobSpec
from trainmaster.shared.kubernetes_names import is_image
from trainmaster.shared.kubernetes_settings import KubernetesSettings, check_settings, read_settings
from trainmaster.shared.quantities import cpu_millis, memory_bytes, show_cpus, show_memory
from trainmaster.shared.records import TargetRecord

_SHM_SIZE = 2 * 2**30
"""As in v1. Kubernetes itself gives a container 64 MB, too little for the data loaders of torch."""


@dataclass(frozen=True)
class PodOptions:
    """The settings of a target, and what of them is different for one run."""

    settings: KubernetesSettings
    image: str
    requests: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, str] = field(default_factory=dict)
    gpus: int = 0
    shm_size: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables that the run names for its container."""
    capabilities: tuple[str, ...] = ()
    is_privileged: bool = False
    has_host_ipc: bool = False

    @property
    def python(self) -> str:
        """The Python of the image for our programs."""
        return self.settings.python

    @property
    def storage_claim(self) -> str:
        """The claim that both sides see; empty if files are sent to the pods."""
        return self.settings.storage.claim if self.settings.storage is not None else ""

    @property
    def storage_path(self) -> str:
        """Where both sides see the storage; empty without one."""
        return self.settings.storage.path if self.settings.storage is not None else ""

    @property
    def cache_claim(self) -> str:
        """The claim with contents that pods were sent; empty without one."""
        return self.settings.cache.name if self.settings.cache.kind == "claim" else ""

    @property
    def cache_path(self) -> str:
        """The folder of the machines with contents that pods were sent; empty without one."""
        return self.settings.cache.name if self.settings.cache.kind == "node" else ""

    @classmethod
    def read(cls, target: TargetRecord, spec: JobSpec | None = None) -> PodOptions:
        """The options of a run on a target; without a run, those of any that names no image."""
        settings = read_settings(target.options)
        container = spec.environment.container if spec is not None else None
        arguments = read_arguments(container.arguments if container is not None else ())
        settings = _with_arguments(settings, arguments)
        requests, limits = _resources(settings, target.gpus_per_node)
        return cls(
            settings=settings,
            image=_image(target.name, settings, container),
            requests=requests,
            limits=limits,
            gpus=target.gpus_per_node,
            shm_size=show_memory(_shm_size(settings, container, arguments)),
            env=arguments.env,
            capabilities=arguments.capabilities,
            is_privileged=arguments.is_privileged,
            has_host_ipc=arguments.has_host_ipc,
        )


def as_in_pod(target: TargetRecord, spec: JobSpec) -> JobSpec:
    """The job as it runs in a pod: with the Python of its image, and the variables that it names for docker."""
    environment = spec.environment
    if environment.container is None:
        return spec
    variables = {**spec.environment_variables, **read_arguments(environment.container.arguments).env}
    if environment.is_of_image and not environment.interpreter:
        environment = replace(environment, interpreter=read_settings(target.options).python)
    return replace(spec, environment=environment, environment_variables=variables)


def _image(target: str, settings: KubernetesSettings, container: ContainerSpec | None) -> str:
    image = container.image if container is not None else settings.image
    if not image:
        raise ComputeTargetException(
            f"neither the run nor target '{target}' names an image",
            hint="Name any image with Python 3.6 or newer: KubernetesCompute.configuration(image='python:3.11-slim'), "
            "or custom_docker_image='...' for the run.",
        )
    if not is_image(image):
        raise ComputeTargetException(f"{image!r} cannot be the name of an image")
    return image


def _with_arguments(settings: KubernetesSettings, given: DockerArguments) -> KubernetesSettings:
    """The settings with those options for docker that replace some of them."""
    user, _, group = given.user.partition(":")
    if not (user or "0").isdecimal() or not (group or "0").isdecimal():
        raise ComputeTargetException(
            f"docker's option '--user {given.user}' has no counterpart on Kubernetes", hint="Give numbers: --user 1000."
        )
    changed = replace(
        settings,
        cpus=given.cpus or settings.cpus,
        memory=given.memory or settings.memory,
        run_as_user=int(user) if user else settings.run_as_user,
        run_as_group=int(group) if group else settings.run_as_group,
    )
    check_settings(changed)
    return changed


def _resources(settings: KubernetesSettings, gpus: int) -> tuple[dict[str, str], dict[str, str]]:
    """Requests and limits. Devices and memory are limited to what is requested; CPUs only if the target says so."""
    requests: dict[str, str] = {}
    limits: dict[str, str] = {}
    if settings.cpus:
        requests["cpu"] = show_cpus(cpu_millis(settings.cpus) or 0)
        limits.update({"cpu": requests["cpu"]} if settings.limit_cpus else {})
    if settings.memory:
        requests["memory"] = limits["memory"] = show_memory(memory_bytes(settings.memory) or 0)
    devices = {**settings.resources, **({settings.gpu_resource: str(gpus)} if gpus else {})}
    return {**requests, **devices}, {**limits, **devices}


def _shm_size(settings: KubernetesSettings, container: ContainerSpec | None, arguments: DockerArguments) -> int:
    """The larger one of target and run: the run's own is 2g unless it says more, whatever the target offers."""
    texts = [settings.shm_size, container.shm_size if container is not None else "", arguments.shm_size]
    sizes = []
    for text in filter(None, texts):
        size = memory_bytes(text)
        if not size:
            raise ComputeTargetException(f"shm_size {text!r} is no size", hint="Write 8g, for example.")
        sizes.append(size)
    return max(sizes, default=_SHM_SIZE)
