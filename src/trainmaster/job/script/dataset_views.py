"""Reading datasets: files and rows, in jobs and outside of them. The classes of both sides build on these."""

import os

from trainmaster.job.errors import UserErrorException
from trainmaster.job.script.dataset_files import find_files, find_single_path, place_of, select
from trainmaster.job.script.dataset_steps import Steps, TableSteps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence

    from trainmaster.job.script.dataset_files import DatasetFile, OpenPlace, Place, Source, Step
    from trainmaster.job.script.storage import Storage

    # A file, and the path where it is to be.
    Pair = tuple[DatasetFile, str]

_THREADS = 8


class View:
    """A dataset that can be read: subclasses have its definition, and open the storages of its files."""

    def _describe(self) -> "dict[str, Any]":
        """The definition as plain data."""
        raise NotImplementedError

    def _registration(self) -> "Any":
        """Name, version, description and tags in the workspace; None for a dataset without a name there."""
        raise NotImplementedError

    @property
    def id(self) -> "str | None":
        """The id by which the workspace knows it."""
        raise NotImplementedError

    @property
    def name(self) -> "str | None":
        """The name it is registered by; None for one that is not registered."""
        registration = self._registration()
        return registration.name or None if registration else None

    @property
    def version(self) -> "int | None":
        """The version of the name; None for one that is not registered."""
        registration = self._registration()
        return registration.version if registration else None

    @property
    def description(self) -> "str | None":
        """A text for people; None for one that is not registered."""
        registration = self._registration()
        return registration.description or None if registration else None

    @property
    def tags(self) -> "dict[str, str] | None":
        """The labels; None for one that is not registered."""
        registration = self._registration()
        return dict(registration.tags) if registration else None

    def __repr__(self) -> str:
        named = "name={!r}, version={!r}".format(self.name, self.version) if self.name else "id={!r}".format(self.id)
        return "{}({})".format(type(self).__name__, named)

    def _open_place(self, key: "Place") -> "Storage":
        raise NotImplementedError

    def _empty_error(self) -> UserErrorException:
        return UserErrorException(
            "the dataset has no files: there is nothing at {}".format(describe_sources(self._describe()["sources"])),
            hint="Upload them first, or correct the path.",
        )


class FileView(View, Steps):
    """A dataset of files."""

    def to_path(self) -> "list[str]":
        """The names of the files, each with a slash before it, as in v1."""
        return ["/" + file.name for file in self._find_files()]

    def download(
        self,
        target_path: "str | os.PathLike[str] | None" = None,
        overwrite: bool = False,
        ignore_not_found: bool = False,
    ) -> "list[str]":
        """Copies the files to a folder (None: a new temporary one); returns the paths of the copies."""
        files = self._find_files()
        if not files and not ignore_not_found:
            raise self._empty_error()
        if target_path is None:
            import tempfile

            target_path = tempfile.mkdtemp(prefix="dataset-")
        target = os.path.abspath(os.fspath(target_path))
        pairs = [(file, os.path.join(target, file.name)) for file in files]
        if not overwrite:
            existing = [path for _, path in pairs if os.path.lexists(path)]
            if existing:
                raise UserErrorException(
                    "{} already exists".format(existing[0]),
                    cause="{} of {} files would be overwritten.".format(len(existing), len(pairs)),
                    hint="Pass overwrite=True, or another target_path.",
                )
        copy_files(pairs)
        return [path for _, path in pairs]

    def mount(self, mount_point: "str | os.PathLike[str] | None" = None, **kwargs: "Any") -> "MountContext":
        """A context in which the files are visible below `mount_point` (None: a new temporary folder).

        Files of this machine are linked. Others are downloaded when it starts: nothing is streamed.
        """
        return MountContext(self, mount_point)

    def _find_files(self) -> "Sequence[DatasetFile]":
        definition = self._describe()
        return select(find_files(definition["sources"], self._open_place), definition["steps"])


class TableView(View, TableSteps):
    """A dataset of tables; its definition has a reader."""

    def to_pandas_dataframe(self, on_error: str = "null", out_of_range_datetime: str = "null") -> "Any":
        """All rows as a pandas DataFrame. pandas has to be installed; Parquet files need pyarrow as well."""
        from trainmaster.job.script.tables import read_frame

        definition = self._describe()
        with LocalCopies(find_files(definition["sources"], self._open_place)) as files:
            if not files:
                raise self._empty_error()
            return read_frame(files, definition["reader"], definition["steps"], on_error, out_of_range_datetime)

    def _steps(self) -> "Sequence[Step]":
        steps: "Sequence[Step]" = self._describe()["steps"]
        return steps


class LocalCopies:
    """Names and local paths of files during a `with` block: files from elsewhere are downloaded for it."""

    def __init__(self, files: "Sequence[DatasetFile]") -> None:
        self._files = files
        self._folder = ""

    def __enter__(self) -> "list[tuple[str, str]]":
        away = [file for file in self._files if file.storage.local_path() is None]
        if away:
            import tempfile

            self._folder = tempfile.mkdtemp(prefix="dataset-")
            try:
                copy_files([(file, self._copy_of(file)) for file in away])
            except BaseException:
                self.__exit__()
                raise
        return [(file.name, self._path_of(file)) for file in self._files]

    def __exit__(self, *error: object) -> None:
        if self._folder:
            import shutil

            shutil.rmtree(self._folder, ignore_errors=True)

    def _path_of(self, file: "DatasetFile") -> str:
        root = file.storage.local_path()
        return self._copy_of(file) if root is None else os.path.join(root, file.path)

    def _copy_of(self, file: "DatasetFile") -> str:
        return os.path.join(self._folder, file.name)


class MountContext:
    """The files of a dataset below a folder, from `start` (or `with`) to `stop`."""

    def __init__(self, view: "FileView", mount_point: "str | os.PathLike[str] | None" = None) -> None:
        self._view = view
        self._wanted = None if mount_point is None else os.path.abspath(os.fspath(mount_point))
        self._mounted: "str | None" = None
        self._existed = False
        self.mount_point = self._wanted

    def start(self) -> None:
        """Makes the files visible."""
        if self._mounted is not None:
            return
        files = self._view._find_files()
        if not files:
            raise self._view._empty_error()
        folder = self._make_folder()
        self.mount_point = self._mounted = folder
        try:
            show_files([(file, os.path.join(folder, file.name)) for file in files])
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Removes them again."""
        if self._mounted is None:
            return
        import shutil

        shutil.rmtree(self._mounted, ignore_errors=True)
        if self._existed:
            os.makedirs(self._mounted, exist_ok=True)
        self._mounted = None

    def __enter__(self) -> "MountContext":
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def _make_folder(self) -> str:
        self._existed = self._wanted is not None and os.path.isdir(self._wanted)
        if self._wanted is None:
            import tempfile

            return tempfile.mkdtemp(prefix="dataset-")
        if os.path.lexists(self._wanted) and (not os.path.isdir(self._wanted) or os.listdir(self._wanted)):
            raise UserErrorException(
                "{} cannot be a mount point: it is not an empty folder".format(self._wanted),
                hint="Give an empty folder, or a path that does not exist.",
            )
        os.makedirs(self._wanted, exist_ok=True)
        return self._wanted


def check_sources(sources: "Sequence[Source]", open_place: "OpenPlace") -> None:
    """Raises an error if a source has no files."""
    for source in sources:
        if not _has_files(source, open_place):
            raise UserErrorException(
                "there is nothing at {}".format(describe_sources([source])),
                hint="Upload the files first, or correct the path; validate=False creates the dataset anyway.",
            )


def _has_files(source: "Source", open_place: "OpenPlace") -> bool:
    path = find_single_path([source], [], {place_of(source): open_place(place_of(source)).local_path()})
    if path is None:
        return bool(find_files([source], open_place))
    # Does not list the files: there may be millions.
    return os.path.isfile(path) or (os.path.isdir(path) and bool(os.listdir(path)))


def show_files(pairs: "Sequence[Pair]") -> None:
    """Makes each file visible at its path: by a link if it is on this machine, else by a copy."""
    for folder in sorted({os.path.dirname(path) for _, path in pairs}):
        os.makedirs(folder, exist_ok=True)
    away: "list[Pair]" = []
    for file, path in pairs:
        root = file.storage.local_path()
        if root is None:
            # A file that exists is complete: copies appear whole.
            if not os.path.exists(path):
                away.append((file, path))
            continue
        target = os.path.join(root, file.path)
        try:
            os.symlink(target, path)
        except FileExistsError:
            # A link of ours, from before a kill, may stay.
            if not os.path.islink(path) or os.readlink(path) != target:
                raise
    copy_files(away)


def copy_files(pairs: "Sequence[Pair]") -> None:
    """Copies each file to its path; several at once if they come from elsewhere."""
    for folder in sorted({os.path.dirname(path) for _, path in pairs}):
        os.makedirs(folder, exist_ok=True)
    away = [pair for pair in pairs if pair[0].storage.local_path() is None]
    if len(away) < 2:
        for pair in pairs:
            _copy(pair)
        return
    from concurrent.futures import ThreadPoolExecutor

    for pair in pairs:
        if pair[0].storage.local_path() is not None:
            _copy(pair)
    with ThreadPoolExecutor(_THREADS) as pool:
        # `list` raises the first error; copies in progress are finished.
        list(pool.map(_copy, away))


def _copy(pair: "Pair") -> None:
    file, path = pair
    file.storage.get(file.path, path)


def describe_sources(sources: "Sequence[Source]") -> str:
    """The sources for a person to read; web addresses without what may be a key."""
    shown = []
    for source in sources[:3]:
        if source.get("store"):
            shown.append("{} of datastore {!r}".format(source["path"] or "/", source["store"]))
        else:
            shown.append(source["path"].partition("?")[0])
    return ", ".join(shown) + (", ..." if len(sources) > 3 else "")
