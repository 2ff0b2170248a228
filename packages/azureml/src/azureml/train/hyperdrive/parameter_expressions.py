"""Shows `azureml.train.hyperdrive.parameter_expressions` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

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
