"""Workspace: where everything is kept. A folder, found through a small config file or by its name."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from trainmaster import not_yet
from trainmaster.client import Client
from trainmaster.errors import UserErrorException, WorkspaceException
from trainmaster.folders import WorkspaceFolder, home

if TYPE_CHECKING:
    from trainmaster.compute import ComputeTarget
    from trainmaster.datastores import Datastore
    from trainmaster.environments.definition import Environment
    from trainmaster.experiment import Experiment
    from trainmaster.keyvault import Keyvault
    from trainmaster.run import Run

T = TypeVar("T")

_NAME = re.compile(r"[A-Za-z0-9][\w-]{2,32}", re.ASCII)
_CONFIG_FOLDERS = (".azureml", "aml_config", ".")
_CONFIG_NAMES = ("config.json", "project.json")
_DEFAULT_NAME = "default"


class Named(dict[str, T], Generic[T]):
    """Name to object. Also callable, as these collections were methods in 2018."""

    def __call__(self) -> Named[T]:
        return self


class Workspace:
    """A workspace that exists. `Workspace.create` makes one, `Workspace.from_config` finds the one of this project.

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
    ) -> None:
        folder = WorkspaceFolder(Path(path).resolve() if path is not None else named_folder(workspace_name))
        self._identity = read_identity(folder)
        self._folder = folder
        self._client = Client(folder)
        self._subscription = subscription_id or str(self._identity.get("subscription_id", ""))
        self._group = resource_group or str(self._identity.get("resource_group", ""))

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
        *,
        path: str | os.PathLike[str] | None = None,
        exist_ok: bool = False,
        show_output: bool = True,
        **azure_only: Any,
    ) -> Workspace:
        """Makes a workspace in the folder `path` (default: by its name below `TRAINMASTER_HOME`) and opens it.

        The other parameters are v1's; those that only mean something in Azure are accepted and not used.
        """
        check_workspace_name(name)
        folder = WorkspaceFolder(Path(path).resolve() if path is not None else named_folder(name))
        if folder.identity.exists() and not exist_ok:
            raise WorkspaceException(
                f"there is a workspace in {folder.path} already", hint="Give exist_ok=True to open it."
            )
        make_workspace(
            folder,
            {
                "name": name,
                "subscription_id": subscription_id or "",
                "resource_group": resource_group or "",
                "location": location or "local",
                "friendly_name": friendly_name or name,
                "tags": tags or {},
            },
        )
        workspace = Workspace(path=folder.path)
        # The first call makes the database, so that a workspace that cannot be used says so here.
        workspace._call("status")
        if show_output:
            print(f"Workspace '{workspace.name}' is in {folder.path}")
        return workspace

    @staticmethod
    def from_config(
        path: str | os.PathLike[str] | None = None, auth: object = None, _file_name: str | None = None
    ) -> Workspace:
        """The workspace that the nearest config file names, from `path` (default: here) upward.

        Without any config file it is the default workspace of this user, made on first use.
        """
        config = find_config(Path(path) if path is not None else Path.cwd(), _file_name)
        if config is not None:
            return _configured(config)
        if path is not None:
            raise UserErrorException(
                f"no workspace config file was found in {path} or above it",
                hint="Write one with ws.write_config(path=...), or call from_config() for the default workspace.",
            )
        return _made_on_first_use(named_folder(_DEFAULT_NAME), {"name": _DEFAULT_NAME})

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
    ) -> Workspace:
        """Opens a workspace by its name, or by its folder."""
        return Workspace(subscription_id or "", resource_group or "", name, path=path)

    @staticmethod
    def list(
        subscription_id: str = "", auth: object = None, resource_group: str | None = None
    ) -> dict[str, list[Workspace]]:
        """Name to the workspaces below `TRAINMASTER_HOME`."""
        found = sorted(home().glob("workspaces/*/workspace.json"))
        return {file.parent.name: [Workspace(path=file.parent)] for file in found}

    def write_config(self, path: str | os.PathLike[str] | None = None, file_name: str | None = None) -> None:
        """Notes this workspace in `.azureml/config.json` below `path` (default: here), for `from_config`."""
        folder = Path(path) if path is not None else Path.cwd()
        if folder.name != ".azureml":
            folder = folder / ".azureml"
        folder.mkdir(parents=True, exist_ok=True)
        config = {
            "subscription_id": self.subscription_id,
            "resource_group": self.resource_group,
            "workspace_name": self.name,
            "path": str(self._folder.path),
        }
        (folder / (file_name or "config.json")).write_text(json.dumps(config, indent=4) + "\n")

    @property
    def name(self) -> str:
        """The workspace's name."""
        return str(self._identity["name"])

    @property
    def path(self) -> Path:
        """The workspace's folder."""
        return self._folder.path

    @property
    def subscription_id(self) -> str:
        """v1's subscription, an opaque text here."""
        return self._subscription

    @property
    def resource_group(self) -> str:
        """v1's resource group, an opaque text here."""
        return self._group

    @property
    def location(self) -> str:
        """v1's region."""
        return str(self._identity.get("location", "local"))

    @property
    def sku(self) -> str:
        """v1's pricing tier; everything here is free."""
        return "basic"

    @property
    def tags(self) -> dict[str, str]:
        """The labels given at creation."""
        return dict(self._identity.get("tags", {}))

    def get_details(self) -> dict[str, Any]:
        """The workspace as a dict."""
        return {
            "id": self._identity["id"],
            "name": self.name,
            "location": self.location,
            "type": "trainmaster.workspace",
            "tags": self.tags,
            "sku": self.sku,
            "friendlyName": self._identity.get("friendly_name", self.name),
            "creationTime": self._identity.get("created_at"),
            "path": str(self.path),
        }

    @property
    def experiments(self) -> Named[Experiment]:
        """Name to experiment."""
        from trainmaster.experiment import Experiment

        return Named({experiment.name: experiment for experiment in Experiment.list(self)})

    @property
    def compute_targets(self) -> Named[ComputeTarget]:
        """Name to compute target."""
        from trainmaster.compute import ComputeTarget

        return Named({target.name: target for target in ComputeTarget.list(self)})

    @property
    def datastores(self) -> Named[Datastore]:
        """Name to datastore."""
        from trainmaster.datastores import Datastore

        return Named({each["name"]: Datastore(self, each["name"]) for each in self._call("datastores.list")})

    @property
    def models(self) -> Named[Any]:
        """Name to registered model: none before the release that brings models."""
        return Named()

    @property
    def images(self) -> Named[Any]:
        """Name to image: there are none here."""
        return Named()

    @property
    def webservices(self) -> Named[Any]:
        """Name to web service: none before the release that brings services."""
        return Named()

    @property
    def environments(self) -> Named[Environment]:
        """Name to registered environment, each in its newest version."""
        from trainmaster.environments.definition import Environment

        return Named(Environment.list(self))

    def get_mlflow_tracking_uri(self) -> str:
        """Not in this release."""
        not_yet.mlflow_tracking()

    def get_default_datastore(self) -> Datastore:
        """The datastore that is used when none is named."""
        from trainmaster.datastores import Datastore

        return Datastore.get_default(self)

    def set_default_datastore(self, name: str) -> None:
        """Chooses the default datastore."""
        self._call("datastores.set_default", name=name)

    def get_default_keyvault(self) -> Keyvault:
        """The secrets of this workspace."""
        from trainmaster.keyvault import Keyvault

        return Keyvault(self)

    def get_default_compute_target(self, type: str) -> ComputeTarget | None:
        """The target `cpu-cluster` or `gpu-cluster`, if there is one."""
        if type not in ("CPU", "GPU"):
            raise ValueError("type must be 'CPU' or 'GPU'")
        return self.compute_targets.get(f"{type.lower()}-cluster")

    def get_run(self, run_id: str) -> Run:
        """The run with this id, in whichever experiment."""
        from trainmaster.run import Run

        return Run.get(self, run_id)

    def _call(self, op: str, **args: Any) -> Any:
        return self._client.call(op, **args)

    def __repr__(self) -> str:
        return (
            f"Workspace.create(name='{self.name}', subscription_id='{self.subscription_id}', "
            f"resource_group='{self.resource_group}')"
        )


def named_folder(name: str) -> Path:
    """The folder of the workspace with this name."""
    check_workspace_name(name)
    return home() / "workspaces" / name


def check_workspace_name(name: str) -> None:
    """Refuses what cannot be a workspace's name."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise UserErrorException(
            f"{str(name)[:60]!r} cannot be the name of a workspace",
            hint="Use 3 to 33 letters, digits, dashes or underscores, a letter or digit first.",
        )


def read_identity(folder: WorkspaceFolder) -> dict[str, Any]:
    """The facts in workspace.json."""
    try:
        identity = json.loads(folder.identity.read_text())
    except (FileNotFoundError, NotADirectoryError):
        raise WorkspaceException(
            f"there is no workspace in {folder.path}",
            hint="Make it with Workspace.create(name=..., path=...), or check TRAINMASTER_HOME.",
        ) from None
    except (OSError, ValueError) as error:
        raise WorkspaceException(f"{folder.identity} cannot be read", cause=str(error)) from None
    if not isinstance(identity, dict) or not {"name", "id"} <= identity.keys():
        raise WorkspaceException(f"{folder.identity} is not the identity of a workspace")
    return identity


def make_workspace(folder: WorkspaceFolder, facts: dict[str, Any]) -> None:
    """The folder and its identity; harmless where one is already, also when two do it at once."""
    if folder.identity.exists():
        return
    import uuid

    identity = {"id": str(uuid.uuid4()), "created_at": time.time(), **facts}
    try:
        # Its owner's alone: job specifications may hold what others should not read.
        folder.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = folder.path / f".workspace-{uuid.uuid4().hex}.json"
        draft.write_text(json.dumps(identity, indent=1) + "\n")
        try:
            os.link(draft, folder.identity)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    except OSError as error:
        raise WorkspaceException(f"no workspace can be made in {folder.path}", cause=str(error)) from None


def find_config(start: Path, file_name: str | None = None) -> Path | None:
    """The nearest config file from `start` upward; `start` itself if it is a file."""
    if start.is_file():
        return start
    names = (file_name,) if file_name else _CONFIG_NAMES
    for folder in (start.resolve(), *start.resolve().parents):
        for place in _CONFIG_FOLDERS:
            for name in names:
                if _is_config(folder / place / name):
                    return folder / place / name
    return None


def _is_config(file: Path) -> bool:
    """Whether it is ours: many projects have a config.json of their own."""
    if not file.is_file():
        return False
    if file.parent.name in _CONFIG_FOLDERS:
        return True
    try:
        data = json.loads(file.read_text())
    except (OSError, ValueError):
        return False
    return isinstance(data, dict) and ("workspace_name" in data or "Scope" in data)


def _configured(config: Path) -> Workspace:
    try:
        data = json.loads(config.read_text())
    except (OSError, ValueError) as error:
        raise UserErrorException(f"{config} cannot be read", cause=str(error)) from None
    name = _name_in(data)
    if not name:
        raise UserErrorException(f"{config} names no workspace", hint="It needs the key 'workspace_name'.")
    facts = {key: str(data[key]) for key in ("subscription_id", "resource_group") if data.get(key)}
    if data.get("path"):
        # Written by us: a workspace that is not there any more is missed, not silently replaced by an empty one.
        place = config.resolve().parent / str(data["path"])
        return Workspace(facts.get("subscription_id", ""), facts.get("resource_group", ""), path=place)
    return _made_on_first_use(named_folder(name), {"name": name, **facts})


def _name_in(data: Any) -> str:
    if not isinstance(data, dict):
        return ""
    if "Scope" in data:
        return str(data["Scope"]).rstrip("/").rsplit("/", 1)[-1]
    return str(data.get("workspace_name") or "")


def _made_on_first_use(path: Path, facts: dict[str, Any]) -> Workspace:
    folder = WorkspaceFolder(path)
    if not folder.identity.exists():
        make_workspace(folder, {"location": "local", **facts})
        print(f"Made workspace '{facts['name']}' in {path}")
    return Workspace(path=path)
