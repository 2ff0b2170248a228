"""`environment.docker`: the settings for containers."""

from __future__ import annotations

import warnings
from typing import Any


class DockerSection:
    """`environment.docker`: the image to run in, with docker, podman or apptainer.

    An image is used if `enabled` is set (or DockerConfiguration(use_docker=True) is given). By default the script uses
    the Python and packages of the image; packages of the environment are built outside of it and mounted. Trainmaster
    does not build images: a Dockerfile is recorded, and refused at submit.
    """

    def __init__(self) -> None:
        self.enabled = False
        self.base_image_registry = ContainerRegistry()
        self.shm_size = "2g"
        self.shared_volumes = True
        self.arguments: list[str] = []
        self.gpu_support = False
        self.platform: Any = None
        self._base: tuple[str, Any] = ("base_image", None)

    @property
    def base_image(self) -> Any:
        """The base image; excludes the other two."""
        return self._get("base_image")

    @base_image.setter
    def base_image(self, value: Any) -> None:
        self._set("base_image", value)

    @property
    def base_dockerfile(self) -> Any:
        """The Dockerfile of the base image; excludes the other two."""
        return self._get("base_dockerfile")

    @base_dockerfile.setter
    def base_dockerfile(self, value: Any) -> None:
        self._set("base_dockerfile", value)

    @property
    def build_context(self) -> Any:
        """The folder to build an image from; excludes the other two."""
        return self._get("build_context")

    @build_context.setter
    def build_context(self, value: Any) -> None:
        self._set("build_context", value)

    def _get(self, kind: str) -> Any:
        return self._base[1] if self._base[0] == kind else None

    def _set(self, kind: str, value: Any) -> None:
        present, other = self._base
        if value is None and present != kind:
            return
        if value is not None and other is not None and present != kind:
            warnings.warn(f"docker.{kind} replaces docker.{present}", UserWarning, stacklevel=3)
        self._base = (kind, value)


class ContainerRegistry:
    """The registry of a private image. Only its address is used; log in with the container engine's own `login`."""

    def __init__(self) -> None:
        self.address: str | None = None
        self.username: str | None = None
        self.password: str | None = None
