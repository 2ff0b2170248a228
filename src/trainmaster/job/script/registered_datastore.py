"""RegisteredDatastore: a named storage of a workspace, in jobs and outside of them.

Standard library only. `job/script/datastores.py` has the class for scripts in jobs, `sdk/datastores/datastore.py` the
one for programs; both only say how the workspace is asked and how files are reached.
"""

import os

from trainmaster.job.errors import UserErrorException
from trainmaster.job.script.store_paths import printable, store_path
from trainmaster.job.script.store_progress import say_aloud, say_nothing
from trainmaster.job.script.store_sources import sources_in, sources_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, Sequence

    from trainmaster.job.script.store_progress import Say
    from trainmaster.job.script.store_sources import Sources

    PathText = str | os.PathLike[str]
    # That of jobs, or the SDK's, which has more methods.
    DataReference = Any


class RegisteredDatastore:
    """A named storage of a workspace."""

    workspace: "Any"
    name: str
    url: str

    # How its files are reached

    def _make_reference(self, name: "str | None", path: "PathText | None") -> "DataReference":
        raise NotImplementedError

    def _own_folder(self) -> "PathText | None":
        """The folder that it is; None for a storage that is not a folder."""
        raise NotImplementedError

    def _send(self, sources: "Sources", target: str, overwrite: bool, say: "Say") -> None:
        """Copies `sources` below `target`."""
        raise NotImplementedError

    def _fetch(self, prefix: str, target: str, overwrite: bool, say: "Say") -> int:
        """Copies the files below `prefix` into the folder `target`; returns how many."""
        raise NotImplementedError

    # Copying

    def upload(
        self,
        src_dir: "PathText",
        target_path: "PathText | None" = None,
        overwrite: bool = False,
        show_progress: bool = True,
    ) -> "DataReference":
        """Copies the files of a folder to `target_path`; existing files stay, unless `overwrite`."""
        # Uploading '.' must not take the datastore along, which may be in there.
        sources = sources_in(src_dir, except_for=self._own_folder())
        return self._upload(sources, target_path, overwrite, show_progress)

    def upload_files(
        self,
        files: "Sequence[PathText]",
        relative_root: "PathText | None" = None,
        target_path: "PathText | None" = None,
        overwrite: bool = False,
        show_progress: bool = True,
    ) -> "DataReference":
        """Copies the listed files to `target_path`, by their paths from `relative_root` or their common folder."""
        return self._upload(sources_of(files, relative_root), target_path, overwrite, show_progress)

    def _upload(
        self, sources: "Sources", target_path: "PathText | None", overwrite: bool, show_progress: bool
    ) -> "DataReference":
        reference = self.path(target_path)
        self._send(sources, reference.path_on_datastore, bool(overwrite), _choose_say(show_progress))
        return reference

    def download(
        self,
        target_path: "PathText",
        prefix: "PathText | None" = None,
        overwrite: bool = False,
        show_progress: bool = True,
    ) -> int:
        """Copies the files below `prefix` into the folder `target_path`, by their full paths; returns how many."""
        target = os.fspath(target_path)
        if os.path.exists(target) and not os.path.isdir(target):
            raise UserErrorException("The target of a download, {}, is not a folder".format(printable(target)))
        return self._fetch(store_path(prefix), target, bool(overwrite), _choose_say(show_progress))

    # References

    def path(self, path: "PathText | None" = None, data_reference_name: "str | None" = None) -> "DataReference":
        """A reference to a file or folder of the datastore; None means all of it."""
        return self._make_reference(data_reference_name, path)

    def as_mount(self) -> "DataReference":
        """A reference to the whole datastore; the script sees the files where they are."""
        return self.path().as_mount()

    def as_download(self, path_on_compute: "PathText | None" = None) -> "DataReference":
        """A reference to the whole datastore; the files are copied to the node before the script starts."""
        return self.path().as_download(path_on_compute)

    def as_upload(self, path_on_compute: "PathText | None" = None) -> "DataReference":
        """A reference to the root of the datastore; what the script wrote is copied to it."""
        return self.path().as_upload(path_on_compute)


def missing_datastore(workspace: str, name: "str | None", known: "Iterable[str]") -> UserErrorException:
    """The error for a datastore that the workspace does not have; `name` is None for the default one."""
    names = ", ".join(sorted(known))
    return UserErrorException(
        "Workspace {!r} has no {}".format(workspace, "datastore {!r}".format(name) if name else "default datastore"),
        hint="It has: {}.".format(names) if names else "Register one with Datastore.register.",
    )


def _choose_say(show_progress: bool) -> "Say":
    return say_aloud if show_progress else say_nothing
