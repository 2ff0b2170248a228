"""`azureml.train.hyperdrive` of v1."""

from azureml._lazy import names

__getattr__, __dir__, __all__ = names(
    __name__,
    {
        "trainmaster.sdk.sweeps": (
            "BanditPolicy BayesianParameterSampling EarlyTerminationPolicy GridParameterSampling "
            "HyperDriveConfig HyperDriveRun HyperDriveRunConfig HyperParameterSampling MedianStoppingPolicy "
            "NoTerminationPolicy PrimaryMetricGoal RandomParameterSampling TruncationSelectionPolicy choice "
            "lognormal loguniform normal qlognormal qloguniform qnormal quniform randint uniform"
        ),
    },
)
