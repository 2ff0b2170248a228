"""Runs the cells of a notebook as the script of a job, and keeps the executed notebook in `outputs/`."""

import importlib
import os
import sys
import tempfile

from trainmaster.job.notebook import PACKAGES
from trainmaster.job.notebook.executed import ExecutedNotebook, find_output
from trainmaster.job.notebook.failures import describe_failure, is_exit
from trainmaster.job.notebook.kernel import ARGUMENTS, CODE_FOLDER
from trainmaster.job.notebook.parameters import inject

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_FAILED, _CANNOT_RUN = 1, 2
# A kernel imports for seconds on a busy machine.
_START_SECONDS = 600


def main(argv: "list[str]") -> int:
    """Runs the notebook; returns the exit code of the script."""
    path, arguments = argv[0], argv[1:]
    missing = [name for name in PACKAGES if not _is_installed(name)]
    if missing:
        return _refuse(path, _missing(missing))
    import json

    nbformat = importlib.import_module("nbformat")
    try:
        notebook = nbformat.read(path, as_version=4)
    except Exception as error:  # noqa: BLE001 (nbformat raises many kinds)
        return _refuse(path, "it cannot be read as a notebook: {}".format(str(error).splitlines()[0]))
    language = notebook.metadata.get("kernelspec", {}).get("language", "python")
    if language != "python":
        return _refuse(path, "it is a notebook for {}, not for Python".format(language))
    inject(notebook, nbformat.v4.new_code_cell, arguments)
    os.environ[ARGUMENTS] = json.dumps(argv)
    os.environ[CODE_FOLDER] = os.path.dirname(os.path.abspath(path))
    kept = ExecutedNotebook(find_output(path, os.environ), notebook, nbformat.write)
    with tempfile.TemporaryDirectory(prefix="kernel-") as folder:
        return _execute(path, notebook, kept, folder)


def _execute(path: str, notebook: "Any", kept: ExecutedNotebook, folder: str) -> int:
    from trainmaster.job.notebook.client import make_client

    errors = importlib.import_module("nbclient.exceptions")
    client = make_client(notebook, kept, folder, _START_SECONDS)
    kept.save()
    try:
        client.execute()
    except errors.CellExecutionError:
        failed = client.failed
        if failed is None or is_exit(failed):
            return 0
        sys.stdout.flush()
        sys.stderr.write(describe_failure(os.path.basename(path), client.number, failed))
        return _FAILED
    except errors.DeadKernelError:
        sys.stdout.flush()
        text = "{}: error: the Python of the notebook ended in cell {}\n"
        sys.stderr.write(text.format(os.path.basename(path), client.number))
        return _FAILED
    finally:
        kept.save()
    return 0


def _is_installed(name: str) -> bool:
    import importlib.util

    return importlib.util.find_spec(name) is not None


def _missing(names: "list[str]") -> str:
    text = "this Python lacks {}, which run notebooks; install them: {} -m pip install {}"
    return text.format(" and ".join(names), sys.executable, " ".join(names))


def _refuse(path: str, why: str) -> int:
    sys.stderr.write("{}: error: {}\n".format(os.path.basename(path).replace(" ", "_"), why))
    return _CANNOT_RUN


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
