"""DockerConfiguration: whether a run that names an image runs in it."""

from __future__ import annotations

from collections.abc import Sequence


class DockerConfiguration:
    """Whether and how to run in the image of the environment (`environment.docker.base_image`).

    Without an image it has no effect: the run uses the machine itself, with the packages of its environment.
    """

    def __init__(
        self,
        use_docker: bool = False,
        shared_volumes: bool = True,
        arguments: Sequence[str] | None = None,
        shm_size: str = "2g",
    ) -> None:
        self.use_docker = use_docker
        self.shared_volumes = shared_volumes
        self.arguments = list(arguments or ())
        self.shm_size = shm_size
