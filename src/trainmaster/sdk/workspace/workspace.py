"""Workspace: the folder where everything is stored, found by a config file or by its name."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainmaster.job.agent import durable
from trainmaster.job.errors import RunNotFoundException, TrainmasterError, UserErrorException, WorkspaceException
from trainmaster.sdk.backend.backend import Backend, Connection
from trainmaster.sdk.backend.opening import (
    Place,
    RemotePlace,
    open_backend,
    read_name_variable,
    read_server_variable,
)
from trainmaster.sdk.v1.azure_only import AzureOnly
from trainmaster.sdk.workspace.files import (
    check_workspace_name,
    drop_none,
    find_config,
    find_named_folder,
    make_once,
    make_workspace,
    read_config,
    undo_workspace,
)
from trainmaster.sdk.workspace.named import Named
from trainmaster.shared.folders import WorkspaceFolder, home
from trainmaster.shared.spelling import guess

if TYPE_CHECKING:
    from trainmaster.sdk.compute.target import ComputeTarget
    from trainmaster.sdk.datastores import Datastore
    from trainmaster.sdk.environment.definition import Environment
    from trainmaster.sdk.experiment import Experiment
    from trainmaster.sdk.models.model import Model
    from trainmaster.sdk.run.run import Run
    from trainmaster.sdk.services.webservice import Webservice
    from trainmaster.sdk.v1.image import Image
    from trainmaster.sdk.workspace.keyvault import Keyvault
    from trainmaster.sdk.workspace.notifications import Notifications

_DEFAULT_NAME = "default"
_SIGN_IN_OF_MLFLOW = ("MLFLOW_TRACKING_AUTH", "MLFLOW_TRACKING_TOKEN", "MLFLOW_TRACKING_USERNAME")


class _DefaultCluster:
    """The description of a default cluster, created when it is read."""

    def __init__(self, vm_size: str) -> None:
        self._vm_size = vm_size

    def __get__(self, instance: object, owner: type) -> Any:
        from trainmaster.sdk.compute.clusters import AmlCompute

        return AmlCompute.provisioning_configuration(vm_size=self._vm_size, max_nodes=2)


class Workspace(AzureOnly):
    """A workspace: a folder, by its name or its path. An unknown name creates a workspace, and prints a line.

    With `server`, or with the variable `TRAINMASTER_SERVER`, it is the workspace with this name on that server.

    Only the name identifies the workspace; subscription and resource group are recorded and shown.

    >>> ws = Workspace.from_config()                        # doctest: +SKIP
    >>> run = Experiment(ws, "first").submit(estimator)     # doctest: +SKIP
    """

    def __init__(
        self,
        subscription_id: str = "",
        resource_group: str = "",
        workspace_name: str = "",
        auth: object = None,
        sku: str = "basic",
        tags: dict[str, str] | None = None,
        *,
        path: str | os.PathLike[str] | None = None,
        server: str | None = None,
    ) -> None:
        place = _find_place(workspace_name, path, server)
        if isinstance(place, WorkspaceFolder) and path is None:
            facts = {"subscription_id": subscription_id, "resource_group": resource_group, "tags": tags}
            make_once(place, {"name": workspace_name, **{key: value for key, value in facts.items() if value}})
        self.backend: Backend = open_backend(place)
        self._identity = self.backend.identity()
        self._subscription = subscription_id or str(self._identity.get("subscription_id", ""))
        self._group = resource_group or str(self._identity.get("resource_group", ""))

    DEFAULT_CPU_CLUSTER_CONFIGURATION = _DefaultCluster("STANDARD_DS2_V2")
    DEFAULT_GPU_CLUSTER_CONFIGURATION = _DefaultCluster("STANDARD_NC6")

    @staticmethod
    def create(
        name: str,
        auth: object = None,
        subscription_id: str | None = None,
        resource_group: str | None = None,
        location: str | None = None,
        create_resource_group: bool = True,
        sku: str = "basic",
        tags: dict[str, str] | None = None,
        friendly_name: str | None = None,
        storage_account: str | None = None,
        key_vault: str | None = None,
        app_insights: str | None = None,
        container_registry: str | None = None,
        adb_workspace: str | None = None,
        primary_user_assigned_identity: str | None = None,
        cmk_keyvault: str | None = None,
        resource_cmk_uri: str | None = None,
        hbi_workspace: bool = False,
        default_cpu_compute_target: Any = None,
        default_gpu_compute_target: Any = None,
        private_endpoint_config: Any = None,
        private_endpoint_auto_approval: bool = True,
        exist_ok: bool = False,
        show_output: bool = True,
        user_assigned_identity_for_cmk_encryption: str | None = None,
        system_datastores_auth_mode: str = "accessKey",
        v1_legacy_mode: bool | None = None,
        *,
        path: str | os.PathLike[str] | None = None,
        database: str | None = None,
        server: str | None = None,
    ) -> Workspace:
        """Creates a workspace in the folder `path` (default: by its name below `TRAINMASTER_HOME`) and opens it.

        `database` is the URL of a PostgreSQL database (`postgresql://...`), in which the workspace gets a schema of its
        own. Without it, the database is a file in the folder. With `server`, or with the variable
        `TRAINMASTER_SERVER`, the workspace is created on that server, by an administrator.

        The other parameters are v1's; those that only have a meaning in Azure are recorded (see `get_details`).
        """
        check_workspace_name(name)
        place = _find_place(name, path, server)
        if isinstance(place, WorkspaceFolder) and place.identity.exists() and not exist_ok:
            raise WorkspaceException(
                f"{place.path} already contains a workspace", hint="Give exist_ok=True to open it."
            )
        azure = drop_none(
            storageAccount=storage_account,
            keyVault=key_vault,
            applicationInsights=app_insights,
            containerRegistry=container_registry,
            adbWorkspace=adb_workspace,
            primaryUserAssignedIdentity=primary_user_assigned_identity,
            cmkKeyvault=cmk_keyvault,
            resourceCmkUri=resource_cmk_uri,
            hbiWorkspace=hbi_workspace or None,
            v1LegacyMode=v1_legacy_mode,
        )
        where = {"subscription_id": subscription_id or "", "resource_group": resource_group or ""}
        more = {"location": location or "local", "friendly_name": friendly_name or name, "tags": tags or {}}
        facts = {**where, **more, "azure": azure}
        workspace = _create(place, name, facts, database, exist_ok)
        if show_output:
            print(f"Workspace '{workspace.name}' is in {workspace.backend.location}")
        for kind, configuration in (("CPU", default_cpu_compute_target), ("GPU", default_gpu_compute_target)):
            if configuration is not None:
                workspace._default_cluster(kind, configuration)
        return workspace

    @staticmethod
    def from_config(
        path: str | os.PathLike[str] | None = None, auth: object = None, _file_name: str | None = None
    ) -> Workspace:
        """The workspace named by the nearest config file, searched from `path` (default: the current folder) upward.

        Without a config file it is the default workspace of this user, created on first use; in a job, that of the run.
        With the variable `TRAINMASTER_SERVER` it is on that server, and `TRAINMASTER_WORKSPACE` may name it.
        """
        config = find_config(Path(path) if path is not None else Path.cwd(), _file_name)
        own = _find_workspace_of_job()
        if own is not None and path is None and not (config and config.resolve().is_relative_to(own)):
            return Workspace(path=own)
        server = read_server_variable()
        if config is not None:
            facts, place = read_config(config)
            subscription, group = facts.get("subscription_id", ""), facts.get("resource_group", "")
            server = server or facts.get("server", "")
            if server:
                return Workspace(subscription, group, read_name_variable() or facts["name"], server=server)
            return Workspace(subscription, group, facts["name"] if place is None else "", path=place)
        if path is not None:
            raise UserErrorException(
                f"no workspace config file was found in {path} or above it",
                hint="Write one with ws.write_config(path=...), or call from_config() for the default workspace.",
            )
        if server:
            return Workspace(workspace_name=read_name_variable(), server=server)
        return Workspace(workspace_name=_DEFAULT_NAME)

    @staticmethod
    def get(
        name: str,
        auth: object = None,
        subscription_id: str | None = None,
        resource_group: str | None = None,
        location: str | None = None,
        cloud: str = "AzureCloud",
        id: str | None = None,
        *,
        path: str | os.PathLike[str] | None = None,
        server: str | None = None,
    ) -> Workspace:
        """Opens a workspace by its name, which creates it on first use, by its folder, or by its server and name."""
        return Workspace(subscription_id or "", resource_group or "", name, path=path, server=server)

    @staticmethod
    def list(
        subscription_id: str = "",
        auth: object = None,
        resource_group: str | None = None,
        *,
        server: str | None = None,
    ) -> dict[str, list[Workspace]]:
        """Name to the workspaces below `TRAINMASTER_HOME`, or to those on a server that you may use."""
        address = server or read_server_variable()
        if address:
            from trainmaster.sdk.backend.remote.opening import list_names

            return {name: [Workspace(workspace_name=name, server=address)] for name in list_names(address)}
        found = sorted(home().glob("workspaces/*/workspace.json"))
        return {file.parent.name: [Workspace(path=file.parent)] for file in found}

    def write_config(self, path: str | os.PathLike[str] | None = None, file_name: str | None = None) -> None:
        """Writes `.azureml/config.json` below `path` (default: the current folder), for `from_config`."""
        folder = Path(path) if path is not None else Path.cwd()
        if folder.name != ".azureml":
            folder = folder / ".azureml"
        folder.mkdir(parents=True, exist_ok=True)
        config = {
            "subscription_id": self.subscription_id,
            "resource_group": self.resource_group,
            "workspace_name": self.name,
            **self.backend.as_config(),
        }
        durable.write(folder / (file_name or "config.json"), (json.dumps(config, indent=4) + "\n").encode())

    @property
    def name(self) -> str:
        """The workspace's name."""
        return str(self._identity["name"])

    @property
    def connection(self) -> Connection:
        """The connection to the workspace's dispatcher."""
        return self.backend.connection

    @property
    def path(self) -> Path:
        """The workspace's folder. An error for a workspace on a server."""
        return self.backend.folder.path

    @property
    def subscription_id(self) -> str:
        """v1's subscription, as it was given."""
        return self._subscription

    @property
    def resource_group(self) -> str:
        """v1's resource group, as it was given."""
        return self._group

    @property
    def location(self) -> str:
        """v1's region."""
        return str(self._identity.get("location", "local"))

    @property
    def sku(self) -> str:
        """v1's pricing tier, always `basic`."""
        return "basic"

    @property
    def tags(self) -> dict[str, str]:
        """The labels given at creation."""
        return dict(self._identity.get("tags", {}))

    @property
    def description(self) -> str:
        """The description of the workspace."""
        return str(self._identity.get("description", ""))

    @property
    def discovery_url(self) -> str:
        """The address of the workspace: of its folder, or on its server."""
        return self.backend.address

    @property
    def service_context(self) -> None:
        """Nothing: Trainmaster has no cloud service."""
        return None

    def get_details(self) -> dict[str, Any]:
        """The workspace as a dict."""
        return {
            "id": self._identity["id"],
            "name": self.name,
            "location": self.location,
            "type": "trainmaster.workspace",
            "tags": self.tags,
            "sku": self.sku,
            "workspaceid": self._identity["id"],
            "description": self.description,
            "friendlyName": self._identity.get("friendly_name", self.name),
            "creationTime": self._identity.get("created_at"),
            "containerRegistry": None,
            "keyVault": None,
            "applicationInsights": None,
            "storageAccount": None,
            "hbiWorkspace": False,
            "discoveryUrl": self.discovery_url,
            **self.backend.as_config(),
            **self._identity.get("azure", {}),
        }

    def update(
        self,
        friendly_name: str | None = None,
        description: str | None = None,
        tags: dict[str, str] | None = None,
        image_build_compute: str | None = None,
        service_managed_resources_settings: Any = None,
        primary_user_assigned_identity: str | None = None,
        allow_public_access_when_behind_vnet: bool | None = None,
        v1_legacy_mode: bool | None = None,
    ) -> dict[str, Any]:
        """Changes the friendly name, the description or the tags, and returns all details.

        Parameters that only have a meaning in Azure are recorded.
        """
        if tags is not None and not isinstance(tags, dict):
            raise UserErrorException(f"tags must be a dict, not {type(tags).__name__}")
        azure = drop_none(
            imageBuildCompute=image_build_compute,
            primaryUserAssignedIdentity=primary_user_assigned_identity,
            allowPublicAccessWhenBehindVnet=allow_public_access_when_behind_vnet,
            v1LegacyMode=v1_legacy_mode,
        )
        changes = drop_none(friendly_name=friendly_name, description=description, tags=tags)
        self._identity = self.backend.change_identity(
            {**changes, "azure": {**self._identity.get("azure", {}), **azure}}
        )
        return self.get_details()

    def delete(self, delete_dependent_resources: bool = False, no_wait: bool = False) -> None:
        """Removes the workspace with its runs, environments and secrets. Refused while runs are active.

        The files of its default datastore are removed only with `delete_dependent_resources`. Other files in the folder
        are never removed.
        """
        self.backend.remove(keep_data=not delete_dependent_resources)

    @staticmethod
    def setup() -> Workspace:
        """The workspace of the current folder, the same as `from_config()`. v1 asked for one."""
        return Workspace.from_config()

    @property
    def experiments(self) -> Named[Experiment]:
        """Name to experiment."""
        from trainmaster.sdk.experiment import Experiment

        found = {experiment.name: experiment for experiment in Experiment.list(self)}
        return Named(found, lambda name: self._explain_experiment(name, found))

    @property
    def compute_targets(self) -> Named[ComputeTarget]:
        """Name to compute target."""
        from trainmaster.sdk.compute.target import ComputeTarget

        return Named({target.name: target for target in ComputeTarget.list(self)})

    @property
    def datastores(self) -> Named[Datastore]:
        """Name to datastore."""
        from trainmaster.sdk.datastores import Datastore

        return Named({each["name"]: Datastore(self, each["name"]) for each in self.connection.call("datastores.list")})

    @property
    def datasets(self) -> Named[Any]:
        """Name to registered dataset, each in its newest version."""
        from trainmaster.sdk.datasets import Dataset

        return Named(Dataset.get_all(self))

    @property
    def models(self) -> Named[Model]:
        """Name to registered model, each in its newest version."""
        from trainmaster.sdk.models.model import Model

        return Named({model.name: model for model in Model.list(self, latest=True)})

    @property
    def images(self) -> Named[Image]:
        """Name to image of v1's older way to deploy, each in its newest version."""
        from trainmaster.sdk.v1.image import Image

        # The list is newest first. Reversed, the newest image of a name replaces the older ones.
        return Named({image.name: image for image in reversed(Image.list(self))})

    @property
    def webservices(self) -> Named[Webservice]:
        """Name to scoring service."""
        from trainmaster.sdk.services.webservice import Webservice

        return Named({service.name: service for service in Webservice.list(self)})

    @property
    def environments(self) -> Named[Environment]:
        """Name to registered environment, each in its newest version."""
        from trainmaster.sdk.environment.definition import Environment

        return Named(Environment.list(self))

    def get_mlflow_tracking_uri(self) -> str:
        """The address for `mlflow.set_tracking_uri`. In a job, MLflow then logs to the job's run.

        Outside of jobs, MLflow's experiments, runs and models are those of the workspace. For a workspace on a server,
        MLflow signs in with the token of `trainmaster login`, unless variables of MLflow say otherwise.
        """
        if os.environ.get("TRAINMASTER_RUN_ID"):
            return "trainmaster:run"
        address = self.backend.mlflow_address()
        if address.startswith("http") and not any(os.environ.get(name) for name in _SIGN_IN_OF_MLFLOW):
            os.environ["MLFLOW_TRACKING_AUTH"] = "trainmaster"
        return address

    def get_default_datastore(self) -> Datastore:
        """The default datastore."""
        from trainmaster.sdk.datastores import Datastore

        return Datastore.get_default(self)

    def set_default_datastore(self, name: str) -> None:
        """Sets the default datastore."""
        self.connection.call("datastores.set_default", name=name)

    def get_default_keyvault(self) -> Keyvault:
        """The secrets of this workspace."""
        from trainmaster.sdk.workspace.keyvault import Keyvault

        return Keyvault(self)

    @property
    def notifications(self) -> Notifications:
        """The channels that tell people when runs end."""
        from trainmaster.sdk.workspace.notifications import Notifications

        return Notifications(self)

    def get_default_compute_target(self, type: str) -> ComputeTarget:
        """The cluster `cpu-cluster` or `gpu-cluster`, created on first use with v1's default configuration.

        Without a GPU, scripts on `gpu-cluster` run on the CPU, and creating the cluster warns.
        """
        defaults = {"CPU": self.DEFAULT_CPU_CLUSTER_CONFIGURATION, "GPU": self.DEFAULT_GPU_CLUSTER_CONFIGURATION}
        if type not in defaults:
            raise ValueError("type must be 'CPU' or 'GPU'")
        return self._default_cluster(type, defaults[type])

    def get_run(self, run_id: str) -> Run:
        """The run with this id, from any experiment."""
        from trainmaster.sdk.run.run import Run

        try:
            return Run.get(self, run_id)
        except RunNotFoundException as error:
            why = self.connection.call("workspace.explain_missing", kind="run", name=str(run_id))
            if not why:
                raise
            raise RunNotFoundException(error.headline, cause=why) from None

    def update_dependencies(self, container_registry: str | None = None, force: bool = False) -> Workspace:
        """Nothing: a workspace has no dependencies."""
        return self

    def _explain_experiment(self, name: str, found: Mapping[str, Experiment]) -> str:
        """A sentence about an unknown experiment."""
        why = self.connection.call("workspace.explain_missing", kind="experiment", name=str(name))
        if why:
            return str(why)
        return f"there is no experiment {name!r} in workspace {self.name!r}. {guess(str(name), found)}".rstrip()

    def _default_cluster(self, kind: str, configuration: Any) -> ComputeTarget:
        """The default cluster of this kind, created from `configuration` if it does not exist."""
        from trainmaster.sdk.compute.target import ComputeTarget

        name = f"{kind.lower()}-cluster"
        return self.compute_targets.get(name) or ComputeTarget.create(self, name, configuration)

    def diagnose_workspace(self, diagnose_parameters: Any) -> dict[str, Any]:
        """Checks that the dispatcher answers. `trainmaster doctor` checks more."""
        self.connection.call("status")
        return {}

    def __repr__(self) -> str:
        return (
            f"Workspace.create(name='{self.name}', subscription_id='{self.subscription_id}', "
            f"resource_group='{self.resource_group}')"
        )


def _create(place: Place, name: str, facts: dict[str, Any], database: str | None, exist_ok: bool) -> Workspace:
    """Creates a workspace and opens it."""
    if not isinstance(place, WorkspaceFolder):
        if database is not None:
            raise UserErrorException("the database of a workspace on a server is the server's", hint="Leave it out.")
        from trainmaster.sdk.backend.remote.opening import create_remote

        create_remote(place.server, name, facts, exist_ok)
        return Workspace(workspace_name=name, server=place.server)
    is_new = make_workspace(place, {"name": name, **facts}, database)
    workspace = Workspace(path=place.path)
    try:
        # The first call creates the database, so a workspace that cannot be used raises here.
        workspace.connection.call("status")
    except TrainmasterError:
        if is_new and database is not None:
            undo_workspace(place)
        raise
    return workspace


def _find_place(name: str, path: str | os.PathLike[str] | None, server: str | None) -> Place:
    """Where a workspace is: in a folder if that is given, else on the server that is given or set, else by its name."""
    if path is not None:
        if server:
            raise UserErrorException("a workspace is in a folder or on a server", hint="Give path or server, not both.")
        return WorkspaceFolder(Path(path).resolve())
    address = server or read_server_variable()
    if address:
        return RemotePlace(address, name)
    return WorkspaceFolder(find_named_folder(name))


def _find_workspace_of_job() -> Path | None:
    """In a job, the folder of its workspace, if this machine sees it."""
    folder = os.environ.get("TRAINMASTER_WORKSPACE_FOLDER", "")
    return Path(folder).resolve() if folder and os.path.isdir(folder) else None
