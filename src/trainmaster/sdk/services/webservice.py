"""Webservice: a scoring service, by its name. It runs on this machine, or on a cluster."""

from __future__ import annotations

import builtins
from abc import ABC
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from trainmaster.job.errors import WebserviceException, from_wire
from trainmaster.job.script.labels import check_tags, matches
from trainmaster.job.script.model_rules import as_filter
from trainmaster.sdk.nouns import noun
from trainmaster.sdk.run.waiting import show_now
from trainmaster.sdk.services import calling, deploying, updating
from trainmaster.sdk.services.configurations import LocalWebserviceDeploymentConfiguration, check_key
from trainmaster.sdk.services.described import Described
from trainmaster.sdk.services.following import wait_until_settled
from trainmaster.sdk.v1.image_configuration import check_image_configuration
from trainmaster.shared.serialization import from_plain
from trainmaster.shared.service_spec import ComputeType, ServiceRecord, ServiceSpec, ServiceState, check_service_name

if TYPE_CHECKING:
    from trainmaster.sdk.v1.image import Image
    from trainmaster.sdk.workspace.workspace import Workspace


class Webservice(Described, ABC):
    """A scoring service of a workspace. Each kind of service has its own class.

    >>> service = Webservice(ws, "mnist")                       # doctest: +SKIP
    >>> service.run('{"data": [[0.1, 0.2]]}')                   # doctest: +SKIP
    [1]
    """

    _compute_type: ClassVar[ComputeType | None] = None

    def __new__(cls, workspace: Workspace, name: str, *args: Any, **kwargs: Any) -> Webservice:
        record = kwargs.get("_record") or _find(workspace, name, kwargs.get("must_exist", args[0] if args else True))
        kind = class_of(record.compute_type) if record is not None else cls
        if not issubclass(kind, cls):
            raise WebserviceException(
                f"service '{name}' has the class {kind.__name__}, not {cls.__name__}",
                hint="Use Webservice(workspace, name), which opens services of every class.",
            )
        service = super().__new__(kind)
        if record is not None:
            service._record = record
        return service

    def __init__(self, workspace: Workspace, name: str, **kwargs: Any) -> None:
        self.workspace = workspace
        self.name = name

    # Deploying

    @staticmethod
    def from_models(
        workspace: Workspace,
        name: str,
        models: Sequence[Any],
        inference_config: Any = None,
        deployment_config: Any = None,
        deployment_target: Any = None,
        overwrite: bool = False,
    ) -> Webservice:
        """Starts the deployment of models. `Model.deploy` is v1's name for it."""
        check_service_name(name)
        config = deploying.check_configuration(deployment_config, deployment_target)
        spec = deploying.make_spec(workspace, deploying.resolve_models(workspace, models), inference_config)
        record = deploying.send(workspace, name, spec, config, target=deployment_target, overwrite=overwrite)
        return open_record(workspace, record)

    @staticmethod
    def deploy(
        workspace: Workspace,
        name: str,
        model_paths: Sequence[str],
        image_config: Any,
        deployment_config: Any = None,
        deployment_target: Any = None,
        overwrite: bool = False,
    ) -> Webservice:
        """Registers model files and deploys them. The oldest of v1's ways to deploy."""
        return Webservice.deploy_from_model(
            workspace, name, list(model_paths), image_config, deployment_config, deployment_target, overwrite
        )

    @staticmethod
    def deploy_from_model(
        workspace: Workspace,
        name: str,
        models: Sequence[Any],
        image_config: Any,
        deployment_config: Any = None,
        deployment_target: Any = None,
        overwrite: bool = False,
    ) -> Webservice:
        """Deploys registered models with the result of `ContainerImage.image_configuration`.

        It creates an image with the service's name, which `workspace.images` shows.
        """
        Webservice.check_for_existing_webservice(workspace, name, overwrite)
        deploying.check_configuration(deployment_config, deployment_target)
        image = noun("Image").create(workspace, name, models, image_config)
        return Webservice.deploy_from_image(workspace, name, image, deployment_config, deployment_target, overwrite)

    @staticmethod
    def deploy_from_image(
        workspace: Workspace,
        name: str,
        image: Image,
        deployment_config: Any = None,
        deployment_target: Any = None,
        overwrite: bool = False,
    ) -> Webservice:
        """Deploys the models and the code of an image."""
        check_service_name(name)
        config = deploying.check_configuration(deployment_config, deployment_target)
        used = noun("Image").find_usable(image)
        record = deploying.send(
            workspace, name, used.spec, config, target=deployment_target, overwrite=overwrite, image_id=used.id
        )
        return open_record(workspace, record)

    @staticmethod
    def deploy_local_from_model(
        workspace: Workspace,
        name: str,
        models: Sequence[Any],
        image_config: Any,
        deployment_config: Any = None,
        wait: bool = False,
    ) -> Webservice:
        """Deploys a LocalWebservice. As in v1, no image of it is kept."""
        check_service_name(name)
        given = LocalWebserviceDeploymentConfiguration() if deployment_config is None else deployment_config
        config = deploying.check_configuration(given, None)
        image = check_image_configuration(image_config)
        spec = deploying.make_spec(workspace, deploying.resolve_models(workspace, models), image)
        service = open_record(workspace, deploying.send(workspace, name, spec, config, overwrite=True))
        if wait:
            service.wait_for_deployment()
        return service

    @staticmethod
    def check_for_existing_webservice(
        workspace: Workspace, name: str, overwrite: bool = False, request_func: Any = None, check_func: Any = None
    ) -> None:
        """Refuses a name that is in use or not valid."""
        check_service_name(name)
        taken = any(each["name"] == name for each in workspace.connection.call("services.list"))
        if taken and not overwrite:
            raise WebserviceException(f"service '{name}' already exists", hint="Use overwrite=True, or another name.")

    @staticmethod
    def list(
        workspace: Workspace,
        compute_type: Any = None,
        image_name: str | None = None,
        image_id: str | None = None,
        model_name: str | None = None,
        model_id: str | None = None,
        tags: Any = None,
        properties: Any = None,
        image_digest: str | None = None,
    ) -> builtins.list[Webservice]:
        """The services that match all filters. Tags and properties: `["key", ["key2", "value"]]`."""
        records = [from_plain(ServiceRecord, each) for each in workspace.connection.call("services.list")]
        wanted_tags, wanted_properties = as_filter(tags, "tags"), as_filter(properties, "properties")
        found = [
            record
            for record in records
            if _is_of_kind(record, compute_type)
            and (image_name is None or record.image_id.rpartition(":")[0] == image_name)
            and (image_id is None or record.image_id == image_id)
            and (model_name is None or model_name in {each.rpartition(":")[0] for each in record.spec.models})
            and (model_id is None or model_id in record.spec.models)
            and matches(record.tags, wanted_tags)
            and matches(record.properties, wanted_properties)
        ]
        return [open_record(workspace, record) for record in found]

    @staticmethod
    def deserialize(workspace: Workspace, webservice_payload: Mapping[str, Any]) -> Webservice:
        """The service of the workspace that `serialize` described."""
        return Webservice(workspace, str(webservice_payload["name"]))

    # State and logs

    def wait_for_deployment(self, show_output: bool = False, timeout_sec: float | None = None) -> None:
        """Waits until it answers requests. Raises WebserviceException with the cause if the deployment fails.

        With `show_output` the log of the deployment is shown: packages being installed, the output of the script.
        """
        generation = self._record.generation
        show = show_now if show_output else None
        answer = wait_until_settled(
            self.workspace,
            ("services.follow", {"name": self.name, "generation": generation}),
            show,
            timeout_sec,
        )
        self._record = from_plain(ServiceRecord, answer["service"])
        succeeded = self._record.state is ServiceState.HEALTHY
        if show is not None:
            result = "Succeeded" if succeeded else "Failed"
            show(f'{self.compute_type} service creation operation finished, operation "{result}"\n')
        if not succeeded:
            raise self._failure()

    def _failure(self) -> WebserviceException:
        told = from_wire(dict(self._record.error))
        goes_on = "The previous version continues to serve. " if self._record.serving else ""
        return WebserviceException(
            f"service '{self.name}' is {self.state}: {told.headline or 'no replica answers'}",
            cause=told.cause,
            hint=goes_on + (told.hint or f"See service.get_logs(), or 'trainmaster services logs {self.name}'."),
        )

    def update_deployment_state(self) -> None:
        """Reads the service again."""
        self._record = from_plain(ServiceRecord, self.workspace.connection.call("services.get", name=self.name))

    def get_logs(self, num_lines: int = 5000, init: bool = False) -> str:
        """The last lines that the service and its script printed; with `init`, those of its deployment."""
        self.update_deployment_state()
        answer = self.workspace.connection.call("services.logs", name=self.name, lines=int(num_lines), init=init)
        return str(answer["text"])

    # Requests

    def run(self, input: Any) -> Any:
        """Sends a request, with the primary key if there are keys, and returns the result of the script's `run`."""
        return self._ask(input)

    def _ask(self, data: Any) -> Any:
        if not self._record.port or self._record.state is ServiceState.TRANSITIONING:
            self.update_deployment_state()
        if not self._record.port or not self._record.serving:
            raise WebserviceException(
                f"service '{self.name}' cannot answer: it is {self.state}",
                hint=f"'trainmaster services show {self.name}' shows why; "
                "service.wait_for_deployment(show_output=True) waits for its deployment.",
            )
        body = calling.body_of(data)
        key = self._primary_key() if self.auth_enabled else ""
        status, answer = self._post(body, key)
        if status == calling.UNAUTHORIZED:
            status, answer = self._post(body, self._primary_key())
        return calling.result_of(self.name, status, answer)

    def _post(self, body: bytes, key: str) -> tuple[int, bytes]:
        if self._record.is_elsewhere:
            return calling.post_through(self.workspace.connection, self.name, body, key)
        return self.workspace.backend.post_to_service(self.name, str(self.scoring_uri), body, key)

    # Keys

    def _primary_key(self) -> str:
        return str(self.workspace.connection.call("services.keys", name=self.name)["primary"])

    def get_keys(self) -> tuple[str, str]:
        """The primary and the secondary key. Requests may use either."""
        keys = self.workspace.connection.call("services.keys", name=self.name)
        return str(keys["primary"]), str(keys["secondary"])

    def regen_key(self, key: str, set_key: str | None = None) -> None:
        """Replaces the Primary or Secondary key at once, by `set_key` or by a random key."""
        import secrets

        if not isinstance(key, str) or key.lower() not in ("primary", "secondary"):
            raise WebserviceException(f"key must be 'Primary' or 'Secondary', not {key!r}")
        check_key("set_key", set_key)
        fresh = set_key or secrets.token_urlsafe(24)
        self.workspace.connection.call("services.set_key", name=self.name, which=key.lower(), key=fresh)

    def get_token(self) -> NoReturn:
        """Not here: Azure issued tokens. Services have keys."""
        raise NotImplementedError("get_token: Trainmaster has no tokens. Use the keys of service.get_keys().")

    get_access_token = get_token

    # Changes

    def update(self, *args: Any) -> None:
        """Changes the service. Each class has its own parameters."""
        raise NotImplementedError(f"{type(self).__name__} cannot be updated")

    def add_tags(self, tags: Mapping[str, Any]) -> None:
        """Adds labels."""
        self._label(tags={**self._fresh().tags, **check_tags(tags)})

    def remove_tags(self, tags: str | Sequence[str]) -> None:
        """Drops labels by their keys."""
        gone = {tags} if isinstance(tags, str) else set(tags)
        self._label(tags={key: value for key, value in self._fresh().tags.items() if key not in gone})

    def add_properties(self, properties: Mapping[str, Any]) -> None:
        """Adds properties, which never change afterwards."""
        self._label(properties=deploying.as_properties(properties))

    def delete(self) -> None:
        """Deletes the service, after it has answered the requests in progress."""
        self.workspace.connection.call("services.delete", name=self.name)

    def _change(self, **wanted: Any) -> None:
        """Makes another generation if needed. New labels change nothing that runs."""
        image = wanted.pop("image", None)
        used = None if image is None else noun("Image").find_usable(image)
        self._record = updating.change(self.workspace, self.name, image=used, **wanted)

    def _base(self) -> ServiceSpec:
        return updating.base_of(self._fresh())

    def _fresh(self) -> ServiceRecord:
        self.update_deployment_state()
        return self._record

    def _label(self, **changes: Any) -> None:
        answer = self.workspace.connection.call("services.label", name=self.name, **changes)
        self._record = from_plain(ServiceRecord, answer)


def open_record(workspace: Workspace, record: ServiceRecord) -> Webservice:
    """The service of a record."""
    return Webservice(workspace, record.name, _record=record)


def class_of(compute_type: str) -> type[Webservice]:
    """The class of a kind of service."""
    if compute_type == "Local":
        return noun("LocalWebservice")
    return noun("AciWebservice") if compute_type == "ACI" else noun("AksWebservice")


def _find(workspace: Workspace, name: str, must_exist: bool) -> ServiceRecord | None:
    if not hasattr(workspace, "connection"):
        raise WebserviceException(f"workspace must be a Workspace, not {workspace!r:.60}")
    if not must_exist and all(each["name"] != name for each in workspace.connection.call("services.list")):
        return None
    return from_plain(ServiceRecord, workspace.connection.call("services.get", name=name))


def _is_of_kind(record: ServiceRecord, wanted: Any) -> bool:
    if wanted is None:
        return True
    if isinstance(wanted, type):
        return issubclass(class_of(record.compute_type), wanted)
    return str(wanted).lower() == record.compute_type.lower()
