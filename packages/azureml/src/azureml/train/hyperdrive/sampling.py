"""`azureml.train.hyperdrive.sampling` of v1."""

from azureml._lazy import names

__getattr__, __dir__, __all__ = names(
    __name__,
    {
        "trainmaster.sdk.sweeps": (
            "BayesianParameterSampling GridParameterSampling HyperParameterSampling RandomParameterSampling"
        ),
    },
)
