"""`azureml.train.hyperdrive.parameter_expressions` of v1."""

from azureml._lazy import names

__getattr__, __dir__, __all__ = names(
    __name__,
    {
        "trainmaster.sdk.sweeps": (
            "choice lognormal loguniform normal qlognormal qloguniform qnormal quniform randint uniform"
        ),
    },
)
