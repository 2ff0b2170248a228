"""Requests of scripts to their workspace, and the answers: files that appear complete (`job/script/requests.py`)."""

import os
import shutil

from . import messages
from .files import names, write_new

_FOLDER = "letters"
_REQUEST, _ANSWER = ".ask", ".answer"
FILES = "kept"
"""Beside the requests: files that they refer to and that are not files of the run."""
STORAGE_REQUESTS = "errands"
"""Files on their way to or from a datastore (`job/script/datastores.py`)."""


def make_folder(run: str) -> None:
    """Creates the folder before the script starts: a network file system caches for long that a folder is missing."""
    os.makedirs(os.path.join(run, _FOLDER), mode=0o700, exist_ok=True)


def clear(run: str) -> None:
    """Removes all requests and answers, once the processes that could read them are gone."""
    for folder in (_FOLDER, FILES, STORAGE_REQUESTS):
        shutil.rmtree(os.path.join(run, folder), ignore_errors=True)


def pending(run: str) -> "list[str]":
    """The names of the requests that wait for an answer."""
    return [name[: -len(_REQUEST)] for name in names(os.path.join(run, _FOLDER)) if name.endswith(_REQUEST)]


def read(run: str, name: str) -> "bytes | None":
    """The text of a request; None if it was withdrawn."""
    try:
        with open(_path(run, name, _REQUEST), "rb") as file:
            return file.read()
    except OSError:
        return None


def is_about_files(text: bytes) -> bool:
    """Whether the request can only be answered where the script's files are."""
    try:
        return bool(messages.decode(text).get("files"))
    except ValueError:
        return False


def answer(run: str, name: str, text: bytes) -> None:
    """Answers a request, unless it was withdrawn. Only the owner can read the answer: it may contain a secret."""
    request, path = _path(run, name, _REQUEST), _path(run, name, _ANSWER)
    if os.path.exists(request):
        write_new(path + ".part", text, 0o600)
        os.rename(path + ".part", path)
        os.unlink(request)


def _path(run: str, name: str, ending: str) -> str:
    return os.path.join(run, _FOLDER, name + ending)
