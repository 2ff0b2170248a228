"""Datastores inside a job: a folder that is seen from here is used directly, any other storage through the dispatcher.

Where the full Trainmaster is installed in the job's environment, its datastores are had instead.
"""

import os
import sys

from trainmaster.job.errors import DatastoreException, RunEnvironmentException, UserErrorException
from trainmaster.job.script import store_folder
from trainmaster.job.script.absent import Partly
from trainmaster.job.script.asking import ask, is_elsewhere
from trainmaster.job.script.full import full_package
from trainmaster.job.script.identity import new_id

_HINT = "'trainmaster up' starts the dispatcher."
# A dispatcher may have to copy terabytes before it answers.
_ANSWER_SECONDS = 7 * 86400.0


def datastore_class():
    """What `Datastore` means in this job."""
    return sys.modules["trainmaster.sdk.datastores"].Datastore if _is_full() else Datastore


def default_of(workspace):
    """The default datastore of the job's workspace."""
    return datastore_class()(_opened(workspace))


def all_of(workspace):
    """All datastores of the job's workspace, by name; callable, as the collection was a method in 2018."""
    return _Named(datastore_class().get_all(_opened(workspace)))


def _opened(workspace):
    if not _is_full():
        return workspace
    from trainmaster.job.script.surroundings import full_workspace

    return full_workspace()


def _is_full():
    """Whether the full Trainmaster is here, and the workspace too."""
    if is_elsewhere():
        return False
    try:
        full_package("datastores")
    except RunEnvironmentException:
        return False
    # By its name, because this side of Trainmaster never depends on that one.
    __import__("trainmaster.sdk.datastores")
    return True


class _Named(dict):  # type: ignore[type-arg]
    def __call__(self):
        return self


class Datastore(metaclass=Partly):
    """A named storage of the job's workspace.

    >>> store = run.experiment.workspace.get_default_datastore()  # doctest: +SKIP
    >>> store.upload("outputs", target_path="results", overwrite=True)  # doctest: +SKIP
    """

    __module__ = "azureml.core.datastore"

    def __init__(self, workspace, name=None, _facts=None):
        self.workspace = workspace
        self._facts = _facts or _found(_described(), name)

    @staticmethod
    def get(workspace, datastore_name):
        """The datastore with this name."""
        if not isinstance(datastore_name, str) or not datastore_name:
            raise UserErrorException("{!r} cannot be the name of a datastore".format(datastore_name))
        return Datastore(workspace, datastore_name)

    @staticmethod
    def get_default(workspace):
        """The default datastore of the workspace."""
        return Datastore(workspace)

    @staticmethod
    def get_all(workspace):
        """All datastores of the workspace, by name."""
        return {facts["name"]: Datastore(workspace, _facts=facts) for facts in _described()}

    @property
    def name(self):
        """Its name."""
        return self._facts["name"]

    @property
    def url(self):
        """Its address, without a password."""
        return self._facts["url"]

    @property
    def datastore_type(self):
        """`AzureBlob` for the workspace's own store, as in v1; else `Folder`, `S3`, ... or the protocol."""
        return self._facts["datastore_type"]

    @property
    def account_name(self):
        """The storage account; `local` for a folder."""
        return self._facts["account_name"]

    @property
    def container_name(self):
        """The bucket or container; of a folder, its name."""
        return self._facts["container_name"]

    def upload(self, src_dir, target_path=None, overwrite=False, show_progress=True):
        """Copies the files of a folder to `target_path`; files that are there stay, unless `overwrite`."""
        # Uploading '.' must not take the store itself along, which may lie in there.
        files, left_out = store_folder.files_in(src_dir, self._facts["folder"])
        if show_progress:
            for line in left_out:
                store_folder.say(line)
        return self._upload(files, target_path, overwrite, show_progress)

    def upload_files(self, files, relative_root=None, target_path=None, overwrite=False, show_progress=True):
        """Copies the listed files to `target_path`, by their paths from `relative_root` or common folder."""
        return self._upload(store_folder.files_of(files, relative_root), target_path, overwrite, show_progress)

    def download(self, target_path, prefix=None, overwrite=False, show_progress=True):
        """Copies the files below `prefix` into the folder `target_path`, by their full paths; how many."""
        target, prefix = os.fspath(target_path), store_folder.store_path(prefix)
        if os.path.exists(target) and not os.path.isdir(target):
            raise UserErrorException("The target of a download, {}, is not a folder".format(target))
        folder = self.seen_folder()
        if folder is not None:
            return store_folder.get(folder, prefix, target, overwrite, show_progress, self.name)
        with _Errand() as errand:
            found = errand.go("datastores.fetch", store=self.name, prefix=prefix)
            return store_folder.get(found, prefix, target, overwrite, show_progress, self.name)

    def _upload(self, files, target_path, overwrite, show_progress):
        reference = self.path(target_path)
        target = reference.path_on_datastore
        folder = self.seen_folder()
        if folder is not None and _is_written(folder):
            store_folder.put(files, os.path.join(folder, target), target, overwrite, show_progress, self.name)
            return reference
        with _Errand() as errand:
            errand.take(files)
            said = errand.go("datastores.send", store=self.name, target=target, overwrite=bool(overwrite))
            if show_progress:
                store_folder.say(said)
        return reference

    def path(self, path=None, data_reference_name=None):
        """A reference to a file or folder of the datastore; none means all of it."""
        return DataReference(self, data_reference_name, path)

    def as_mount(self):
        """A reference to the whole datastore, seen where it lies."""
        return self.path().as_mount()

    def as_download(self, path_on_compute=None):
        """A reference to the whole datastore, copied to the node before a script starts."""
        return self.path().as_download(path_on_compute)

    def as_upload(self, path_on_compute=None):
        """A reference to the root of the datastore, filled with what a script wrote."""
        return self.path().as_upload(path_on_compute)

    def seen_folder(self):
        """The folder that it is, if this job sees it; else None."""
        folder = self._facts["folder"]
        if folder is None or not (is_elsewhere() or os.environ.get("TRAINMASTER_CONTAINER")):
            return folder
        try:
            # Another machine may have another folder of this name.
            return folder if os.stat(folder).st_ino == self._facts["inode"] else None
        except OSError:
            return None

    def unseen(self):
        """The error for what cannot be done with it in this job."""
        return DatastoreException(
            "datastore {!r} cannot be used inside this job".format(self.name),
            cause="It is {}, and is not seen from here.".format(self.url),
            hint="Give it to the run when that is submitted: store.path('...').as_download() for what it "
            "reads, as_upload() for what it writes.",
        )

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError(
            "inside a job a datastore has no {!r}: use it outside of the job, or with Trainmaster itself installed in "
            "the job's environment".format(name)
        )

    def __repr__(self):
        return "Datastore(name={!r}, url={!r})".format(self.name, self.url)


class DataReference:
    """A file or folder of a datastore, as v1 names it for a run."""

    def __init__(
        self,
        datastore,
        data_reference_name=None,
        path_on_datastore=None,
        mode="mount",
        path_on_compute=None,
        overwrite=False,
    ):
        if mode not in ("mount", "download", "upload"):
            raise UserErrorException("{!r} is no mode of a data reference".format(mode), hint="mount, download, upload")
        self.datastore = datastore
        self.path_on_datastore = store_folder.store_path(path_on_datastore)
        self.mode = mode
        self.path_on_compute = path_on_compute
        self.overwrite = bool(overwrite)
        # A sub path gets a fresh name, so that two paths of one store can be in the same run.
        self.data_reference_name = data_reference_name or (new_name() if self.path_on_datastore else datastore.name)

    def path(self, path=None, data_reference_name=None):
        """The reference to `path` below this one, reached in the same way."""
        inner = "/".join(part for part in (self.path_on_datastore, store_folder.store_path(path)) if part)
        return DataReference(
            self.datastore, data_reference_name, inner, self.mode, self.path_on_compute, self.overwrite
        )

    def as_mount(self):
        """The same reference, seen where it lies."""
        return self._in_mode("mount", None, False)

    def as_download(self, path_on_compute=None, overwrite=False):
        """The same reference, copied to the node before a script starts."""
        return self._in_mode("download", path_on_compute, overwrite)

    def as_upload(self, path_on_compute=None, overwrite=False):
        """The same reference, filled after a script ended with what it wrote at `path_on_compute`."""
        return self._in_mode("upload", path_on_compute, overwrite)

    def _in_mode(self, mode, path_on_compute, overwrite):
        return DataReference(
            self.datastore,
            self.data_reference_name,
            self.path_on_datastore,
            mode,
            path_on_compute or self.path_on_compute,
            overwrite or self.overwrite,
        )

    def __str__(self):
        return "$AZUREML_DATAREFERENCE_" + self.data_reference_name

    __repr__ = __str__


class _Errand:
    """Files on their way between the script and a storage that only the dispatcher reaches: in the run's folder."""

    def __init__(self):
        run = os.environ["TRAINMASTER_RUN_FOLDER"]
        self._name = os.path.join("errands", new_id(), "files")
        self._files = os.path.join(run, self._name)
        self._folder = os.path.dirname(self._files)

    def __enter__(self):
        os.makedirs(self._files)
        return self

    def __exit__(self, kind, error, trace):
        import shutil

        shutil.rmtree(self._folder, ignore_errors=True)

    def take(self, files):
        """Lays files there, by their paths."""
        from trainmaster.job.script.requests import place

        for source, path in files:
            place(source, os.path.join(self._files, path))

    def go(self, op, **args):
        """Has the dispatcher do it; what that answers."""
        args = dict(args, run_id=os.environ["TRAINMASTER_RUN_ID"], files=self._name)
        return ask(op, args, "datastores", _HINT, _ANSWER_SECONDS)


def new_name():
    """A name that no other reference has."""
    return os.urandom(16).hex()


def _is_written(folder):
    """Whether files can be made at `folder`: containers see datastores, and cannot write there."""
    while not os.path.isdir(folder) and os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
    return os.access(folder, os.W_OK)


def _described():
    """What the dispatcher tells jobs of the workspace's datastores: never their keys."""
    return ask("datastores.describe", {}, "datastores", _HINT)


def _found(described, name):
    for facts in described:
        if facts["is_default"] if name is None else facts["name"] == name:
            return facts
    raise UserErrorException(
        "the workspace has no datastore {!r}".format(name) if name else "the workspace has no default datastore",
        hint="It has: {}.".format(", ".join(sorted(facts["name"] for facts in described)) or "none"),
    )
