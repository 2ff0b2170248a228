"""A workspace in a folder of this machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainmaster.sdk.backend.backend import JOURNALS, LOGS, RunNews
from trainmaster.sdk.backend.local.connection import LocalConnection
from trainmaster.sdk.backend.local.contents import LocalContents
from trainmaster.shared.folders import RunFolder, WorkspaceFolder
from trainmaster.shared.identity import change_identity, read_identity

if TYPE_CHECKING:
    from trainmaster.job.script.storage import Storage
    from trainmaster.sdk.backend.local.packages import LocalPackage
    from trainmaster.sdk.backend.local.run_files import LocalRunFiles
    from trainmaster.shared.job_spec import JobSpec
    from trainmaster.shared.machine import Machine
    from trainmaster.shared.records import DatastoreRecord


class LocalBackend:
    """The workspace in `folder`."""

    def __init__(self, folder: WorkspaceFolder) -> None:
        self.folder = folder
        self.connection = LocalConnection(folder)
        self.contents = LocalContents(folder)

    @property
    def address(self) -> str:
        """The address of the folder."""
        return self.folder.path.as_uri()

    def find_page(self, path: str) -> str:
        """The address of a page of the studio, if this user runs one."""
        from trainmaster.shared import own_studio

        return own_studio.find_page(self.folder, path)

    def open_connection(self) -> LocalConnection:
        """Another connection, for calls that take long."""
        return LocalConnection(self.folder)

    @property
    def location(self) -> str:
        """The path of the folder."""
        return str(self.folder.path)

    def run_files(self, run_id: str) -> LocalRunFiles:
        """The files of a run."""
        from trainmaster.sdk.backend.local.run_files import LocalRunFiles

        return LocalRunFiles(self.folder.run(run_id))

    def follow_run(
        self, run_id: str, kinds: Sequence[str] = (LOGS,), *, hold: float = 0.0, every: float | None = None
    ) -> Iterator[RunNews | None]:
        """Yields each new state of a run, and None when files of these kinds may have grown."""
        from trainmaster.sdk.backend.local.following import follow_run

        folders = [_folder_of(self.folder.run(run_id), kind) for kind in kinds]
        return follow_run(self.folder, run_id, folders, hold=hold, every=every)

    def open_storage(self, store: DatastoreRecord) -> Storage:
        """The files of a datastore, opened by this program."""
        from trainmaster.storage.storage import open_storage

        return open_storage(store.url, store.options)

    def open_package(self, name: str) -> LocalPackage:
        """The files of a package."""
        from trainmaster.sdk.backend.local.packages import LocalPackage

        return LocalPackage(self.folder.path / "packages" / name / "files")

    def check_job(self, spec: JobSpec) -> None:
        """Nothing: what this program has, its jobs have."""

    def post_to_service(self, name: str, address: str, body: bytes, key: str) -> tuple[int, bytes]:
        """Sends a request to the service at `address`; returns the status and the body of its answer."""
        from trainmaster.sdk.backend.local.scoring import post

        return post(address, body, key)

    def host_name(self, host: str) -> str:
        """The name under which this program reaches a service that listens on `host`."""
        from trainmaster.sdk.backend.local.scoring import host_name

        return host_name(host)

    def pythons(self) -> AbstractContextManager[None]:
        """Nothing changes: environments are built on this machine."""
        return nullcontext()

    def owner(self) -> dict[str, str]:
        """This process, which the dispatcher watches."""
        from trainmaster.shared.owner import this_program

        return this_program()

    def is_logged_here(self, run_id: str, properties: Mapping[str, str]) -> bool:
        """Whether the properties of a run name this program."""
        from trainmaster.shared.owner import owner_of, this_program

        owner = owner_of(properties)
        return owner is not None and owner == owner_of(this_program())

    def machine(self) -> Machine:
        """This machine."""
        from trainmaster.shared.machine import this_machine

        return this_machine(self.folder)

    def identity(self) -> dict[str, Any]:
        """The facts in workspace.json."""
        return read_identity(self.folder)

    def as_config(self) -> dict[str, str]:
        """What a config file says to find this workspace again."""
        return {"path": str(self.folder.path)}

    def mlflow_address(self) -> str:
        """The address of the workspace for MLflow's plugin."""
        from trainmaster.sdk.mlflow.addresses import address_of

        return address_of(self.folder.path)

    def change_identity(self, changes: dict[str, Any]) -> dict[str, Any]:
        """Changes facts in workspace.json, and returns all of them."""
        return change_identity(self.folder, changes)

    def remove(self, keep_data: bool) -> None:
        """Removes the workspace, but no other files in its folder."""
        from trainmaster.sdk.backend.local.removal import remove_workspace

        remove_workspace(self.folder, self.connection, keep_data)


def _folder_of(run: RunFolder, kind: str) -> Path:
    return {LOGS: run.logs, JOURNALS: run.journals}[kind]
