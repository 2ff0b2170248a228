"""The files of a run: each is added whole or not at all, never outside of their folder, and never overwritten."""

import os

from trainmaster.job.agent import durable
from trainmaster.job.errors import TrainmasterError, UserErrorException
from trainmaster.job.script.values import is_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, Iterator

    # A path, or something to read from.
    Source = Any

# Files that are still being written. All listings of a run's files leave them out.
PARTIAL_PREFIX = ".partial-"
# The folders that are links into the working folder while a run goes.
LINKED_FOLDERS = ("outputs", "logs")
LONGEST_NAME = 1024
LONGEST_PART = 255
_BLOCK = 1024 * 1024


class RunFiles:
    """The files in `folder`, by their names."""

    def __init__(self, folder: "str | os.PathLike[str]") -> None:
        self._folder = os.fspath(folder)

    def add(self, name: str, source: "Source") -> str:
        """Keeps the file at the path `source`, or the contents of a stream, as `name`; returns its plain form.

        Adding the same contents again is allowed; other contents under an existing name are an error.
        """
        name = file_name(name)
        place = self.path(name)
        if not is_stream(source) and os.path.exists(place) and os.path.samefile(existing_file(source), place):
            return name
        if self._keep(source, place, [name]) is None:
            raise UserErrorException(
                "a file named {!r} already exists in the run, with other contents".format(name),
                hint="Use another name; files of a run never change.",
            )
        return name

    def add_beside(self, name: str, source: "Source") -> str:
        """Like `add`, but uses the next free name (`plot_1.png`) if the name exists; returns that name."""
        name = file_name(name)
        stem, ending = os.path.splitext(name)
        names = (name if n == 0 else "{}_{}{}".format(stem, n, ending) for n in range(100000))
        kept = self._keep(source, self.path(name), names)
        assert kept is not None, "there is no free name"
        return kept

    def path(self, name: str) -> str:
        """The path of the file `name`, whether it exists or not."""
        name = file_name(name)
        place = os.path.join(self._folder, name)
        top, _, rest = name.partition("/")
        # outputs and logs may be links into the working folder; no other link may lead out.
        root = os.path.join(self._folder, top) if rest and top in LINKED_FOLDERS else self._folder
        root, parent = os.path.realpath(root), os.path.realpath(os.path.dirname(place))
        if parent != root and not parent.startswith(os.path.join(root, "")):
            raise UserErrorException(
                "the file name {!r} leads out of the run's files".format(name),
                cause="a link in its path points to {}".format(parent),
            )
        return os.path.join(parent, os.path.basename(place))

    def existing(self, name: str) -> str:
        """The path of the file `name`, which must exist."""
        path = self.path(name)
        if not os.path.isfile(path):
            raise UserErrorException(
                "the run has no file {!r}".format(name),
                cause="it has: " + (", ".join(self.names()[:20]) or "no files yet"),
            )
        return path

    def names(self) -> "list[str]":
        """The names of all files, sorted."""
        names = [path[len(self._folder) + 1 :] for path in walk_files(self._folder)]
        return sorted(name for name in names if not os.path.basename(name).startswith(PARTIAL_PREFIX))

    def flush(self, names: "Iterable[str]") -> None:
        """Returns when these files are on the disk, so that they survive a power cut."""
        paths = set()
        for name in names:
            path = self.path(name)
            paths.add(path)
            for _ in name.split("/"):
                path = os.path.dirname(path)
                paths.add(path)
        try:
            durable.flush(paths)
        except OSError as error:
            raise _not_kept(error) from error

    def _keep(self, source: "Source", place: str, names: "Iterable[str]") -> "str | None":
        """Copies `source` to the first free one of `names` (in the folder of `place`); None if there is none."""
        parent = os.path.dirname(place)
        partial = os.path.join(parent, PARTIAL_PREFIX + os.urandom(8).hex())
        stream = source if is_stream(source) else open(existing_file(source), "rb")
        try:
            _make_folder(parent, names)
            _copy(stream, partial)
            for name in names:
                if _place(partial, os.path.join(parent, name.rpartition("/")[2])):
                    return name
            return None
        except OSError as error:
            raise _not_kept(error) from error
        finally:
            if stream is not source:
                stream.close()
            if os.path.lexists(partial):
                os.unlink(partial)


def _not_kept(error: "OSError") -> "TrainmasterError":
    return TrainmasterError(
        "the file was NOT kept: it cannot be written to the run's folder",
        inner_exception=error,
        cause=str(error),
        hint="Free space or repair the folder, then upload it again.",
    )


def file_name(name: object) -> str:
    """`name` in its plain form (`a/b.txt`), if it can name a file of a run."""
    if not isinstance(name, str):
        raise UserErrorException("a file's name has to be a str, not {}".format(type(name).__name__))
    parts = [part for part in name.split("/") if part not in ("", ".")]
    problem = ""
    if not parts:
        problem = "it is empty"
    elif name.startswith("/"):
        problem = "it has to be relative"
    elif ".." in parts:
        problem = "'..' would lead out of the run's files"
    elif not is_text(name):
        problem = "it has characters that cannot be stored"
    elif len(name) > LONGEST_NAME or any(len(part.encode("utf-8")) > LONGEST_PART for part in parts):
        problem = "it is too long"
    elif parts[-1].startswith(PARTIAL_PREFIX):
        problem = "names with {} are for files that are still being written".format(PARTIAL_PREFIX)
    if problem:
        shown = name if len(name) < 100 else name[:100] + "..."
        raise UserErrorException("{!r} cannot be the name of a run's file".format(shown), cause=problem)
    return "/".join(parts)


def is_stream(source: object) -> bool:
    """Whether `source` is a stream, not a path."""
    return hasattr(source, "read")


def existing_file(path: object) -> str:
    """`path` as a str, if there is a file at it."""
    path = _as_path(path)
    if os.path.isdir(path):
        raise UserErrorException("{!r} is a folder".format(path), hint="Use run.upload_folder() for folders.")
    if not os.path.isfile(path):
        raise UserErrorException(
            "there is no file {!r}".format(path), cause="the working folder is {}".format(os.getcwd())
        )
    return path


def existing_folder(path: object) -> str:
    """`path` as a str, if there is a folder at it."""
    path = _as_path(path)
    if not os.path.isdir(path):
        raise UserErrorException(
            "there is no folder {!r}".format(path), cause="the working folder is {}".format(os.getcwd())
        )
    return path


def walk_files(folder: "str | os.PathLike[str]") -> "Iterator[str]":
    """The paths of all files below `folder`; links to folders are followed, and each folder is visited once."""
    entered = {os.path.realpath(folder)}
    for parent, folders, files in os.walk(folder, followlinks=True):
        for name in list(folders):
            real = os.path.realpath(os.path.join(parent, name))
            if real in entered:
                folders.remove(name)
            entered.add(real)
        for name in files:
            path = os.path.join(parent, name)
            if os.path.isfile(path):
                yield path


def copy_out(path: str, target: str) -> None:
    """Copies the file at `path` to `target`, whole or not at all."""
    parent = os.path.dirname(os.path.abspath(target))
    os.makedirs(parent, exist_ok=True)
    if os.path.exists(target) and os.path.samefile(path, target):
        return
    partial = os.path.join(parent, PARTIAL_PREFIX + os.urandom(8).hex())
    try:
        with open(path, "rb") as stream:
            _copy(stream, partial)
        os.replace(partial, target)
    finally:
        if os.path.lexists(partial):
            os.unlink(partial)


def _as_path(path: "Any") -> str:
    if not isinstance(path, (str, bytes)) and not hasattr(path, "__fspath__"):
        raise UserErrorException("{!r} is neither a path nor a stream".format(path))
    return os.fsdecode(path)


def _make_folder(parent: str, names: "Iterable[str]") -> None:
    try:
        os.makedirs(parent, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise UserErrorException(
            "no file can have the name {!r}".format(next(iter(names))),
            cause="a part of its path is a file, not a folder",
        ) from error


def _copy(stream: "Any", path: str) -> None:
    with open(path, "xb") as target:
        while True:
            block = stream.read(_BLOCK)
            if not block:
                return
            target.write(block.encode("utf-8") if isinstance(block, str) else block)


def _place(partial: str, path: str) -> bool:
    """Gives the finished file its name, unless the name exists; returns whether the name now has these contents."""
    try:
        # Unlike a rename, a link never replaces a file: two processes cannot overwrite each other.
        os.link(partial, path)
    except FileExistsError:
        return _same_contents(partial, path)
    except OSError:
        # A file system without links.
        if os.path.lexists(path):
            return _same_contents(partial, path)
        os.rename(partial, path)
    return True


def _same_contents(one: str, other: str) -> bool:
    if not os.path.isfile(other) or os.path.getsize(one) != os.path.getsize(other):
        return False
    with open(one, "rb") as a, open(other, "rb") as b:
        while True:
            block = a.read(_BLOCK)
            if block != b.read(_BLOCK):
                return False
            if not block:
                return True
