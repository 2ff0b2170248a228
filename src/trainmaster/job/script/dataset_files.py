"""Which files a dataset has. Python 3.6, standard library: jobs use it too.

A source of a dataset is a dict: `path`, and `store` where that is a path of a datastore (with or without wildcards).
Without a store the path is a web address, or a path of this machine.
"""

import os
import re

from trainmaster.job.errors import DatastoreException, UserErrorException

_WILD = re.compile(r"[*?\[]")


class DatasetFile:
    """A file of a dataset: the name it has there, and where it lies."""

    __slots__ = ("name", "path", "size", "storage")

    def __init__(self, name, storage, path, size):
        self.name = name
        self.storage = storage
        self.path = path
        self.size = size


class LocalTree:
    """The files of this machine, by their absolute paths without the first slash."""

    def list(self, prefix):
        """Path and size of the files at and below `prefix`, sorted."""
        start = "/" + prefix
        if os.path.isfile(start):
            return [(prefix, os.path.getsize(start))]
        return sorted(_below(start, frozenset())) if os.path.isdir(start) else []

    def get(self, path, local):
        """Copies a file to `local`, which is either complete or absent."""
        import shutil

        part = _part_of(str(local))
        try:
            shutil.copyfile("/" + path, part)
            os.replace(part, str(local))
        except OSError as error:
            raise DatastoreException("/{} cannot be copied".format(path), cause=str(error)) from error
        finally:
            if os.path.exists(part):
                os.unlink(part)

    def local_path(self):
        """Where the paths begin."""
        return "/"


def _part_of(path):
    """The name of a file on its way: no listing gives it out, should a killed process leave it behind."""
    folder, name = os.path.split(path)
    return os.path.join(folder, ".trainmaster-{}-{}.part".format(os.getpid(), name))


def _below(folder, above):
    """Path and size of the files below `folder`; links are followed, but not back up."""
    real = os.path.realpath(folder)
    if real in above:
        return
    for entry in os.scandir(folder):
        if entry.is_dir():
            for found in _below(entry.path, above | {real}):
                yield found
        elif entry.is_file() and not (entry.name.startswith(".trainmaster-") and entry.name.endswith(".part")):
            yield entry.path.lstrip("/"), entry.stat().st_size


class WebFiles:
    """The files of one web server. It gives no listings: each path is a file."""

    patterns = False

    def __init__(self, server):
        self._server = server

    def list(self, path):
        """The file itself; an error when the server does not have it."""
        from trainmaster.job.script import web

        return [(path, web.size_of(self._url(path)))]

    def get(self, path, local):
        """Fetches a file to `local`, which is either complete or absent."""
        from trainmaster.job.script import web

        part = _part_of(str(local))
        try:
            web.fetch(self._url(path), part)
            os.replace(part, str(local))
        finally:
            if os.path.exists(part):
                os.unlink(part)

    def local_path(self):
        """Nowhere on this machine."""

    def _url(self, path):
        return "{}/{}".format(self._server, path)


def is_web(source):
    """Whether a source is a web address."""
    return not source.get("store") and source["path"].lower().startswith(("http://", "https://"))


def place_of(source):
    """The storage that a source lies in, as a key: a datastore, a web server, this machine.

    >>> place_of({"path": "https://example.com/a/b.csv"})
    ('web', 'https://example.com')
    """
    if source.get("store"):
        return ("store", source["store"])
    if is_web(source):
        scheme, _, rest = source["path"].partition("://")
        return ("web", "{}://{}".format(scheme, rest.partition("/")[0]))
    return ("local", "")


def path_in_place(source):
    """The path of a source in its storage, without a slash at its ends."""
    path = source["path"]
    if is_web(source):
        path = path.partition("://")[2].partition("/")[2]
    return path.strip("/")


def fixed_part(pattern):
    """The folders of `pattern` before its first wildcard; all of it when it has none.

    >>> fixed_part("animals/dog/year-*/*.jpg")
    'animals/dog'
    """
    parts = pattern.split("/")
    for number, part in enumerate(parts):
        if _WILD.search(part):
            return "/".join(parts[:number])
    return pattern


def whole_place(sources, steps, roots):
    """The local file or folder that is all of a dataset, or None; `roots` has the folder of each local place."""
    if len(sources) != 1 or steps:
        return None
    root = roots.get(place_of(sources[0]))
    path = path_in_place(sources[0])
    if root is None or is_pattern(path):
        return None
    return os.path.join(str(root), without_all(path))


def is_pattern(path):
    """Whether `path` has wildcards that choose: all below a folder is that folder."""
    return bool(_WILD.search(without_all(path)))


def without_all(path):
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


def matcher(pattern):
    """A function that says whether a path fits `pattern`: `*` and `?` stay in one folder, `**` goes through all."""
    parts = pattern.split("/")
    text = ""
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        if part == "**":
            text += ".+" if last else "(?:[^/]+/)*"
        else:
            text += _segment(part) + ("" if last else "/")
    fits = re.compile(text + r"\Z").match
    return lambda path: bool(fits(path))


def _segment(part):
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


def find_files(sources, open_place):
    """The files of `sources` in their order, each once; `open_place(key)` gives a storage.

    What the sources have in common is left out of the names: of one folder its own path, of several the folder above
    them all. Sources in several storages keep the storage's name as their first folder.
    """
    listed = []
    for source in sources:
        key = place_of(source)
        storage = open_place(key)
        base, found = _listed(storage, path_in_place(source))
        listed.append((key, storage, base, found))
    several = len({key for key, _, _, _ in listed}) > 1
    common = _common([base for _, _, base, _ in listed])
    files, seen = [], set()
    for key, storage, _, found in listed:
        for path, size in found:
            if (key, path) in seen:
                continue
            seen.add((key, path))
            name = "{}/{}".format(_shown(key), path) if several else path[len(common) :].lstrip("/")
            if key[0] == "web":
                # What follows may be a key that opens the file.
                name = name.partition("?")[0]
            files.append(DatasetFile(name, storage, path, size))
    return files


def _listed(storage, pattern):
    """The folder that is left out of names, and path and size of the files that fit."""
    wanted = without_all(pattern)
    if not getattr(storage, "patterns", True) or not is_pattern(wanted):
        found = [(path, size) for path, size in storage.list(wanted)]
        only = len(found) == 1 and found[0][0] == wanted
        return (wanted.rpartition("/")[0] if only else wanted), found
    base = fixed_part(wanted)
    fits = matcher(pattern)
    return base, [(path, size) for path, size in storage.list(base) if fits(path)]


def _common(folders):
    """The folder above all of `folders`."""
    parts = [folder.split("/") if folder else [] for folder in folders]
    common = []
    for level in zip(*parts):  # noqa: B905
        if len(set(level)) > 1:
            break
        common.append(level[0])
    return "/".join(common)


def _shown(key):
    kind, name = key
    return name.partition("://")[2] if kind == "web" else (name or "local")


def selected(files, steps):
    """`files` after the steps that choose among them."""
    for step in steps:
        files = choose(files, step)
    return files


def choose(items, step):
    """The items that one step leaves: `skip`, `take`, or `sample` with its seed."""
    what = step["do"]
    if what == "skip":
        return items[step["count"] :]
    if what == "take":
        return items[: step["count"]]
    if what == "sample":
        return [item for item, chosen in zip(items, drawn(len(items), step)) if chosen]  # noqa: B905
    raise UserErrorException("a dataset of files knows no step {!r}".format(what))


def drawn(count, step):
    """For each of `count` items, whether a `sample` step keeps it; the same seed draws the same."""
    import random

    draw = random.Random(step["seed"]).random
    rest = bool(step.get("rest"))
    return [(draw() < step["probability"]) != rest for _ in range(count)]
