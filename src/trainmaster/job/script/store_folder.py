"""Copies into and out of a folder that is a datastore, from inside a job, as `sdk/datastores` does outside of jobs.

Files are pairs: the path of a local file, and its path below the target.
"""

import os
import posixpath
import shutil
import sys

from trainmaster.job.agent import durable
from trainmaster.job.errors import DatastoreException, UserErrorException

# Files on their way: no listing gives them out, here or outside of jobs (`storage/folder.py`).
_PART_PREFIX, _PART_SUFFIX = ".trainmaster-", ".part"
_FEW = 20


def store_path(path):
    """`path` relative to the root of a store, normalised; the root itself is the empty text.

    >>> store_path("/mnist/./train/")
    'mnist/train'
    """
    text = "" if path is None else os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(text, str) or "\0" in text:
        raise UserErrorException("{!r} is no path in a datastore".format(text))
    normal = posixpath.normpath(text.lstrip("/") or ".")
    if normal == ".." or normal.startswith("../"):
        raise UserErrorException(
            "The path {!r} leaves the datastore".format(text),
            hint="Give a path below the datastore's root, without '..'.",
        )
    return "" if normal == "." else normal


def files_in(folder, except_for=None):
    """All files below `folder`, but not below `except_for`; and a sentence for each thing that is left out."""
    folder = os.fspath(folder)
    if not os.path.isdir(folder):
        is_there = os.path.exists(folder)
        raise UserErrorException(
            "The folder to upload, {}, {}".format(folder, "is not a folder" if is_there else "does not exist"),
            hint="For single files use upload_files." if is_there else "Check src_dir.",
        )
    real = os.path.realpath(folder)
    store = os.path.realpath(except_for) if except_for else None
    files, left_out = [], []
    for parent, folders, names in os.walk(folder, onerror=_unreadable):
        links = [name for name in folders if os.path.islink(os.path.join(parent, name))]
        folders[:] = sorted(
            name for name in folders if name not in links and os.path.realpath(os.path.join(parent, name)) != store
        )
        for name in sorted(names + links):
            path = os.path.join(parent, name)
            reason = _reason_against(path, real)
            if reason:
                left_out.append("Left out {}: {}".format(path, reason))
            else:
                files.append((path, os.path.relpath(path, folder)))
    return files, left_out


def files_of(files, relative_root=None):
    """The listed `files`, by their paths from `relative_root` (none: from the folder they have in common)."""
    if isinstance(files, (str, bytes, os.PathLike)) or not hasattr(files, "__iter__"):
        raise UserErrorException("upload_files takes a list of files", hint="Write [{!r}].".format(files))
    places = sorted({os.path.abspath(file) for file in files})
    wrong = [place for place in places if not os.path.isfile(place)]
    if wrong:
        raise UserErrorException(
            "Nothing was uploaded: no such file: {}".format(", ".join(wrong[:5])),
            cause="{} of {} files are not there, or are not files.".format(len(wrong), len(places)),
        )
    if not places:
        return []
    common = os.path.commonpath([os.path.dirname(place) for place in places])
    root = os.path.abspath(relative_root) if relative_root else common
    for place in places:
        if not place.startswith(os.path.join(root, "")):
            raise UserErrorException("{} does not lie below relative_root, {}".format(place, root))
    return [(place, os.path.relpath(place, root)) for place in places]


def put(files, folder, target, overwrite, show_progress, store):
    """Copies files below `folder`, which is `target` in the datastore `store`."""
    copies = [(source, os.path.join(folder, path), posixpath.join(target, path)) for source, path in files]
    done = _copied(copies, overwrite, show_progress, "Uploaded", "to datastore {!r}".format(store), durable.flush_one)
    _flush_names(folder, [place for _, place, _ in copies])
    return done


def _flush_names(folder, places):
    """What was uploaded survives a power cut: each file is on the disk, and its name is when its folder is."""
    folders = {os.path.dirname(folder)}
    for place in places:
        while len(place) > len(folder):
            place = os.path.dirname(place)
            folders.add(place)
    try:
        durable.flush(each for each in folders if os.path.isdir(each))
    except OSError as error:
        raise DatastoreException(
            "{} cannot be written".format(folder), inner_exception=error, cause=error.strerror or str(error)
        ) from error


def get(root, prefix, target, overwrite, show_progress, store):
    """Copies what the store at `root` has at `prefix`, or what begins so, below `target`; how many."""
    copies = [(os.path.join(root, path), os.path.join(target, path), path) for path in _by_prefix(root, prefix)]
    return _copied(copies, overwrite, show_progress, "Downloaded", "from datastore {!r}".format(store), os.path.exists)


def say(line):
    """To standard output, at once even into a file."""
    print(line)
    sys.stdout.flush()


def _by_prefix(root, prefix):
    found = _listed(root, prefix)
    if found or not prefix:
        return found
    return [path for path in _listed(root, posixpath.dirname(prefix)) if path.startswith(prefix)]


def _listed(root, prefix):
    """The paths of the files at and below `prefix`."""
    start = os.path.join(root, prefix)
    if os.path.isfile(start):
        return [prefix]
    return sorted(_below(start, prefix, frozenset())) if os.path.isdir(start) else []


def _below(folder, path, above):
    real = os.path.realpath(folder)
    if real in above:
        # A link that leads back up would never end.
        return
    for name in os.listdir(folder):
        place, inner = os.path.join(folder, name), posixpath.join(path, name)
        if os.path.isdir(place):
            for found in _below(place, inner, above | {real}):
                yield found
        elif os.path.isfile(place) and not _is_part(name):
            yield inner


def _copied(copies, overwrite, show_progress, verb, where, settle):
    """`settle` is called with every copy before it gets its name."""
    done = skipped = 0
    for source, target, shown in copies:
        if not overwrite and os.path.isfile(target):
            skipped += 1
            line = "Skipped {}: it is there already (overwrite=False)".format(shown)
        else:
            _copy_whole(source, target, settle)
            done += 1
            line = "{} {}".format(verb, shown)
        if show_progress and len(copies) <= _FEW:
            say(line)
    if show_progress:
        already = ", skipped {} already there".format(skipped) if skipped else ""
        say("{} {} file{} {}{}".format(verb, done, "" if done == 1 else "s", where, already))
    return done


def _copy_whole(source, target, settle):
    """Copies a file so that `target` is at no moment a part of it, and makes its folders."""
    part = os.path.join(os.path.dirname(target), _PART_PREFIX + os.urandom(8).hex() + _PART_SUFFIX)
    try:
        os.makedirs(os.path.dirname(target) or ".", exist_ok=True)
        with open(source, "rb") as read, open(part, "xb") as written:
            shutil.copyfileobj(read, written, 1 << 20)
        settle(part)
        os.replace(part, target)
    except OSError as error:
        raise DatastoreException(
            "{} cannot be copied to {}".format(source, target),
            inner_exception=error,
            cause=error.strerror or str(error),
            hint="What was copied before stays; the same call goes on from there.",
        ) from error
    finally:
        if os.path.lexists(part):
            os.unlink(part)


def _reason_against(path, root):
    """Why a file is not uploaded; empty when it is."""
    if os.path.islink(path):
        target = os.path.realpath(path)
        if not os.path.exists(target):
            return "a link that leads nowhere"
        if os.path.isdir(target):
            return "a link to a folder"
        if not target.startswith(os.path.join(root, "")):
            return "a link that leads out of the folder"
    # Reading a pipe or a device may never end.
    return "" if os.path.isfile(path) else "not a regular file"


def _unreadable(error):
    raise UserErrorException(
        "The folder {} cannot be read".format(error.filename), inner_exception=error, cause=error.strerror
    )


def _is_part(name):
    return name.startswith(_PART_PREFIX) and name.endswith(_PART_SUFFIX)
