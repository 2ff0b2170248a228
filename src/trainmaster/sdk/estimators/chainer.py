"""Chainer: the estimator for chainer scripts."""

from __future__ import annotations

import os
from typing import Unpack

from trainmaster.environments.frameworks import CHAINER
from trainmaster.sdk.estimators.framework import FrameworkEstimator
from trainmaster.sdk.estimators.rules import MPI, Kind
from trainmaster.sdk.estimators.settings import FrameworkSettings, with_signature


@with_signature(FrameworkSettings)
class Chainer(FrameworkEstimator):
    """A Chainer script: alone, or under Open MPI with ChainerMN."""

    FRAMEWORK = CHAINER
    FRAMEWORK_NAME = CHAINER.name
    DEFAULT_VERSION = CHAINER.default
    KIND = Kind("Chainer", ("mpi",), MPI)

    def __init__(self, source_directory: str | os.PathLike[str], **settings: Unpack[FrameworkSettings]) -> None:
        super().__init__(source_directory, settings)
