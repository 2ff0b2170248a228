"""Shows `azureml.train.hyperdrive` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.sdk.sweeps.config import HyperDriveConfig as HyperDriveConfig
from trainmaster.sdk.sweeps.config import HyperDriveRunConfig as HyperDriveRunConfig
from trainmaster.sdk.sweeps.run import HyperDriveRun as HyperDriveRun
from trainmaster.tuning.goal import PrimaryMetricGoal as PrimaryMetricGoal
from trainmaster.tuning.parameter_expressions import choice as choice
from trainmaster.tuning.parameter_expressions import lognormal as lognormal
from trainmaster.tuning.parameter_expressions import loguniform as loguniform
from trainmaster.tuning.parameter_expressions import normal as normal
from trainmaster.tuning.parameter_expressions import qlognormal as qlognormal
from trainmaster.tuning.parameter_expressions import qloguniform as qloguniform
from trainmaster.tuning.parameter_expressions import qnormal as qnormal
from trainmaster.tuning.parameter_expressions import quniform as quniform
from trainmaster.tuning.parameter_expressions import randint as randint
from trainmaster.tuning.parameter_expressions import uniform as uniform
from trainmaster.tuning.policies import BanditPolicy as BanditPolicy
from trainmaster.tuning.policies import EarlyTerminationPolicy as EarlyTerminationPolicy
from trainmaster.tuning.policies import MedianStoppingPolicy as MedianStoppingPolicy
from trainmaster.tuning.policies import NoTerminationPolicy as NoTerminationPolicy
from trainmaster.tuning.policies import TruncationSelectionPolicy as TruncationSelectionPolicy
from trainmaster.tuning.sampling import BayesianParameterSampling as BayesianParameterSampling
from trainmaster.tuning.sampling import GridParameterSampling as GridParameterSampling
from trainmaster.tuning.sampling import HyperParameterSampling as HyperParameterSampling
from trainmaster.tuning.sampling import RandomParameterSampling as RandomParameterSampling
