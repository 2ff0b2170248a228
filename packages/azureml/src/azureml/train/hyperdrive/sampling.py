"""Shows `azureml.train.hyperdrive.sampling` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.tuning.sampling import BayesianParameterSampling as BayesianParameterSampling
from trainmaster.tuning.sampling import GridParameterSampling as GridParameterSampling
from trainmaster.tuning.sampling import HyperParameterSampling as HyperParameterSampling
from trainmaster.tuning.sampling import RandomParameterSampling as RandomParameterSampling
