"""Which files a dataset has. Python 3.6, standard library: jobs use it too.

A source of a dataset is a dict with `path`, and `store` if it is a path of a datastore (with or without wildcards).
Without a store the path is a web address, or a path of this machine.
"""

import os
import re

from trainmaster.job.errors import UserErrorException
from trainmaster.job.script.storage import Storage, StoredFile
from trainmaster.job.script.store_folder import FolderStorage, open_part

TYPE_CHECKING = False
if TYPE_CHECKING:
    import builtins
    from typing import Any, Callable, Mapping, Sequence, TypeVar

    Source = Mapping[str, str]
    Step = Mapping[str, Any]
    # The kind of a storage and its name.
    Place = tuple[str, str]
    OpenPlace = Callable[[Place], Storage]
    Item = TypeVar("Item")

_WILD = re.compile(r"[*?\[]")


class DatasetFile:
    """A file of a dataset: the name it has there, and where it is stored."""

    __slots__ = ("name", "path", "size", "storage")

    def __init__(self, name: str, storage: Storage, path: str, size: int) -> None:
        self.name = name
        self.storage = storage
        self.path = path
        self.size = size


def local_files() -> FolderStorage:
    """The files of this machine, by their absolute paths without the first slash."""
    return FolderStorage("/")


class WebFiles(Storage):
    """The files of one web server. A server has no listings: each path is a file."""

    has_listings = False

    def __init__(self, server: str) -> None:
        self._server = server

    def list(self, prefix: str) -> "builtins.list[StoredFile]":
        """The file itself; an error when the server does not have it."""
        from trainmaster.job.script import web

        return [StoredFile(prefix, web.size_of(self._url(prefix)))]

    def get(self, path: str, local: "str | os.PathLike[str]") -> None:
        """Fetches a file to `local`, which is either complete or absent."""
        from trainmaster.job.script import web

        with open_part(local) as part:
            web.fetch(self._url(path), part)

    def _url(self, path: str) -> str:
        return "{}/{}".format(self._server, path)


def is_web(source: "Source") -> bool:
    """Whether a source is a web address."""
    return not source.get("store") and source["path"].lower().startswith(("http://", "https://"))


def place_of(source: "Source") -> "Place":
    """The storage of a source: a datastore, a web server, or this machine.

    >>> place_of({"path": "https://example.com/a/b.csv"})
    ('web', 'https://example.com')
    """
    if source.get("store"):
        return ("store", source["store"])
    if is_web(source):
        scheme, _, rest = source["path"].partition("://")
        return ("web", "{}://{}".format(scheme, rest.partition("/")[0]))
    return ("local", "")


def path_in_place(source: "Source") -> str:
    """The path of a source in its storage, without slashes at its ends."""
    path = source["path"]
    if is_web(source):
        path = path.partition("://")[2].partition("/")[2]
    return path.strip("/")


def wildcard_base(pattern: str) -> str:
    """The folders of `pattern` before its first wildcard; all of it when there is none.

    >>> wildcard_base("animals/dog/year-*/*.jpg")
    'animals/dog'
    """
    parts = pattern.split("/")
    for number, part in enumerate(parts):
        if _WILD.search(part):
            return "/".join(parts[:number])
    return pattern


def find_single_path(
    sources: "Sequence[Source]", steps: "Sequence[Step]", roots: "Mapping[Place, str | os.PathLike[str] | None]"
) -> "str | None":
    """The one local file or folder that is the whole dataset, or None; `roots` has the folder of each local storage."""
    if len(sources) != 1 or steps:
        return None
    root = roots.get(place_of(sources[0]))
    path = path_in_place(sources[0])
    if root is None or is_pattern(path):
        return None
    return os.path.join(os.fspath(root), without_all(path))


def is_pattern(path: str) -> bool:
    """Whether `path` has wildcards that choose files; `folder/**` means the folder."""
    return bool(_WILD.search(without_all(path)))


def without_all(path: str) -> str:
    """`path` without a `/**` at its end, which means the same.

    >>> without_all("mnist/**"), without_all("**")
    ('mnist', '')
    """
    if path in ("**", "**/*"):
        return ""
    for end in ("/**/*", "/**"):
        if path.endswith(end):
            return path[: -len(end)]
    return path


def matcher(pattern: str) -> "Callable[[str], bool]":
    """A function that says whether a path matches `pattern`: `*` and `?` stay in one folder, `**` crosses folders."""
    parts = pattern.split("/")
    text = ""
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        if part == "**":
            text += ".+" if last else "(?:[^/]+/)*"
        else:
            text += _segment(part) + ("" if last else "/")
    match = re.compile(text + r"\Z").match
    return lambda path: bool(match(path))


def _segment(part: str) -> str:
    text, rest = "", part
    while rest:
        letter, rest = rest[0], rest[1:]
        if letter == "*":
            text += "[^/]*"
        elif letter == "?":
            text += "[^/]"
        elif letter == "[" and "]" in rest[1:]:
            inside, _, rest = rest.partition("]")
            inside = inside.replace("\\", "\\\\")
            text += "[" + ("^" + inside[1:] if inside.startswith("!") else inside) + "]"
        else:
            text += re.escape(letter)
    return text


def find_files(sources: "Sequence[Source]", open_place: "OpenPlace") -> "list[DatasetFile]":
    """The files of `sources` in their order, each once; `open_place` opens a storage.

    What the sources have in common is left out of the names: of one folder its own path, of several the folder above
    them all. Sources in several storages keep the storage's name as their first folder.
    """
    listed = []
    for source in sources:
        key = place_of(source)
        storage = open_place(key)
        base, found = _list_source(storage, path_in_place(source))
        listed.append((key, storage, base, found))
    several = len({key for key, _, _, _ in listed}) > 1
    common = _common([base for _, _, base, _ in listed])
    files: "list[DatasetFile]" = []
    seen: "set[tuple[Place, str]]" = set()
    for key, storage, _, found in listed:
        for path, size in found:
            if (key, path) in seen:
                continue
            seen.add((key, path))
            name = "{}/{}".format(_place_name(key), path) if several else path[len(common) :].lstrip("/")
            if key[0] == "web":
                # What follows may be a key that gives access to the file.
                name = name.partition("?")[0]
            files.append(DatasetFile(name, storage, path, size))
    return files


def _list_source(storage: Storage, pattern: str) -> "tuple[str, list[StoredFile]]":
    """The folder that is left out of names, and the files that match."""
    wanted = without_all(pattern)
    if not storage.has_listings or not is_pattern(wanted):
        found = storage.list(wanted)
        is_file = len(found) == 1 and found[0].path == wanted
        return (wanted.rpartition("/")[0] if is_file else wanted), found
    base = wildcard_base(wanted)
    matches = matcher(pattern)
    return base, [file for file in storage.list(base) if matches(file.path)]


def _common(folders: "Sequence[str]") -> str:
    """The folder above all of `folders`."""
    parts = [folder.split("/") if folder else [] for folder in folders]
    common: "list[str]" = []
    for level in zip(*parts):  # noqa: B905
        if len(set(level)) > 1:
            break
        common.append(level[0])
    return "/".join(common)


def _place_name(key: "Place") -> str:
    kind, name = key
    return name.partition("://")[2] if kind == "web" else (name or "local")


def select(files: "Sequence[Item]", steps: "Sequence[Step]") -> "Sequence[Item]":
    """The files that are left after all steps."""
    for step in steps:
        files = choose(files, step)
    return files


def choose(items: "Sequence[Item]", step: "Step") -> "Sequence[Item]":
    """The items that are left after one step: `skip`, `take`, or `sample` with its seed."""
    what = step["do"]
    if what == "skip":
        return items[step["count"] :]
    if what == "take":
        return items[: step["count"]]
    if what == "sample":
        return [item for item, chosen in zip(items, draw_sample(len(items), step)) if chosen]  # noqa: B905
    raise UserErrorException("a dataset of files has no step {!r}".format(what))


def draw_sample(count: int, step: "Step") -> "list[bool]":
    """For each of `count` items, whether a `sample` step keeps it; the same seed gives the same sample."""
    import random

    draw = random.Random(step["seed"]).random
    rest = bool(step.get("rest"))
    return [(draw() < step["probability"]) != rest for _ in range(count)]
