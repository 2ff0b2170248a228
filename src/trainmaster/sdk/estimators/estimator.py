"""Estimator: any script, with whatever packages it needs."""

from __future__ import annotations

import os
from typing import Unpack

from trainmaster.sdk.estimators.base import BaseEstimator
from trainmaster.sdk.estimators.rules import MPI, PARAMETER_SERVER, TORCH, Kind
from trainmaster.sdk.estimators.settings import EstimatorSettings, with_signature


@with_signature(EstimatorSettings)
class Estimator(BaseEstimator):
    """Any script of a folder, with whatever packages it needs.

    >>> estimator = Estimator(".", entry_script="train.py", compute_target="local")
    >>> estimator.run_config.target
    'local'
    """

    KIND = Kind("Estimator", ("mpi",), (*MPI, *PARAMETER_SERVER, *TORCH))

    def __init__(self, source_directory: str | os.PathLike[str], **settings: Unpack[EstimatorSettings]) -> None:
        super().__init__(source_directory, settings)
