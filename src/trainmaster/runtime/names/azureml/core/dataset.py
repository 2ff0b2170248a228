"""`azureml.core.dataset` inside a job."""

from trainmaster.runtime.datasets import Dataset

__all__ = ["Dataset"]
