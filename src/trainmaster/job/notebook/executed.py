"""The executed notebook: a file in `outputs/` that is complete at every moment."""

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Mapping

_SECONDS_BETWEEN = 2.0


def find_output(path: str, variables: "Mapping[str, str]") -> str:
    """Where the executed notebook is kept; each further process of a distributed run has a file of its own.

    >>> find_output("train/digits.ipynb", {}), find_output("digits.ipynb", {"TRAINMASTER_RANK": "2"})
    ('outputs/digits.ipynb', 'outputs/digits_rank_2.ipynb')
    """
    name, ending = os.path.splitext(os.path.basename(path))
    rank = variables.get("TRAINMASTER_RANK", "0")
    return "outputs/{}{}{}".format(name, "" if rank == "0" else "_rank_" + rank, ending)


class ExecutedNotebook(object):
    """Writes the notebook as it is now."""

    def __init__(self, path: str, notebook: "Any", write: "Callable[..., None]") -> None:
        self._path = path
        self._notebook = notebook
        self._write = write
        self._saved_at = 0.0
        self._has_warned = False

    def save(self) -> None:
        """Replaces the file. A disk that is full does not end the notebook."""
        # Hidden: a reader of the folder never sees half a notebook.
        folder, name = os.path.split(self._path)
        partial = os.path.join(folder, "." + name + ".partial")
        try:
            os.makedirs(folder, exist_ok=True)
            self._write(self._notebook, partial)
            os.replace(partial, self._path)
        except OSError as error:
            if not self._has_warned:
                sys.stderr.write("{} cannot be written: {}\n".format(self._path, error))
            self._has_warned = True
        self._saved_at = time.monotonic()

    def save_sometimes(self) -> None:
        """Saves while a long cell prints, but not for every line."""
        if time.monotonic() - self._saved_at > _SECONDS_BETWEEN:
            self.save()
