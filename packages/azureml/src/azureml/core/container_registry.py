"""Shows `azureml.core.container_registry` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.sdk.environment.docker_section import ContainerRegistry as ContainerRegistry
