"""Shows `azureml.core.environment` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.environments.base_images import DEFAULT_CPU_IMAGE as DEFAULT_CPU_IMAGE
from trainmaster.environments.base_images import DEFAULT_GPU_IMAGE as DEFAULT_GPU_IMAGE
from trainmaster.sdk.environment.definition import Environment as Environment
from trainmaster.sdk.environment.docker_section import ContainerRegistry as ContainerRegistry
from trainmaster.sdk.environment.docker_section import DockerSection as DockerSection
from trainmaster.sdk.environment.python_section import PythonSection as PythonSection
from trainmaster.sdk.v1.conda_dependencies import CondaDependencies as CondaDependencies
from trainmaster.sdk.v1.spark_section import SparkSection as SparkSection
