"""The image of a run, from the several settings that v1 had for it."""

from __future__ import annotations

from dataclasses import replace

from trainmaster.environments.base_images import is_base_image
from trainmaster.job.errors import TrainingException, UserErrorException
from trainmaster.sdk.environment.definition import Environment
from trainmaster.sdk.estimators import values
from trainmaster.sdk.estimators.run_configuration import RunConfiguration
from trainmaster.shared.job_spec import ContainerSpec, EnvironmentSpec
from trainmaster.shared.notices import warn


def with_container(spec: EnvironmentSpec, environment: Environment, config: RunConfiguration) -> EnvironmentSpec:
    """`spec` in the requested image. Without an image, settings for containers have no effect.

    `use_docker` alone is v1's default and requests nothing: v1 always had an image.
    """
    docker = environment.docker
    if not (docker.enabled or getattr(config.docker, "use_docker", False)):
        if docker.base_image and not is_base_image(docker.base_image):
            warn(f"docker.base_image {docker.base_image!r} is not used, because docker.enabled is not set")
        return spec
    if docker.base_dockerfile or docker.build_context:
        raise TrainingException(
            "Trainmaster does not build images: docker.base_dockerfile and docker.build_context cannot be used",
            hint="Build the image yourself and name it in docker.base_image, or give the packages instead.",
        )
    if not docker.base_image or is_base_image(docker.base_image):
        return spec
    interpreter = environment.python.interpreter_path
    return replace(
        spec,
        # The interpreter is in the image. No path of this machine applies.
        interpreter=interpreter if spec.user_managed and isinstance(interpreter, str) else "",
        container=_container(environment, config),
    )


def _container(environment: Environment, config: RunConfiguration) -> ContainerSpec:
    docker = environment.docker
    image = values.text("docker.base_image", docker.base_image)
    registry = docker.base_image_registry
    if getattr(registry, "username", None) or getattr(registry, "password", None):
        warn(
            "the user name and password of the registry are not used: sign in with the container engine, as in "
            "'docker login', and name a secret in image_pull_secrets of a target on Kubernetes"
        )
    address = getattr(registry, "address", None)
    if address and not image.startswith(f"{address}/"):
        image = f"{address}/{image}"
    if image.startswith("-") or any(letter.isspace() for letter in image):
        raise UserErrorException(f"docker.base_image must be the name of an image, not {image!r}")
    arguments = [*docker.arguments, *getattr(config.docker, "arguments", ())]
    return ContainerSpec(
        image=image,
        shm_size=str(docker.shm_size or getattr(config.docker, "shm_size", "") or ""),
        arguments=tuple(values.text("docker.arguments", each) for each in arguments),
    )
