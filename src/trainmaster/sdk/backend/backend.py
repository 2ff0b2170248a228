"""The interface between a program and its workspace, which is a folder of this machine or on a server.

A `Backend` is chosen once per `Workspace` (`opening.py`). It has three parts: the connection to the dispatcher, the
files of runs, and the store of contents. Nothing outside of this package knows which backend it uses.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, Protocol, Self, TypedDict

if TYPE_CHECKING:
    from trainmaster.job.script.storage import Storage, StoredFile
    from trainmaster.shared.attempts import FailedAttempt
    from trainmaster.shared.folders import WorkspaceFolder
    from trainmaster.shared.job_spec import JobSpec
    from trainmaster.shared.machine import Machine
    from trainmaster.shared.records import DatastoreRecord
    from trainmaster.snapshots import Snapshot
    from trainmaster.snapshots.model_contents import Kept, Manifest

LOGS = "logs"
"""What the system and the script print, as a kind of files to follow."""
JOURNALS = "journals"
"""What is logged with `run.log`, as a kind of files to follow."""

_DRIVER_LOG = re.compile(r"70_driver_log(?:_(\d+))?\.txt")


class RunNews(TypedDict):
    """The state of a run."""

    run_id: str
    status: str
    ended: bool


@dataclass(frozen=True)
class LogFile:
    """A log of a run.

    >>> log = LogFile("attempt_1/70_driver_log_2.txt", "77", 10)
    >>> log.rank, log.attempt, log.last_name
    (2, 1, '70_driver_log_2.txt')
    """

    name: str
    """Within the folder `azureml-logs`. It changes when a failed attempt is followed by another."""
    identity: str
    """Stays when the log gets another name. A log with another identity is not a continuation."""
    size: int

    @property
    def last_name(self) -> str:
        """The name without the folder of its attempt."""
        return self.name.rpartition("/")[2]

    @property
    def rank(self) -> int | None:
        """The process that writes it; None for a log of the system."""
        match = _DRIVER_LOG.fullmatch(self.last_name)
        return int(match[1] or 0) if match else None

    @property
    def attempt(self) -> int | None:
        """The number of the failed attempt it belongs to; None for the current attempt."""
        number = self.name.rpartition("/")[0].removeprefix("attempt_")
        return int(number) if number.isdecimal() else None

    @property
    def place(self) -> tuple[str, float]:
        """The key that sorts logs by name. Of logs with the same name, those of earlier attempts come first."""
        return self.last_name, float("inf") if self.attempt is None else self.attempt


class LogPart(NamedTuple):
    """A part of a log, with secrets hidden."""

    data: bytes
    next_offset: int
    """Where the next part begins."""


class RunWatch(Protocol):
    """The states of one run, from now to its end."""

    def __iter__(self) -> Iterator[RunNews]: ...

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...


class Connection(Protocol):
    """Calls the dispatcher of one workspace; safe to share between threads and across a fork."""

    def call(self, op: str, **args: Any) -> Any:
        """The result of operation `op`. An error of the operation is raised."""

    def watch(self, run_id: str) -> RunWatch:
        """The states of one run, from now to its end."""

    def close(self) -> None:
        """Closes the connection; the next call opens another."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...


class RunJournal(Protocol):
    """What a program logs to a run. When a method has returned, the record is kept."""

    def append(self, record: Mapping[str, Any]) -> None: ...

    def write(self, line: bytes) -> None: ...

    def close(self) -> None: ...


class Mirror(Protocol):
    """A folder of this machine with the files of a run, as they are now."""

    @property
    def is_live(self) -> bool:
        """Whether new files appear without `update`."""

    def update(self) -> None:
        """Fetches what is new."""

    def close(self) -> None:
        """Removes the folder. The files stay with the run."""


class RunFiles(Protocol):
    """The files of one run. In logs (names with `azureml-logs/`), secrets are hidden."""

    @property
    def run_id(self) -> str:
        """The run they belong to."""

    # Listing

    def names(self) -> list[str]:
        """The names of all files, sorted."""

    def list_left_names(self) -> list[str]:
        """Files that the script left outside of outputs/ and logs/, sorted: `code/<path in the working folder>`."""

    def has(self, name: str) -> bool:
        """Whether there is a file `name`, which may begin with `code/`."""

    def sizes(self, names: Sequence[str]) -> list[tuple[str, int]]:
        """Name and size of each of these files that still exists."""

    # Reading

    def read(self, name: str, start: int = 0, size: int | None = None) -> bytes:
        """The contents of a file, or a part of it. If there is no such file, the error says what there is instead."""

    def copy(self, name: str, target: Path) -> None:
        """Copies one file to the path `target`, whose folder is created."""

    def logs(self) -> list[LogFile]:
        """All logs by name; of logs with the same name, those of earlier attempts come first."""

    def read_log(self, name: str, identity: str, start: int) -> LogPart:
        """Reads a log from an offset on, a limited amount at a time. Nothing if `name` is not this log any more."""

    def mirror(self, name: str, target: Path) -> Mirror:
        """Shows the folder `name` among the files of the run as the folder `target`, which does not exist yet."""

    # Adding

    def add(self, name: str, source: Any) -> str:
        """Keeps the file at the path `source`, or the contents of a stream, as `name`; returns its plain form.

        Adding the same contents again is allowed; other contents under an existing name are an error.
        """

    def add_beside(self, name: str, source: Any) -> str:
        """Like `add`, but uses the next free name (`plot_1.png`) if the name exists; returns that name."""

    def flush(self, names: Iterable[str]) -> None:
        """Returns when these files are on the disk, so that they survive a power cut."""

    def flush_all(self) -> None:
        """Like `flush`, for all files."""

    def open_text(self, name: str) -> IO[str]:
        """A text file of the run, to which is appended."""

    def open_journal(self, writer: str) -> RunJournal:
        """The journal of one writer."""

    # What is known about the run by its files

    def read_failed_attempts(self) -> list[FailedAttempt]:
        """The attempts before the current one, oldest first."""

    def read_environment_lock(self) -> str | None:
        """The packages of the run's environment; None if it was not built."""

    def address(self, name: str = "") -> str:
        """The address of a file for people; without a name that of the run."""

    @property
    def location(self) -> str:
        """Where the files are, for people: a path, or an address."""


class PackageFiles(Protocol):
    """The files of a package (`Model.package`)."""

    def list_all(self) -> list[tuple[StoredFile, bool]]:
        """All files, and whether each is executable."""

    def get(self, path: str, local: Path) -> None:
        """Copies the file at `path` to `local`."""

    def local_path(self) -> str | None:
        """Their folder, if it is on this machine."""


class ContentStore(Protocol):
    """Contents by their digests: snapshots, models and wheels. What exists is not stored again."""

    def take_snapshot(self, source: Path) -> Snapshot:
        """Takes a snapshot of a folder."""

    def write_archive(self, snapshot_id: str, destination: Path) -> Path:
        """Writes a snapshot as a zip and returns the zip's path."""

    def keep_wheel(self, wheel: Path, exist_ok: bool) -> str:
        """Keeps a wheel and returns its address, with which the dispatcher finds it."""

    def keep_model(self, entry: str, files: Mapping[str, Path]) -> Kept:
        """Keeps files of this machine as one model: `files` has the path in the model, and where the file is."""

    def read_model_list(self, digest: str) -> Manifest:
        """The list of a model's files."""

    def model_list_path(self, digest: str) -> Path:
        """The path of that list on this machine, as JSON."""

    def copy_model(self, digest: str, target: Path) -> None:
        """Copies all files of a model into the folder `target`."""

    def materialise_model(self, name: str, version: int, digest: str) -> Path:
        """A folder of this machine with nothing but the entry of a model; its files are read-only."""

    def check_model(self, name: str, version: int, digest: str) -> None:
        """Reads all files of a model where they are stored. WebserviceException if one is not what was registered."""


class Backend(Protocol):
    """One workspace."""

    @property
    def connection(self) -> Connection:
        """The connection to its dispatcher."""

    @property
    def contents(self) -> ContentStore:
        """Its snapshots, models and wheels."""

    @property
    def folder(self) -> WorkspaceFolder:
        """Its folder. An error for a workspace on a server."""

    @property
    def address(self) -> str:
        """Its address for people."""

    def find_page(self, path: str) -> str:
        """The address of a page of the studio about this workspace, such as `runs/<id>`; empty if no studio runs."""

    def open_connection(self) -> Connection:
        """Another connection, for calls that take long: it does not delay other threads. Close it."""

    @property
    def location(self) -> str:
        """Where it is, for people: a path, or an address."""

    def run_files(self, run_id: str) -> RunFiles:
        """The files of a run."""

    def open_storage(self, store: DatastoreRecord) -> Storage:
        """The files of a datastore, which can be listed and copied."""

    def open_package(self, name: str) -> PackageFiles:
        """The files of a package."""

    def check_job(self, spec: JobSpec) -> None:
        """Refuses a job that cannot run there, with the reason."""

    def post_to_service(self, name: str, address: str, body: bytes, key: str) -> tuple[int, bytes]:
        """Sends a request to the service `name`, which has this address; returns status and body of the answer."""

    def host_name(self, host: str) -> str:
        """The name under which this program reaches a service that listens on the address `host`."""

    def pythons(self) -> AbstractContextManager[None]:
        """Within it, Pythons for environments are chosen among those of the dispatcher's machine."""

    def owner(self) -> dict[str, str]:
        """The properties of a run that this program logs to: how the dispatcher notices that the program ended."""

    def is_logged_here(self, run_id: str, properties: Mapping[str, str]) -> bool:
        """Whether this program itself created the run, which has these properties, and logs to it."""

    def machine(self) -> Machine:
        """The machine of the dispatcher: its CPUs and GPUs, and the VM sizes it knows."""

    def follow_run(
        self, run_id: str, kinds: Sequence[str] = (LOGS,), *, hold: float = 0.0, every: float | None = None
    ) -> Iterator[RunNews | None]:
        """Yields each new state of a run, and None when files of these kinds may have grown: the first time at once.

        Growing files are reported at most once in `hold` seconds, states at once. With `every`, None is yielded at
        least that often. The last that is yielded is the state in which the run has ended.
        """

    def identity(self) -> dict[str, Any]:
        """The name, the id and what else is known about the workspace."""

    def as_config(self) -> dict[str, str]:
        """What a config file says to find this workspace again, besides its name."""

    def mlflow_address(self) -> str:
        """The address for MLflow outside of jobs."""

    def change_identity(self, changes: dict[str, Any]) -> dict[str, Any]:
        """Changes what is known about the workspace, and returns all of it."""

    def remove(self, keep_data: bool) -> None:
        """Removes the workspace. Refused while runs are active."""
