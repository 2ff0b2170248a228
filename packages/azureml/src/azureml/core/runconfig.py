"""Run configurations; as in v1, packages and registries can be had here too."""

from azureml._lazy import names

__getattr__, __dir__, __all__ = names(
    __name__,
    {
        "trainmaster.estimators": (
            "DataReferenceConfiguration DockerConfiguration MpiConfiguration ParallelTaskConfiguration "
            "PyTorchConfiguration RunConfiguration TensorflowConfiguration"
        ),
        "trainmaster.environments.definition": "Environment EnvironmentDefinition",
        "trainmaster.environments.docker_section": "ContainerRegistry DockerSection",
        "trainmaster.environments.python_section": "PythonSection",
        "trainmaster.environments.spark_section": "SparkSection",
        "trainmaster.environments.of_v1": "CondaDependencies",
        "trainmaster.environments.base_images": ("DEFAULT_CPU_IMAGE DEFAULT_GPU_IMAGE MPI_CPU_IMAGE MPI_GPU_IMAGE"),
        "trainmaster.estimators.run_sections": (
            "AmlComputeConfiguration HdiConfiguration HistoryConfiguration SparkConfiguration"
        ),
    },
)
