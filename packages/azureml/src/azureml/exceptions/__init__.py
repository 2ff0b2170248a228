"""`azureml.exceptions` of v1."""

from azureml._lazy import names

__getattr__, __dir__, __all__ = names(
    __name__,
    {
        "trainmaster.job.errors": (
            "ActivityCanceledException ActivityFailedException AuthenticationException AzureMLException "
            "ComputeTargetException DatasetTimestampMissingError DiscoveryUrlNotFoundException "
            "ExperimentExecutionException ModelNotFoundException ModelPathNotFoundException "
            "ProjectSystemException RunConfigurationException RunEnvironmentException ServiceException "
            "SnapshotException TrainingException UserErrorException WebserviceException WorkspaceException"
        ),
    },
)
