"""`azureml.core.run` inside a job."""

from trainmaster.job.script.offline import OfflineRun as _OfflineRun
from trainmaster.job.script.run import JobRun as _SubmittedRun
from trainmaster.job.script.run import Run

__all__ = ["Run", "_OfflineRun", "_SubmittedRun", "get_run"]


def get_run(experiment, run_id, **kwargs):
    """The run with this id (full Trainmaster)."""
    return Run(experiment, run_id)
