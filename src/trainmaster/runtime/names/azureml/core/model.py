"""`azureml.core.model` inside a job or a service: Model; the rest stands for what the full Trainmaster has."""

import sys

from trainmaster.runtime.absent import StandInModule
from trainmaster.runtime.models import Model

_model = Model
__all__ = ["Model"]

sys.modules[__name__].__class__ = StandInModule
