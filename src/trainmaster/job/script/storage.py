"""Storage: what every place that keeps files by path can do."""

from collections import namedtuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    import builtins
    import os

    PathText = str | os.PathLike[str]


class StoredFile(namedtuple("StoredFile", ("path", "size"))):
    """A file of a storage: its path from the root, and its size in bytes."""

    __slots__ = ()


class Storage:
    """Keeps files by path. Its methods raise DatastoreException for what goes wrong there."""

    has_listings = True
    """Whether `list` knows which files are below a folder."""

    def list(self, prefix: str) -> "builtins.list[StoredFile]":
        """The files at and below `prefix`, sorted; the path of a file gives that file, a missing one nothing."""
        raise NotImplementedError

    def exists(self, path: str) -> bool:
        """Whether there is a file (not a folder) at `path`."""
        raise NotImplementedError

    def get(self, path: str, local: "PathText") -> None:
        """Copies the file at `path` to `local`, which is either complete or absent."""
        raise NotImplementedError

    def put(self, local: "PathText", path: str) -> None:
        """Copies the file `local` to `path`, and overwrites one that is there."""
        raise NotImplementedError

    def local_path(self) -> "str | None":
        """The folder of a storage on this machine's disk; None for any other."""
        return None
