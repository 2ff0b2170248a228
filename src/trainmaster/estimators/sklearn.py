"""SKLearn: the estimator for scikit-learn scripts."""

from __future__ import annotations

import os
from typing import Unpack

from trainmaster.estimators.framework import FrameworkEstimator
from trainmaster.estimators.rules import Kind
from trainmaster.estimators.settings import SKLearnSettings, with_signature


@with_signature(SKLearnSettings)
class SKLearn(FrameworkEstimator):
    """A scikit-learn script, on one node in one process."""

    FRAMEWORK_NAME = "SKLearn"
    DEFAULT_VERSION = "0.20.3"
    SUPPORTED_VERSIONS = ("0.20.3",)
    PACKAGES = ("scikit-learn", "sklearn")
    KIND = Kind("SKLearn")

    def __init__(self, source_directory: str | os.PathLike[str], **settings: Unpack[SKLearnSettings]) -> None:
        super().__init__(source_directory, settings)
