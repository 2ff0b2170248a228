"""Shows `azureml.core.runconfig` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.environments.base_images import DEFAULT_CPU_IMAGE as DEFAULT_CPU_IMAGE
from trainmaster.environments.base_images import DEFAULT_GPU_IMAGE as DEFAULT_GPU_IMAGE
from trainmaster.environments.base_images import MPI_CPU_IMAGE as MPI_CPU_IMAGE
from trainmaster.environments.base_images import MPI_GPU_IMAGE as MPI_GPU_IMAGE
from trainmaster.sdk.datastores.configuration import DataReferenceConfiguration as DataReferenceConfiguration
from trainmaster.sdk.environment.definition import Environment as Environment
from trainmaster.sdk.environment.definition import EnvironmentDefinition as EnvironmentDefinition
from trainmaster.sdk.environment.docker_section import ContainerRegistry as ContainerRegistry
from trainmaster.sdk.environment.docker_section import DockerSection as DockerSection
from trainmaster.sdk.environment.python_section import PythonSection as PythonSection
from trainmaster.sdk.estimators.distributed_job import MpiConfiguration as MpiConfiguration
from trainmaster.sdk.estimators.distributed_job import ParallelTaskConfiguration as ParallelTaskConfiguration
from trainmaster.sdk.estimators.distributed_job import PyTorchConfiguration as PyTorchConfiguration
from trainmaster.sdk.estimators.distributed_job import TensorflowConfiguration as TensorflowConfiguration
from trainmaster.sdk.estimators.docker import DockerConfiguration as DockerConfiguration
from trainmaster.sdk.estimators.run_configuration import RunConfiguration as RunConfiguration
from trainmaster.sdk.v1.conda_dependencies import CondaDependencies as CondaDependencies
from trainmaster.sdk.v1.run_sections import AmlComputeConfiguration as AmlComputeConfiguration
from trainmaster.sdk.v1.run_sections import HdiConfiguration as HdiConfiguration
from trainmaster.sdk.v1.run_sections import HistoryConfiguration as HistoryConfiguration
from trainmaster.sdk.v1.run_sections import SparkConfiguration as SparkConfiguration
from trainmaster.sdk.v1.spark_section import SparkSection as SparkSection
