"""Chainer: the estimator for chainer scripts."""

from __future__ import annotations

import os
from typing import Unpack

from trainmaster.estimators.framework import FrameworkEstimator
from trainmaster.estimators.rules import MPI, Kind
from trainmaster.estimators.settings import FrameworkSettings, with_signature


@with_signature(FrameworkSettings)
class Chainer(FrameworkEstimator):
    """A Chainer script: alone, or under Open MPI with ChainerMN."""

    FRAMEWORK_NAME = "Chainer"
    DEFAULT_VERSION = "5.1.0"
    SUPPORTED_VERSIONS = ("5.1.0", "7.0.0")
    PACKAGES = ("chainer",)
    KIND = Kind("Chainer", ("mpi",), MPI)

    def __init__(self, source_directory: str | os.PathLike[str], **settings: Unpack[FrameworkSettings]) -> None:
        super().__init__(source_directory, settings)
