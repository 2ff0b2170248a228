"""Where the files of a model are for a script that knows only its name: in a service, or at a path."""

import os

from trainmaster.job.errors import ModelNotFoundException, WebserviceException

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator

FOLDER = "azureml-models"


def find_in_service(name: str, version: "int | None") -> "str | None":
    """The model's file or folder below `azureml-models/<name>/<version>`, the highest version unless one is given.

    None where there is no such folder: this is not a service, or the service does not have the model.
    """
    for root in _roots():
        folder = _version_folder(os.path.join(root, name), version)
        if folder is not None:
            return _only_entry(folder)
    return None


def as_path(name: str, missing: "ModelNotFoundException | None" = None) -> str:
    """`name` itself, if it is the path of a file or folder; else raises `missing`, the error of an earlier search."""
    if os.path.exists(name):
        return name
    raise missing or ModelNotFoundException(
        "ModelNotFound: there is no model {!r} here".format(str(name)[:300]),
        cause="Looked for {}/{} and for a path of that name, in the folder {}".format(
            FOLDER, str(name)[:300], os.getcwd()
        ),
        hint="Outside of jobs and services use Model(workspace, name).download().",
    )


def _roots() -> "Iterator[str]":
    yield FOLDER
    parts = os.path.abspath(os.environ.get("AZUREML_MODEL_DIR") or FOLDER).split(os.sep)
    if FOLDER in parts:
        # For one model the variable names the model's own folder, for several the folder of all of them.
        yield os.sep.join(parts[: len(parts) - parts[::-1].index(FOLDER)])


def _version_folder(folder: str, version: "int | None") -> "str | None":
    try:
        found = [each for each in os.listdir(folder) if each.isdecimal()]
    except OSError:
        return None
    if version is not None:
        found = [each for each in found if int(each) == version]
    return os.path.join(folder, max(found, key=int)) if found else None


def _only_entry(folder: str) -> str:
    entries = sorted(os.listdir(folder))
    # Programs put caches beside their models.
    visible = [each for each in entries if not each.startswith(".")] or entries
    if len(visible) != 1:
        raise WebserviceException(
            "{} has to have exactly one entry, the model".format(folder),
            cause="It has: {}".format(", ".join(visible[:20]) or "none"),
        )
    return os.path.join(folder, visible[0])
