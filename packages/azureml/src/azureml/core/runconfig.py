"""Run configurations; as in v1, packages and registries can be had here too."""

from azureml._lazy import names

__getattr__, __dir__, __all__ = names(
    __name__,
    {
        "trainmaster.sdk.estimators": (
            "DataReferenceConfiguration DockerConfiguration MpiConfiguration ParallelTaskConfiguration "
            "PyTorchConfiguration RunConfiguration TensorflowConfiguration"
        ),
        "trainmaster.sdk.environment.definition": "Environment EnvironmentDefinition",
        "trainmaster.sdk.environment.docker_section": "ContainerRegistry DockerSection",
        "trainmaster.sdk.environment.python_section": "PythonSection",
        "trainmaster.sdk.environment.spark_section": "SparkSection",
        "trainmaster.sdk.v1.conda_dependencies": "CondaDependencies",
        "trainmaster.environments.base_images": ("DEFAULT_CPU_IMAGE DEFAULT_GPU_IMAGE MPI_CPU_IMAGE MPI_GPU_IMAGE"),
        "trainmaster.sdk.estimators.run_sections": (
            "AmlComputeConfiguration HdiConfiguration HistoryConfiguration SparkConfiguration"
        ),
    },
)
