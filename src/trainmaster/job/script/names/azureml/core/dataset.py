"""`azureml.core.dataset` inside a job."""

from trainmaster.job.script.datasets import Dataset

__all__ = ["Dataset"]
