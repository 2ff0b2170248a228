"""`azureml.train.estimator` of v1."""

from azureml._lazy import names

__getattr__, __dir__, __all__ = names(
    __name__,
    {
        "trainmaster.estimators": "Gloo Mpi Nccl ParameterServer",
        "trainmaster.estimators.of_v1": "Estimator",
    },
)
