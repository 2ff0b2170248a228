"""A workspace on a server."""

from __future__ import annotations

import time
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from trainmaster.job.errors import UserErrorException, WorkspaceException
from trainmaster.sdk.backend.backend import LOGS, RunNews
from trainmaster.sdk.backend.remote.connection import RemoteConnection
from trainmaster.sdk.backend.remote.contents import RemoteContents
from trainmaster.sdk.backend.remote.following import follow_run
from trainmaster.sdk.backend.remote.http import join_path
from trainmaster.sdk.backend.remote.run_files import RemoteRunFiles
from trainmaster.sdk.backend.remote.server import Server
from trainmaster.sdk.backend.remote.spool import Spool
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.job_spec import JobSpec, ThisPython
from trainmaster.shared.machine import Machine
from trainmaster.shared.owner import program_with_lease
from trainmaster.shared.serialization import from_plain

if TYPE_CHECKING:
    from trainmaster.job.script.storage import Storage
    from trainmaster.sdk.backend.operation_storage import OperationPackage
    from trainmaster.shared.records import DatastoreRecord


_KNOWN_SECONDS = 60.0
"""How long the Pythons of the server's machine are not asked for again: every submit needs them."""


class RemoteBackend:
    """The workspace `name` of a server."""

    def __init__(self, server: Server, name: str) -> None:
        self.server = server
        self.name = name
        self.connection = RemoteConnection(server.client, name)
        self.contents = RemoteContents(self.connection)
        self._spool = Spool(self.connection)
        self.connection.ahead = self._spool
        self._known_machine: tuple[float, Machine] | None = None

    @property
    def folder(self) -> WorkspaceFolder:
        """An error: the folder is on the server."""
        raise WorkspaceException(
            f"workspace '{self.name}' is on {self.server.address}",
            cause="Its folder is there, and this machine cannot see it.",
            hint="Use the methods of runs, models and datastores to read and write files: run.download_file(), "
            "model.download(), datastore.upload().",
        )

    @property
    def address(self) -> str:
        """Its address for people."""
        return f"{self.server.address}/w{join_path(self.name)}"

    def find_page(self, path: str) -> str:
        """The address of a page of the server's studio."""
        return f"{self.address}/{path}"

    @property
    def location(self) -> str:
        """Where it is, for people."""
        return self.address

    def run_files(self, run_id: str) -> RemoteRunFiles:
        """The files of a run."""
        return RemoteRunFiles(self.connection, self._spool, run_id, f"{self.address}/runs{join_path(run_id)}")

    def open_connection(self) -> RemoteConnection:
        """The same connection: its calls do not wait for each other."""
        return self.connection

    def open_storage(self, store: DatastoreRecord) -> Storage:
        """The files of a datastore: a folder is read by the server, any other storage by the dispatcher.

        The keys of the storage stay there.
        """
        from trainmaster.sdk.backend.operation_storage import OperationStorage
        from trainmaster.sdk.backend.remote.storage import RemoteStorage
        from trainmaster.storage.urls import local_folder

        if local_folder(store.url) is None:
            return OperationStorage(self.connection, store.name)
        return RemoteStorage(self.connection, store.name)

    def open_package(self, name: str) -> OperationPackage:
        """The files of a package, read by the dispatcher."""
        from trainmaster.sdk.backend.operation_storage import OperationPackage

        return OperationPackage(self.connection, name)

    def check_job(self, spec: JobSpec) -> None:
        """Refuses a job that needs the Python of this program, unless the server is on this machine."""
        if isinstance(spec.environment.interpreter, ThisPython) and not self._recall_machine().is_here:
            raise UserErrorException(
                "user_managed=True names no Python of the server",
                cause=f"The script would run on {self.server.address}, which does not have the Python of this program "
                f"({spec.environment.interpreter}).",
                hint="List the packages (pip_packages=[...]), and an environment is built there; or name a Python of "
                "that machine: environment.python.interpreter_path, or --python PATH.",
            )

    def post_to_service(self, name: str, address: str, body: bytes, key: str) -> tuple[int, bytes]:
        """Sends a request to a service through the server, which reaches the service's address."""
        answer = self.connection.call("services.score", name=name, body=b64encode(body).decode(), key=key)
        return int(answer["status"]), b64decode(answer["body"])

    def host_name(self, host: str) -> str:
        """The name under which this program reaches a service that listens on `host`: the server's."""
        return self.server.address.host

    def pythons(self) -> AbstractContextManager[None]:
        """Within it, Pythons for environments are chosen among those of the server's machine."""
        from trainmaster.environments.pythons import choose_from

        machine = self._recall_machine()
        return choose_from(machine.python, machine.pythons)

    def owner(self) -> dict[str, str]:
        """A lease, which the spool renews: the dispatcher cannot watch this process."""
        return program_with_lease()

    def is_logged_here(self, run_id: str, properties: Mapping[str, str]) -> bool:
        """Whether this program created the run, and the run has not ended."""
        return self._spool.has_created(run_id)

    def machine(self) -> Machine:
        """The machine of the server's dispatcher."""
        machine = from_plain(Machine, self.connection.call("workspace.machine"))
        self._known_machine = time.monotonic(), machine
        return machine

    def _recall_machine(self) -> Machine:
        """The machine as it was within the last minute."""
        known = self._known_machine
        return known[1] if known and time.monotonic() - known[0] < _KNOWN_SECONDS else self.machine()

    def follow_run(
        self, run_id: str, kinds: Sequence[str] = (LOGS,), *, hold: float = 0.0, every: float | None = None
    ) -> Iterator[RunNews | None]:
        """Yields each new state of a run, and None when files of these kinds may have grown."""
        return follow_run(self.connection, run_id, tuple(kinds), hold=hold, every=every)

    def identity(self) -> dict[str, Any]:
        """What the server knows about the workspace."""
        return self.server.identity_of(self.name)

    def as_config(self) -> dict[str, str]:
        """What a config file says to find this workspace again."""
        return {"server": str(self.server.address)}

    def mlflow_address(self) -> str:
        """Where the server answers MLflow's clients for this workspace."""
        return f"{self.server.address}/mlflow/{self.name}"

    def change_identity(self, changes: dict[str, Any]) -> dict[str, Any]:
        """Changes what the server knows about the workspace, and returns all of it."""
        found: dict[str, Any] = self.connection.call("workspace.change", **changes)
        return found

    def remove(self, keep_data: bool) -> None:
        """Removes the workspace. Refused while runs are active."""
        query = {"keep_data": "true" if keep_data else "false"}
        self.server.client.call("DELETE", self.connection.path, query=query)
