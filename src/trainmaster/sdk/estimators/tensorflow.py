"""TensorFlow: the estimator for tensorflow scripts."""

from __future__ import annotations

import os
from typing import Unpack

from trainmaster.environments.frameworks import TENSORFLOW
from trainmaster.sdk.estimators.framework import FrameworkEstimator
from trainmaster.sdk.estimators.rules import MPI, PARAMETER_SERVER, Kind
from trainmaster.sdk.estimators.settings import TensorFlowSettings, with_signature


@with_signature(TensorFlowSettings)
class TensorFlow(FrameworkEstimator):
    """A TensorFlow script: alone, under Open MPI with Horovod, or with parameter servers and workers.

    A parameter-server run may have more tasks than nodes, such as three tasks on two nodes.
    """

    FRAMEWORK = TENSORFLOW
    FRAMEWORK_NAME = TENSORFLOW.name
    DEFAULT_VERSION = TENSORFLOW.default
    KIND = Kind("TensorFlow", ("mpi", "ps"), (*MPI, *PARAMETER_SERVER))

    def __init__(self, source_directory: str | os.PathLike[str], **settings: Unpack[TensorFlowSettings]) -> None:
        super().__init__(source_directory, settings)
