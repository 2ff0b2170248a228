"""What scripts ask their workspace, and the answers: files that appear whole (`job/script/requests.py`)."""

import json
import os
import shutil

from .files import names, write_new

_FOLDER = "letters"
_ASK, _ANSWER = ".ask", ".answer"
FILES = "kept"
"""Beside the letters: files that they are about, if those are none of the run's."""
STORAGE_REQUESTS = "errands"
"""Files on their way to or from a datastore (`job/script/datastores.py`)."""


def make_folder(run):
    """Before there is a script: that a folder is not there is remembered for long by a network's file system."""
    os.makedirs(os.path.join(run, _FOLDER), mode=0o700, exist_ok=True)


def clear(run):
    """After all who asked are gone: nobody takes their answers any more."""
    for folder in (_FOLDER, FILES, STORAGE_REQUESTS):
        shutil.rmtree(os.path.join(run, folder), ignore_errors=True)


def pending(run):
    """The names of those that wait for an answer."""
    return [name[: -len(_ASK)] for name in names(os.path.join(run, _FOLDER)) if name.endswith(_ASK)]


def read(run, name):
    """The text of one; None if it was taken back."""
    try:
        with open(_path(run, name, _ASK), "rb") as file:
            return file.read()
    except OSError:
        return None


def is_about_files(text):
    """Whether it can only be answered where the script's files are."""
    try:
        return bool(json.loads(text.decode("utf-8")).get("files"))
    except (ValueError, AttributeError):
        return False


def answer(run, name, text):
    """Answers one. It may be about a secret: it is for its owner alone, and for nobody if nobody waits any more."""
    letter, place = _path(run, name, _ASK), _path(run, name, _ANSWER)
    if os.path.exists(letter):
        write_new(place + ".part", text, 0o600)
        os.rename(place + ".part", place)
        os.unlink(letter)


def _path(run, name, ending):
    return os.path.join(run, _FOLDER, name + ending)
