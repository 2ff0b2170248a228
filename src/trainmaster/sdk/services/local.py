"""LocalWebservice: a service for trying out."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from trainmaster.job.errors import WebserviceException
from trainmaster.sdk.services import code, deploying
from trainmaster.sdk.services.configurations import LocalWebserviceDeploymentConfiguration
from trainmaster.sdk.services.webservice import Webservice, open_record
from trainmaster.sdk.v1.image_configuration import check_image_configuration
from trainmaster.shared.service_spec import ServiceState

if TYPE_CHECKING:
    from trainmaster.sdk.workspace.workspace import Workspace

STATE_DEPLOYING = "deploying"
STATE_RUNNING = "running"
STATE_FAILED = "failed"
STATE_UNKNOWN = "unknown"
STATE_DELETED = "deleted"

_STATES = {
    ServiceState.TRANSITIONING: STATE_DEPLOYING,
    ServiceState.HEALTHY: STATE_RUNNING,
    ServiceState.UNHEALTHY: STATE_FAILED,
    ServiceState.FAILED: STATE_FAILED,
}
_NO_KEYS = "local services have no keys"


class LocalWebservice(Webservice):
    """A service without keys, on a port of your choice. `reload` reads its script again."""

    _compute_type = "Local"

    STATE_DEPLOYING = STATE_DEPLOYING
    STATE_RUNNING = STATE_RUNNING
    STATE_FAILED = STATE_FAILED
    STATE_UNKNOWN = STATE_UNKNOWN
    STATE_DELETED = STATE_DELETED

    def __init__(self, workspace: Workspace, name: str, must_exist: bool = True, **kwargs: Any) -> None:
        super().__init__(workspace, name)
        self._deleted = False

    @staticmethod
    def deploy_configuration(
        port: int | None = None,
        *,
        replicas: int | None = None,
        scoring_timeout_ms: int | None = None,
        cors_origins: Sequence[str] | None = None,
        max_batch_size: int | None = None,
        max_batch_wait_ms: float | None = None,
        max_body_mb: float | None = None,
        host: str | None = None,
    ) -> LocalWebserviceDeploymentConfiguration:
        """The port (default: a free one), the number of replicas, and how many requests `run` gets together.

        Only this machine can reach the service, unless `host` is another of its addresses, such as 0.0.0.0.
        """
        return LocalWebserviceDeploymentConfiguration.from_parameters(locals())

    @staticmethod
    def list(  # type: ignore[override]
        workspace: Workspace, model_name: str | None = None, model_id: str | None = None, all: Any = None
    ) -> builtins.list[Webservice]:
        """The local services."""
        return Webservice.list(workspace, compute_type="Local", model_name=model_name, model_id=model_id)

    @property
    def state(self) -> str:
        """deploying, running, failed, deleted; unknown for one that was never deployed."""
        if self._deleted:
            return STATE_DELETED
        if not hasattr(self, "_record"):
            return STATE_UNKNOWN
        return _STATES.get(self._record.state, STATE_DELETED)

    @property
    def port(self) -> int | None:
        """The port it listens on."""
        return self._record.port or None

    @property
    def scoring_uri(self) -> str | None:
        """The address for requests."""
        return super().scoring_uri

    @property
    def swagger_uri(self) -> str | None:
        """The OpenAPI description of the service."""
        return super().swagger_uri

    def run(self, input_data: Any) -> Any:
        """Sends a request and returns the result of `run`; after `reload` or `update`, of the new script's `run`."""
        self._check_there()
        if self._record.state is ServiceState.TRANSITIONING:
            self.wait_for_deployment()
        return self._ask(input_data)

    def wait_for_deployment(self, show_output: bool = False, timeout_sec: float | None = None) -> None:
        """Waits until it answers requests. Raises WebserviceException with the cause if the deployment fails."""
        self._check_there()
        super().wait_for_deployment(show_output, timeout_sec)

    def update_deployment_state(self, must_exist: bool = False) -> None:
        """Reads the service again."""
        if self._deleted and not must_exist:
            return
        super().update_deployment_state()

    def get_logs(self, num_lines: int = 5000, raw: bool = False) -> str:
        """The last lines that the service and its script printed."""
        self._check_there()
        return super().get_logs(num_lines)

    def reload(self, wait: bool = False) -> None:
        """Reads the script and its folder again. Packages and models stay the same."""
        self._check_there()
        again = code.take_again(self.workspace.backend.contents, self._base().code)
        self._change(spec={"code": again})
        if wait:
            self.wait_for_deployment()

    def update(
        self,
        models: Sequence[Any] | None = None,
        image_config: Any = None,
        deployment_config: Any = None,
        wait: bool = False,
        inference_config: Any = None,
    ) -> None:
        """Changes models, script or settings. The address stays the same, and there is no downtime."""
        self._check_there()
        settings = self._settings(deployment_config)
        if image_config is not None and inference_config is None:
            inference_config = check_image_configuration(image_config)
        self._change(
            models=models,
            inference_config=inference_config,
            spec=settings.for_spec() if settings else None,
            settings=settings.settings() if settings else None,
        )
        if wait:
            self.wait_for_deployment()

    def _settings(self, given: Any) -> LocalWebserviceDeploymentConfiguration | None:
        if given is None:
            return None
        if not isinstance(given, LocalWebserviceDeploymentConfiguration):
            raise WebserviceException(
                "deployment_config must be the result of LocalWebservice.deploy_configuration(...), "
                f"not {type(given).__name__}"
            )
        if given.port not in (None, self._record.port):
            raise WebserviceException(
                f"the port of service '{self.name}' cannot change from {self._record.port}",
                hint="Deploy the service again with overwrite=True to use another port.",
            )
        return given

    def deploy_to_cloud(
        self, name: str | None = None, deployment_config: Any = None, deployment_target: Any = None
    ) -> Webservice:
        """Deploys the same code, models and packages as a service of another kind."""
        config = deploying.check_configuration(deployment_config, deployment_target)
        if config.compute_type == "Local":
            raise WebserviceException("deployment_config must not be for a local service")
        record = deploying.send(self.workspace, name or self.name, self._base(), config, target=deployment_target)
        return open_record(self.workspace, record)

    def delete(self, delete_cache: bool = True, delete_image: bool = False, delete_volume: bool = True) -> None:
        """Deletes the service with all its files. Its environment stays for other services."""
        super().delete()
        self._deleted = True

    def get_keys(self) -> NoReturn:
        """Local services have no keys."""
        raise NotImplementedError(f"get_keys: {_NO_KEYS}. AciWebservice and AksWebservice have them.")

    def regen_key(self, key: str, set_key: str | None = None) -> NoReturn:
        """Local services have no keys."""
        raise NotImplementedError(f"regen_key: {_NO_KEYS}. AciWebservice and AksWebservice have them.")

    def _check_there(self) -> None:
        if self._deleted or not hasattr(self, "_record"):
            raise WebserviceException(
                f"service '{self.name}' is {self.state}", hint="Deploy it with Model.deploy(...) first."
            )

    def __repr__(self) -> str:
        if not hasattr(self, "_record"):
            return f"LocalWebservice(workspace={self.workspace!r}, name={self.name}, state={self.state})"
        return super().__repr__()
