"""What a dataset gives out: files and rows, here and in jobs. The classes of both sides build on these."""

import os

from trainmaster.job.errors import UserErrorException
from trainmaster.job.script.dataset_files import find_files, place_of, selected, whole_place
from trainmaster.job.script.dataset_steps import Steps, TableSteps

_THREADS = 8


class FileView(Steps):
    """A dataset of files: `_describe` gives its definition, `_open_place` opens the storages it lies in."""

    def to_path(self):
        """The names of the files, each with a slash before it, as in v1."""
        return ["/" + file.name for file in self._found()]

    def download(self, target_path=None, overwrite=False, ignore_not_found=False):
        """Copies the files to a folder (none: a new temporary one); the paths they have there."""
        files = self._found()
        if not files and not ignore_not_found:
            raise self._nothing()
        if target_path is None:
            import tempfile

            target_path = tempfile.mkdtemp(prefix="dataset-")
        target = os.path.abspath(os.fspath(target_path))
        pairs = [(file, os.path.join(target, file.name)) for file in files]
        if not overwrite:
            there = [path for _, path in pairs if os.path.lexists(path)]
            if there:
                raise UserErrorException(
                    "{} is there already".format(there[0]),
                    cause="{} of {} files would be written over.".format(len(there), len(pairs)),
                    hint="Give overwrite=True, or another target_path.",
                )
        copy_files(pairs)
        return [path for _, path in pairs]

    def mount(self, mount_point=None, **kwargs):
        """A context in which the files are seen below `mount_point` (none: a new temporary folder).

        Files of this machine are linked. Others are downloaded when it starts: nothing is streamed.
        """
        return MountContext(self, mount_point)

    def _found(self):
        definition = self._describe()
        return selected(find_files(definition["sources"], self._open_place), definition["steps"])

    def _nothing(self):
        return UserErrorException(
            "the dataset has no files: there is nothing at {}".format(shown_sources(self._describe()["sources"])),
            hint="Upload them first, or correct the path.",
        )

    def _describe(self):
        raise NotImplementedError

    def _open_place(self, key):
        raise NotImplementedError


class TableView(TableSteps):
    """A dataset of tables; members as in FileView, and a reader in its definition."""

    def to_pandas_dataframe(self, on_error="null", out_of_range_datetime="null"):
        """All rows as a pandas DataFrame. pandas has to be installed; Parquet files need pyarrow as well."""
        from trainmaster.job.script.tables import read_frame

        definition = self._describe()
        with LocalCopies(find_files(definition["sources"], self._open_place)) as files:
            if not files:
                raise UserErrorException(
                    "the dataset has no files: there is nothing at {}".format(shown_sources(definition["sources"])),
                    hint="Upload them first, or correct the path.",
                )
            return read_frame(files, definition["reader"], definition["steps"], on_error, out_of_range_datetime)

    def _steps(self):
        return self._describe()["steps"]

    def _describe(self):
        raise NotImplementedError

    def _open_place(self, key):
        raise NotImplementedError


class LocalCopies:
    """Names and local paths of files, while the `with` block lasts: those from elsewhere are fetched for it."""

    def __init__(self, files):
        self._files = files
        self._folder = ""

    def __enter__(self):
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

    def __exit__(self, *error):
        if self._folder:
            import shutil

            shutil.rmtree(self._folder, ignore_errors=True)

    def _path_of(self, file):
        root = file.storage.local_path()
        return self._copy_of(file) if root is None else os.path.join(str(root), file.path)

    def _copy_of(self, file):
        return os.path.join(self._folder, file.name)


class MountContext:
    """The files of a dataset below a folder, from `start` (or `with`) to `stop`."""

    def __init__(self, view, mount_point=None):
        self._view = view
        self._wanted = None if mount_point is None else os.path.abspath(os.fspath(mount_point))
        self._made = None
        self.mount_point = self._wanted

    def start(self):
        """Makes the files visible."""
        if self._made is not None:
            return
        files = self._view._found()
        if not files:
            raise self._view._nothing()
        self.mount_point = self._folder()
        self._made = self.mount_point
        try:
            show_files([(file, os.path.join(self.mount_point, file.name)) for file in files])
        except BaseException:
            self.stop()
            raise

    def stop(self):
        """Takes them away again."""
        if self._made is None:
            return
        import shutil

        shutil.rmtree(self._made, ignore_errors=True)
        if self._was_there:
            os.makedirs(self._made, exist_ok=True)
        self._made = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *error):
        self.stop()

    def _folder(self):
        self._was_there = self._wanted is not None and os.path.isdir(self._wanted)
        if self._wanted is None:
            import tempfile

            return tempfile.mkdtemp(prefix="dataset-")
        if os.path.lexists(self._wanted) and (not os.path.isdir(self._wanted) or os.listdir(self._wanted)):
            raise UserErrorException(
                "{} cannot be a mount point: there is something already".format(self._wanted),
                hint="Give a folder that is empty, or a path where nothing is.",
            )
        os.makedirs(self._wanted, exist_ok=True)
        return self._wanted


def check_there(sources, open_place):
    """Refuses sources of which one has no files."""
    for source in sources:
        if not _is_anything(source, open_place):
            raise UserErrorException(
                "there is nothing at {}".format(shown_sources([source])),
                hint="Upload the files first, or correct the path; validate=False makes the dataset anyway.",
            )


def _is_anything(source, open_place):
    path = whole_place([source], [], {place_of(source): open_place(place_of(source)).local_path()})
    if path is None:
        return bool(find_files([source], open_place))
    # A glance, however many files there are.
    return os.path.isfile(path) or (os.path.isdir(path) and bool(os.listdir(path)))


def show_files(pairs):
    """Each file at its path: by a link where it lies on this machine, else by a copy."""
    for folder in sorted({os.path.dirname(path) for _, path in pairs}):
        os.makedirs(folder, exist_ok=True)
    away = []
    for file, path in pairs:
        root = file.storage.local_path()
        if root is None:
            # What is there already is complete: copies appear whole.
            if not os.path.exists(path):
                away.append((file, path))
            continue
        target = os.path.join(str(root), file.path)
        try:
            os.symlink(target, path)
        except FileExistsError:
            # From before a kill; anything else there is none of ours.
            if not os.path.islink(path) or os.readlink(path) != target:
                raise
    copy_files(away)


def copy_files(pairs):
    """Each file copied to its path; several at once where they come from elsewhere."""
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
        # `list` raises the first error; the files on their way are finished.
        list(pool.map(_copy, away))


def _copy(pair):
    file, path = pair
    from pathlib import Path

    file.storage.get(file.path, Path(path))


def shown_sources(sources):
    """The sources for a person to read; of web addresses without what may be a key."""
    shown = []
    for source in sources[:3]:
        if source.get("store"):
            shown.append("{} of datastore {!r}".format(source["path"] or "/", source["store"]))
        else:
            shown.append(source["path"].partition("?")[0])
    return ", ".join(shown) + (", ..." if len(sources) > 3 else "")
