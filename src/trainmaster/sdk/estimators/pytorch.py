"""PyTorch: the estimator for torch scripts."""

from __future__ import annotations

import os
from typing import Unpack

from trainmaster.environments.frameworks import PYTORCH
from trainmaster.sdk.estimators.framework import FrameworkEstimator
from trainmaster.sdk.estimators.rules import MPI, TORCH, Kind
from trainmaster.sdk.estimators.settings import FrameworkSettings, with_signature


@with_signature(FrameworkSettings)
class PyTorch(FrameworkEstimator):
    """A PyTorch script: alone, under Open MPI with Horovod, or with torch's own processes over Gloo or NCCL.

    >>> from trainmaster import Gloo
    >>> two_nodes = PyTorch(".", entry_script="train.py", compute_target="local", node_count=2,
    ...                     distributed_training=Gloo())
    """

    FRAMEWORK = PYTORCH
    FRAMEWORK_NAME = PYTORCH.name
    DEFAULT_VERSION = PYTORCH.default
    KIND = Kind("PyTorch", ("mpi", "gloo", "nccl"), (*MPI, *TORCH))

    def __init__(self, source_directory: str | os.PathLike[str], **settings: Unpack[FrameworkSettings]) -> None:
        super().__init__(source_directory, settings)
