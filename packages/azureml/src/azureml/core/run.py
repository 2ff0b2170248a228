"""`azureml.core.run` of v1; scripts ask for the two private classes to know whether they are in a job."""

from azureml._lazy import names
from trainmaster.job.script.offline import OfflineRun as _OfflineRun
from trainmaster.job.script.run import JobRun as _SubmittedRun

__getattr__, __dir__, __all__ = names(
    __name__,
    {
        "trainmaster": "Run",
        "trainmaster.sdk.run.run": "get_run",
    },
)
__all__ += ["_OfflineRun", "_SubmittedRun"]
