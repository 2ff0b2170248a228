"""Secrets of the workspace, over the dispatcher's socket: they lie in no file and in no variable of the job."""

from trainmaster.errors import UserErrorException
from trainmaster.runtime.asking import ask


def get_secrets(run_id, names):
    """Name to value; None, with a warning, for a name that the workspace does not have."""
    if not isinstance(names, (list, tuple, set)) or not all(isinstance(name, str) for name in names):
        raise UserErrorException("names of secrets must be a list of texts")
    hint = "'trainmaster up' starts the dispatcher. In a container secrets cannot be had."
    found = ask("secrets.fetch", {"run_id": run_id, "names": list(names)}, "secrets", hint)
    for name in sorted(name for name, value in found.items() if value is None):
        import warnings

        warnings.warn("there is no secret {!r} in this workspace".format(name), stacklevel=3)
    return found
