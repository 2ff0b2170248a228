"""Secrets of the workspace, which a job asks the dispatcher for: none of its variables contains them."""

import os

from trainmaster.job.errors import UserErrorException
from trainmaster.job.script.asking import ask

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence


class JobKeyvault:
    """The secrets of the job's workspace, to be read; anything else needs the full Trainmaster."""

    def __init__(self, workspace: "Any") -> None:
        self.workspace = workspace

    def get_secret(self, name: str) -> "str | None":
        """The value; None, with a warning, for an unknown name."""
        return get_secrets(os.environ["TRAINMASTER_RUN_ID"], [name])[name]

    def get_secrets(self, secrets: "Sequence[str]") -> "dict[str, str | None]":
        """Name to value; None, with a warning, for an unknown name."""
        return get_secrets(os.environ["TRAINMASTER_RUN_ID"], secrets)

    def __getattr__(self, name: str) -> "Any":
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.workspace.__getattr__("get_default_keyvault")(), name)


def get_secrets(run_id: str, names: "Sequence[str]") -> "dict[str, str | None]":
    """Name to value; None, with a warning, for a name that the workspace does not have."""
    if not isinstance(names, (list, tuple, set)) or not all(isinstance(name, str) for name in names):
        raise UserErrorException("names of secrets must be a list of texts")
    hint = "'trainmaster up' starts the dispatcher."
    found: "dict[str, str | None]" = ask("secrets.fetch", {"run_id": run_id, "names": list(names)}, "secrets", hint)
    for name in sorted(name for name, value in found.items() if value is None):
        import warnings

        warnings.warn("there is no secret {!r} in this workspace".format(name), stacklevel=3)
    return found
