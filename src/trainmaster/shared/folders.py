"""Where things lie in a workspace folder (docs/reference/on-disk.md): paths only, nothing is touched."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from trainmaster.job.errors import UserErrorException
from trainmaster.job.helper.safe_names import RULE, is_plain
from trainmaster.shared.host import host_name

_DISPATCHER = "dispatcher"
# A unix socket's path has to fit into 108 bytes, its end mark included.
_LONGEST_SOCKET_PATH = 107


def home() -> Path:
    """The user's own folder: `TRAINMASTER_HOME`, or `~/.trainmaster`. Named workspaces lie in it."""
    return Path(os.environ.get("TRAINMASTER_HOME") or Path.home() / ".trainmaster").resolve()


def fits_socket(path: Path) -> bool:
    """Whether a unix socket can have this path."""
    return len(os.fsencode(path)) <= _LONGEST_SOCKET_PATH


def socket_folders() -> list[Path]:
    """Where sockets may lie whose workspace has too long a path, the best first. Others may write beside the last."""
    # Rarely needed, and dear to import.
    import tempfile

    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    own = [Path(runtime, "trainmaster")] if os.path.isabs(runtime) else []
    return [*own, Path(tempfile.gettempdir(), f"trainmaster-{os.getuid()}")]


def socket_key(workspace: Path) -> str:
    """Distinguishes the sockets of different workspaces."""
    import hashlib

    return hashlib.sha256(os.fsencode(workspace)).hexdigest()[:24]


def key_file(workspace_id: str) -> Path:
    """Where the key of a workspace's secrets lies."""
    return home() / "keys" / f"{_plain(workspace_id, 'the id of a workspace')}.key"


def check_run_id(run_id: str) -> None:
    """Raise UserErrorException for an id that cannot be one: no path leads out of the folder of runs."""
    _plain(run_id, "a run id")


def _plain(name: str, what: str) -> str:
    """The name, if it is a plain file name. Others are refused, so that no path leads out of its folder."""
    if not is_plain(name):
        raise UserErrorException(f"{str(name)[:100]!r} cannot be {what}", hint=f"Use {RULE}, 255 at most.")
    return name


@dataclass(frozen=True)
class RunFolder:
    """The folder of one run, as one of its attempts sees it."""

    path: Path
    attempt: int = 1
    """Counts from 1; more than one only for a run that is retried."""

    @cached_property
    def spec(self) -> Path:
        return self.path / "spec.json"

    @cached_property
    def code(self) -> Path:
        return self.path / "code"

    @cached_property
    def files(self) -> Path:
        return self.path / "files"

    @cached_property
    def logs(self) -> Path:
        return self.files / "azureml-logs"

    @cached_property
    def journals(self) -> Path:
        return self.path / "journals"

    @cached_property
    def environment_lock(self) -> Path:
        return self.path / "environment.lock"

    @cached_property
    def secrets(self) -> Path:
        """The secrets that the script received, encrypted; exists only if it asked for one."""
        return self.path / "secrets.json"

    @cached_property
    def job_requests(self) -> Path:
        """What its script asks on another machine, and the answers, while it waits for them."""
        return self.path / "letters"

    @cached_property
    def data_plan(self) -> Path:
        return self.path / "data.json"

    @cached_property
    def datasets(self) -> Path:
        return self.path / "datasets.json"

    @cached_property
    def attempt_logs(self) -> Path:
        """Where the logs of this attempt are kept once it has failed and another follows."""
        return self.logs / f"attempt_{self.attempt}"

    @cached_property
    def failure(self) -> Path:
        return self.path / "attempts" / str(self.attempt) / "failure.json"

    @cached_property
    def members(self) -> Path:
        """Which nodes this attempt has, if a run goes on with fewer of them."""
        return self.path / "attempts" / str(self.attempt) / "members.json"

    @cached_property
    def nodes(self) -> Path:
        # Never the same path twice: an agent that comes late must not find the plan of another attempt.
        top = self.path if self.attempt == 1 else self.path / "attempts" / str(self.attempt)
        return top / "nodes"

    def node(self, number: int) -> Path:
        return self.nodes / str(number)


@dataclass(frozen=True)
class ServiceFolder:
    """The folder of one service; what its supervisor keeps there is named in `shared/service_plan.py`."""

    path: Path

    @property
    def keys(self) -> Path:
        return self.path / "keys.json"

    def generation(self, number: int) -> Path:
        return self.path / str(number)

    def deploy_log(self, number: int) -> Path:
        return self.generation(number) / "deploy.log"


@dataclass(frozen=True)
class WorkspaceFolder:
    """The folder of one workspace."""

    path: Path

    @cached_property
    def identity(self) -> Path:
        return self.path / "workspace.json"

    def read_identity(self) -> dict[str, str]:
        """The `id` and the `name` of the workspace."""
        found: dict[str, str] = json.loads(self.identity.read_text())
        return found

    @cached_property
    def database(self) -> Path:
        return self.path / "trainmaster.db"

    @cached_property
    def database_address(self) -> Path:
        """Where the database is, if it is on a server. Exists only then."""
        return self.path / "database.json"

    @cached_property
    def store_version(self) -> Path:
        """The version of a store that is a file, for other processes of this machine."""
        return self.path / "dispatcher.version"

    @property
    def lock(self) -> Path:
        """The lock of the dispatcher. If the database is on a server and has a lock itself: that of this machine."""
        return self.path / f"{self._name_dispatcher()}.lock"

    def list_locks(self) -> tuple[Path, Path]:
        """The locks of dispatchers of this machine: of one with a file, and of one with a database on a server."""
        return self.path / f"{_DISPATCHER}.lock", self.path / f"{_DISPATCHER}-{host_name()}.lock"

    def _name_dispatcher(self) -> str:
        # Not cached: a workspace can be moved to another database.
        if not os.path.lexists(self.database_address):
            return _DISPATCHER
        # Other machines may use the same folder. Their sockets are visible here, but nobody listens.
        return f"{_DISPATCHER}-{host_name()}"

    @cached_property
    def log(self) -> Path:
        return self.path / "dispatcher.log"

    @property
    def socket_name(self) -> Path:
        """The socket or, where this path is too long for one, a link that says where it is."""
        return self.path / f"{self._name_dispatcher()}.sock"

    @property
    def socket(self) -> Path:
        """Where the dispatcher listens. Looked up each time: the next dispatcher may choose another place."""
        if fits_socket(self.socket_name):
            return self.socket_name
        try:
            return Path(os.readlink(self.socket_name))
        except OSError:
            # No dispatcher has listened yet.
            return socket_folders()[-1] / self.name_short_socket()

    def name_short_socket(self) -> str:
        """The name of a socket outside of the workspace's folder."""
        key = self.path if self.socket_name.name == f"{_DISPATCHER}.sock" else self.socket_name
        return f"{socket_key(key)}.sock"

    @cached_property
    def served(self) -> Path:
        """What a workspace of a server knows about it; exists only if it is served."""
        return self.path / "served.json"

    @cached_property
    def vm_sizes(self) -> Path:
        return self.path / "vm-sizes.json"

    @cached_property
    def blobs(self) -> Path:
        return self.path / "blobs"

    @cached_property
    def snapshots(self) -> Path:
        return self.path / "snapshots"

    @cached_property
    def environments(self) -> Path:
        return self.path / "environments"

    @cached_property
    def runs(self) -> Path:
        return self.path / "runs"

    @cached_property
    def unread_runs(self) -> Path:
        """An empty file for each run with values of MLflow's clients that may not be in the store yet."""
        return self.path / "unread-runs"

    @cached_property
    def models(self) -> Path:
        return self.path / "models"

    @cached_property
    def logged_models(self) -> Path:
        """Files of models that MLflow's clients have logged."""
        return self.path / "logged-models"

    @cached_property
    def services(self) -> Path:
        return self.path / "services"

    @cached_property
    def images(self) -> Path:
        return self.path / "images"

    @cached_property
    def datastore(self) -> Path:
        return self.path / "datastore"

    @cached_property
    def file_datastore(self) -> Path:
        return self.path / "filestore"

    @cached_property
    def artifacts(self) -> Path:
        """What MLflow's clients upload outside of runs and logged models."""
        return self.path / "artifacts"

    def run(self, run_id: str) -> RunFolder:
        check_run_id(run_id)
        return RunFolder(self.runs / run_id)

    def find_logged_model(self, model_id: str) -> Path:
        """The files of a logged model; exists once there is one."""
        return self.logged_models / _plain(model_id, "the id of a logged model")

    def snapshot(self, snapshot_id: str) -> Path:
        """The manifest of a snapshot."""
        return self.snapshots / f"{_plain(snapshot_id, 'the id of a snapshot')}.json"

    def service(self, name: str) -> ServiceFolder:
        return ServiceFolder(self.services / _plain(name, "the name of a service"))

    def image(self, name: str, version: int) -> Path:
        return self.images / _plain(name, "the name of an image") / str(int(version))
