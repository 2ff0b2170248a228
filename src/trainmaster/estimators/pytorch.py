"""PyTorch: the estimator for torch scripts."""

from __future__ import annotations

import os
from typing import Unpack

from trainmaster.estimators.framework import FrameworkEstimator
from trainmaster.estimators.rules import MPI, TORCH, Kind
from trainmaster.estimators.settings import FrameworkSettings, with_signature


@with_signature(FrameworkSettings)
class PyTorch(FrameworkEstimator):
    """A PyTorch script: alone, under Open MPI with Horovod, or with torch's own processes over Gloo or NCCL.

    >>> from trainmaster import Gloo
    >>> two_nodes = PyTorch(".", entry_script="train.py", compute_target="local", node_count=2,
    ...                     distributed_training=Gloo(), pip_packages=["torch"])
    """

    FRAMEWORK_NAME = "PyTorch"
    DEFAULT_VERSION = "1.4"
    SUPPORTED_VERSIONS = ("1.0", "1.1", "1.2", "1.3", "1.4", "1.5", "1.6")
    PACKAGES = ("torch", "pytorch", "pytorch-cpu")
    KIND = Kind("PyTorch", ("mpi", "gloo", "nccl"), (*MPI, *TORCH))

    def __init__(self, source_directory: str | os.PathLike[str], **settings: Unpack[FrameworkSettings]) -> None:
        super().__init__(source_directory, settings)
