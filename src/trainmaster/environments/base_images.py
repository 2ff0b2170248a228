"""v1's base images: an operating system with Open MPI, on which v1 installed the packages of an environment.

Programs assign them to `environment.docker.base_image`. Trainmaster builds environments without an image, so a base
image changes nothing and does not request a container.
"""

from __future__ import annotations

import re

DEFAULT_CPU_IMAGE = "azureml/base"
DEFAULT_GPU_IMAGE = "azureml/base-gpu"
MPI_CPU_IMAGE = "azureml/openmpi"
MPI_GPU_IMAGE = "azureml/openmpi-gpu"

_BASE = re.compile(r"(?:.*/)?azureml/(?:base|openmpi|intelmpi)[^/]*")


def is_base_image(image: object) -> bool:
    """Whether `image` is one of v1's base images, in any registry and any release.

    >>> is_base_image("some.registry/azureml/openmpi4.1.0-ubuntu20.04:latest"), is_base_image("python:3.12")
    (True, False)
    """
    return isinstance(image, str) and _BASE.fullmatch(image) is not None
