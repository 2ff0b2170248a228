"""PathReference: a path of a datastore, and how a run reaches it, in jobs and outside of them."""

import os

from trainmaster.job.errors import UserErrorException
from trainmaster.job.script.store_paths import check_name, compute_path, join, store_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal, TypeVar

    PathText = str | os.PathLike[str]
    DataMode = Literal["mount", "download", "upload"]
    # The subclass whose method is called.
    DataReference = TypeVar("DataReference", bound="PathReference")

_MODES = ("mount", "download", "upload")


class PathReference:
    """A file or folder of a datastore, to be mounted, downloaded or uploaded by a run."""

    def __init__(
        self,
        datastore: "Any",
        data_reference_name: "str | None" = None,
        path_on_datastore: "PathText | None" = None,
        mode: str = "mount",
        path_on_compute: "PathText | None" = None,
        overwrite: bool = False,
    ) -> None:
        if not hasattr(datastore, "as_mount"):
            raise UserErrorException("A data reference needs a datastore, not {}".format(type(datastore).__name__))
        self.datastore = datastore
        self.path_on_datastore = store_path(path_on_datastore)
        self.mode: "DataMode" = check_mode(mode)
        self.path_on_compute = compute_path(path_on_compute) or None
        self.overwrite = bool(overwrite)
        # A path below the root gets a new name, so that two paths of one datastore can be in the same run.
        default = os.urandom(16).hex() if self.path_on_datastore else datastore.name
        self.data_reference_name = check_name(data_reference_name or default, "data reference")

    def path(
        self: "DataReference", path: "PathText | None" = None, data_reference_name: "str | None" = None
    ) -> "DataReference":
        """A reference to `path` below this one, reached in the same way."""
        return type(self)(
            self.datastore,
            data_reference_name,
            join(self.path_on_datastore, store_path(path)),
            self.mode,
            self.path_on_compute,
            self.overwrite,
        )

    def as_mount(self: "DataReference") -> "DataReference":
        """The same reference; the script sees the files where they are."""
        return self._with_mode("mount", None, False)

    def as_download(
        self: "DataReference", path_on_compute: "PathText | None" = None, overwrite: bool = False
    ) -> "DataReference":
        """The same reference; the files are copied to the node before the script starts."""
        return self._with_mode("download", path_on_compute, overwrite)

    def as_upload(
        self: "DataReference", path_on_compute: "PathText | None" = None, overwrite: bool = False
    ) -> "DataReference":
        """The same reference; what the script wrote at `path_on_compute` is copied to it after the script ended."""
        return self._with_mode("upload", path_on_compute, overwrite)

    def _with_mode(
        self: "DataReference", mode: str, path_on_compute: "PathText | None", overwrite: bool
    ) -> "DataReference":
        return type(self)(
            self.datastore,
            self.data_reference_name,
            self.path_on_datastore,
            mode,
            path_on_compute or self.path_on_compute,
            overwrite or self.overwrite,
        )

    def __str__(self) -> str:
        return "$AZUREML_DATAREFERENCE_" + self.data_reference_name

    # Notebooks print argument lists, where people look for the text the script gets.
    __repr__ = __str__


def check_mode(mode: object) -> "DataMode":
    """`mode` if it is one of mount, download and upload."""
    if mode not in _MODES:
        raise UserErrorException("Unknown data mode {!r}".format(mode), hint="Use one of {}.".format(", ".join(_MODES)))
    found: "DataMode" = mode  # type: ignore[assignment]
    return found
