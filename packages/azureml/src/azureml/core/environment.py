"""`azureml.core.environment` of v1."""

from azureml._lazy import names

__getattr__, __dir__, __all__ = names(
    __name__,
    {
        "trainmaster.sdk.environment.definition": "Environment",
        "trainmaster.sdk.environment.docker_section": "ContainerRegistry DockerSection",
        "trainmaster.sdk.environment.python_section": "PythonSection",
        "trainmaster.sdk.environment.spark_section": "SparkSection",
        "trainmaster.sdk.v1.conda_dependencies": "CondaDependencies",
        "trainmaster.environments.base_images": "DEFAULT_CPU_IMAGE DEFAULT_GPU_IMAGE",
    },
)
