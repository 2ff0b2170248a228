"""Errors of the SDK about a job file: with the keys of the file, and the line of the key. Pure."""

from __future__ import annotations

import re

from trainmaster.cli.option_names import replace_names
from trainmaster.job.errors import TrainmasterError
from trainmaster.sdk.job_files.conflicts import JobConflicts
from trainmaster.sdk.job_files.keys import key_names
from trainmaster.sdk.job_files.mistakes import Mistakes
from trainmaster.shared.marked_yaml import FileMistake, Marked

_QUOTED = re.compile(r"'[^']*'")


def add_place_of_key(section: Marked, error: TrainmasterError) -> TrainmasterError:
    """The error of an estimator, with keys in place of its parameters, at the line of the first key that it names.

    Several conflicts become a list, each with its line.
    """
    if not isinstance(error, JobConflicts):
        return _find_place(section, error)
    mistakes = Mistakes(section.file)
    for each in error.conflicts:
        mistakes.add(_find_place(section, each))
    return mistakes.as_error()


def _find_place(section: Marked, error: TrainmasterError) -> FileMistake:
    names = key_names()
    headline, cause, hint = (replace_names(text, names) for text in (error.headline, error.cause, error.hint))
    words = _QUOTED.sub("", headline).replace(":", " ").split()
    item = next((section.value[word] for word in words if word in section.value), section)
    return item.error(headline, cause, hint)
