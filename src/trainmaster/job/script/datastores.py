"""Datastores inside a job: a folder that the job sees is used directly, any other storage through the dispatcher.

Where the full Trainmaster is installed in the job's environment, its class is used instead.
"""

import os
import sys

from trainmaster.job.errors import DatastoreException, RunEnvironmentException
from trainmaster.job.script.absent import Partly
from trainmaster.job.script.asking import ask, is_elsewhere
from trainmaster.job.script.data_reference import PathReference
from trainmaster.job.script.full import full_package
from trainmaster.job.script.identity import new_id
from trainmaster.job.script.registered_datastore import RegisteredDatastore, missing_datastore
from trainmaster.job.script.store_folder import FolderStorage
from trainmaster.job.script.store_paths import check_name
from trainmaster.job.script.store_transfer import download, files_by_prefix, upload

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from trainmaster.job.script.store_progress import Say
    from trainmaster.job.script.store_sources import Source, Sources

    PathText = str | os.PathLike[str]

_HINT = "'trainmaster up' starts the dispatcher."
# The dispatcher may have to copy terabytes before it answers.
_ANSWER_SECONDS = 7 * 86400.0


def datastore_class() -> "Any":
    """The class that `Datastore` means in this job."""
    return sys.modules["trainmaster.sdk.datastores"].Datastore if _has_full_package() else Datastore


def default_datastore(workspace: "Any") -> "Any":
    """The default datastore of the job's workspace."""
    return datastore_class()(_open_workspace(workspace))


def all_datastores(workspace: "Any") -> "Any":
    """All datastores of the job's workspace, by name; callable, because the collection was a method in 2018."""
    return _CallableDict(datastore_class().get_all(_open_workspace(workspace)))


def _open_workspace(workspace: "Any") -> "Any":
    return workspace.open_full() if _has_full_package() else workspace


def _has_full_package() -> bool:
    """Whether this machine has the full Trainmaster, and the workspace too."""
    if is_elsewhere():
        return False
    try:
        full_package("datastores")
    except RunEnvironmentException:
        return False
    # By its name, because the job side never depends on the SDK.
    __import__("trainmaster.sdk.datastores")
    return True


class _CallableDict(dict):  # type: ignore[type-arg]
    def __call__(self) -> "_CallableDict":
        return self


class Datastore(RegisteredDatastore, metaclass=Partly):
    """A named storage of the job's workspace.

    >>> store = run.experiment.workspace.get_default_datastore()  # doctest: +SKIP
    >>> store.upload("outputs", target_path="results", overwrite=True)  # doctest: +SKIP
    """

    __module__ = "azureml.core.datastore"

    def __init__(self, workspace: "Any", name: "str | None" = None, _facts: "dict[str, Any] | None" = None) -> None:
        self.workspace = workspace
        facts = _facts or _find_facts(workspace, name)
        self._facts = facts
        self.name = facts["name"]
        # The dispatcher sends it without a password.
        self.url = facts["url"]

    @staticmethod
    def get(workspace: "Any", datastore_name: str) -> "Datastore":
        """The datastore with this name."""
        return Datastore(workspace, check_name(datastore_name, "datastore"))

    @staticmethod
    def get_default(workspace: "Any") -> "Datastore":
        """The default datastore of the workspace."""
        return Datastore(workspace)

    @staticmethod
    def get_all(workspace: "Any") -> "dict[str, Datastore]":
        """All datastores of the workspace, by name."""
        return {facts["name"]: Datastore(workspace, _facts=facts) for facts in _ask_for_facts()}

    @property
    def datastore_type(self) -> str:
        """`AzureBlob` for the workspace's own store, as in v1; else `Folder`, `S3`, ... or the protocol."""
        return str(self._facts["datastore_type"])

    @property
    def account_name(self) -> str:
        """The storage account; `local` for a folder."""
        return str(self._facts["account_name"])

    @property
    def container_name(self) -> str:
        """The bucket or container; for a folder, its name."""
        return str(self._facts["container_name"])

    def _make_reference(self, name: "str | None", path: "PathText | None") -> "DataReference":
        return DataReference(self, name, path)

    def _own_folder(self) -> "str | None":
        folder: "str | None" = self._facts["folder"]
        return folder

    def _send(self, sources: "Sources", target: str, overwrite: bool, say: "Say") -> None:
        folder = self.visible_folder()
        if folder is not None and _is_writable(folder):
            upload(FolderStorage(folder), sources, target, overwrite, say, self._full_name())
            return
        for line in sources.left_out:
            say(line)
        with _StorageRequest() as request:
            request.add(sources.files)
            say(request.send("datastores.send", store=self.name, target=target, overwrite=overwrite))

    def _fetch(self, prefix: str, target: str, overwrite: bool, say: "Say") -> int:
        folder = self.visible_folder()
        if folder is not None:
            return self._copy_out(folder, prefix, target, overwrite, say)
        with _StorageRequest() as request:
            fetched = request.send("datastores.fetch", store=self.name, prefix=prefix)
            return self._copy_out(fetched, prefix, target, overwrite, say)

    def _copy_out(self, folder: str, prefix: str, target: str, overwrite: bool, say: "Say") -> int:
        storage = FolderStorage(folder)
        files = [(file, os.path.join(target, file.path)) for file in files_by_prefix(storage, prefix)]
        return download(storage, files, overwrite, say, self._full_name())

    def _full_name(self) -> str:
        return "datastore {!r}".format(self.name)

    def visible_folder(self) -> "str | None":
        """The folder that it is, if this job sees it; else None."""
        folder = self._own_folder()
        if folder is None or not (is_elsewhere() or os.environ.get("TRAINMASTER_CONTAINER")):
            return folder
        try:
            # Another machine may have another folder of this name.
            return folder if os.stat(folder).st_ino == self._facts["inode"] else None
        except OSError:
            return None

    def refusal(self) -> DatastoreException:
        """The error for what cannot be done with it in this job."""
        return DatastoreException(
            "datastore {!r} cannot be used inside this job".format(self.name),
            cause="It is {}, which this machine does not see.".format(self.url),
            hint="Give it to the run when you submit it: store.path('...').as_download() for what it "
            "reads, as_upload() for what it writes.",
        )

    def __getattr__(self, name: str) -> "Any":
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError(
            "inside a job a datastore has no {!r}: use it outside of the job, or install Trainmaster itself in "
            "the job's environment".format(name)
        )

    def __repr__(self) -> str:
        return "Datastore(name={!r}, url={!r})".format(self.name, self.url)


class DataReference(PathReference):
    """A file or folder of a datastore, as v1 names it for a run."""


class _StorageRequest:
    """Files in the run's folder, on their way between the script and a storage that only the dispatcher reaches."""

    def __init__(self) -> None:
        run = os.environ["TRAINMASTER_RUN_FOLDER"]
        self._name = os.path.join("errands", new_id(), "files")
        self._files = os.path.join(run, self._name)
        self._folder = os.path.dirname(self._files)

    def __enter__(self) -> "_StorageRequest":
        os.makedirs(self._files)
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        import shutil

        shutil.rmtree(self._folder, ignore_errors=True)

    def add(self, files: "tuple[Source, ...]") -> None:
        """Puts files there, by their paths."""
        from trainmaster.job.script.requests import place

        for source in files:
            place(source.local, os.path.join(self._files, source.path))

    def send(self, op: str, **args: "Any") -> str:
        """Has the dispatcher copy them; returns its answer."""
        args = dict(args, run_id=os.environ["TRAINMASTER_RUN_ID"], files=self._name)
        return str(ask(op, args, "datastores", _HINT, _ANSWER_SECONDS))


def _is_writable(folder: str) -> bool:
    """Whether files can be created in `folder`: containers see datastores, and cannot write there."""
    while not os.path.isdir(folder) and os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
    return os.access(folder, os.W_OK)


def _ask_for_facts() -> "list[dict[str, Any]]":
    """What the dispatcher tells jobs about the workspace's datastores: never their keys."""
    found: "list[dict[str, Any]]" = ask("datastores.describe", {}, "datastores", _HINT)
    return found


def _find_facts(workspace: "Any", name: "str | None") -> "dict[str, Any]":
    found = _ask_for_facts()
    for facts in found:
        if facts["is_default"] if name is None else facts["name"] == name:
            return facts
    raise missing_datastore(getattr(workspace, "name", ""), name, [facts["name"] for facts in found])
