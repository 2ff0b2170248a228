"""Shows `azureml.core.experiment` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.sdk.experiment import Experiment as Experiment
from trainmaster.sdk.experiment import ViewType as ViewType
