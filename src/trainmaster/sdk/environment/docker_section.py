"""`environment.docker`: what was said about containers."""

from __future__ import annotations

import warnings
from typing import Any


class DockerSection:
    """`environment.docker`: the image to run in, by docker, podman or apptainer, where one of them runs.

    An image counts when `enabled` is set (or DockerConfiguration(use_docker=True) is given). It brings its own Python
    and packages, unless packages are asked for: those are built beside it and seen in it. Images are not built here: a
    Dockerfile is kept, and refused at submit.
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
        """The image to build upon; excludes the other two."""
        return self._get("base_image")

    @base_image.setter
    def base_image(self, value: Any) -> None:
        self._set("base_image", value)

    @property
    def base_dockerfile(self) -> Any:
        """The Dockerfile to build upon; excludes the other two."""
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
    """Where a private image is. The address counts; log in with the engine's own `login`, passwords are not used."""

    def __init__(self) -> None:
        self.address: str | None = None
        self.username: str | None = None
        self.password: str | None = None
