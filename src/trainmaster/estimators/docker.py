"""DockerConfiguration: accepted, and without effect, because there is no container engine here."""

from __future__ import annotations

from collections.abc import Sequence


class DockerConfiguration:
    """Whether and how to run in a container; a submit that asks for one warns that it is ignored."""

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
