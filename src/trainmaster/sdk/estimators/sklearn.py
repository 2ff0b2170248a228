"""SKLearn: the estimator for scikit-learn scripts."""

from __future__ import annotations

import os
from typing import Unpack

from trainmaster.environments.frameworks import SKLEARN
from trainmaster.sdk.estimators.framework import FrameworkEstimator
from trainmaster.sdk.estimators.rules import Kind
from trainmaster.sdk.estimators.settings import SKLearnSettings, with_signature


@with_signature(SKLearnSettings)
class SKLearn(FrameworkEstimator):
    """A scikit-learn script, on one node in one process."""

    FRAMEWORK = SKLEARN
    FRAMEWORK_NAME = SKLEARN.name
    DEFAULT_VERSION = SKLEARN.default
    KIND = Kind("SKLearn")

    def __init__(self, source_directory: str | os.PathLike[str], **settings: Unpack[SKLearnSettings]) -> None:
        super().__init__(source_directory, settings)
