"""`azureml.core.model` inside a job or a service: Model; the rest stands for what the full Trainmaster has."""

import sys

from trainmaster.job.script.absent import StandInModule
from trainmaster.job.script.models import Model

_model = Model
__all__ = ["Model"]

sys.modules[__name__].__class__ = StandInModule
