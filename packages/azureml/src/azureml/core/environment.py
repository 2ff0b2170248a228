"""`azureml.core.environment` of v1."""

from azureml._lazy import names

__getattr__, __dir__, __all__ = names(
    __name__,
    {
        "trainmaster.environments.definition": "Environment",
        "trainmaster.environments.docker_section": "ContainerRegistry DockerSection",
        "trainmaster.environments.python_section": "PythonSection",
        "trainmaster.environments.spark_section": "SparkSection",
        "trainmaster.environments.of_v1": "CondaDependencies",
        "trainmaster.environments.base_images": "DEFAULT_CPU_IMAGE DEFAULT_GPU_IMAGE",
    },
)
