"""Shows `azureml.data.dataset_type_definitions` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.job.script.dataset_readers import PromoteHeadersBehavior as PromoteHeadersBehavior
