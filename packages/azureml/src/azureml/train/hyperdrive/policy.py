"""Shows `azureml.train.hyperdrive.policy` to editors; never run. Written by `python -m trainmaster.migration.surface`."""

from trainmaster.tuning.policies import BanditPolicy as BanditPolicy
from trainmaster.tuning.policies import EarlyTerminationPolicy as EarlyTerminationPolicy
from trainmaster.tuning.policies import MedianStoppingPolicy as MedianStoppingPolicy
from trainmaster.tuning.policies import NoTerminationPolicy as NoTerminationPolicy
from trainmaster.tuning.policies import TruncationSelectionPolicy as TruncationSelectionPolicy
