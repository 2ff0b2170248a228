"""Where the files of models lie for a script that knows only a name: in a service, and as a last resort a path."""

import os

from trainmaster.job.errors import ModelNotFoundException, WebserviceException

FOLDER = "azureml-models"


def in_service(name, version):
    """The model's file or folder below `azureml-models/<name>/<version>`, the highest version unless one is given.

    None where there is no such folder: then this is no service, or one without that model.
    """
    for root in _roots():
        folder = _version_folder(os.path.join(root, name), version)
        if folder is not None:
            return _only_entry(folder)
    return None


def as_path(name, missing=None):
    """`name` as a path from here, which has to be there; `missing` is the error of whoever looked before."""
    if os.path.exists(name):
        return name
    raise missing or ModelNotFoundException(
        "ModelNotFound: there is no model {!r} here".format(str(name)[:300]),
        cause="Looked for {}/{} and for a path of that name, from the folder {}".format(
            FOLDER, str(name)[:300], os.getcwd()
        ),
        hint="Outside of jobs and services use Model(workspace, name).download().",
    )


def _roots():
    yield FOLDER
    parts = os.path.abspath(os.environ.get("AZUREML_MODEL_DIR") or FOLDER).split(os.sep)
    if FOLDER in parts:
        # With one model the variable names its own folder, with several the folder of all.
        yield os.sep.join(parts[: len(parts) - parts[::-1].index(FOLDER)])


def _version_folder(folder, version):
    try:
        found = [each for each in os.listdir(folder) if each.isdecimal()]
    except OSError:
        return None
    if version is not None:
        found = [each for each in found if int(each) == version]
    return os.path.join(folder, max(found, key=int)) if found else None


def _only_entry(folder):
    entries = sorted(os.listdir(folder))
    # Programs put caches beside their models.
    shown = [each for each in entries if not each.startswith(".")] or entries
    if len(shown) != 1:
        raise WebserviceException(
            "{} has to have exactly one entry, the model".format(folder),
            cause="It has: {}".format(", ".join(shown[:20]) or "none"),
        )
    return os.path.join(folder, shown[0])
