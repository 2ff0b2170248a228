"""What v1's Workspace and Run could do and this release cannot yet: the one place where that is said."""

from __future__ import annotations

from typing import NoReturn


def register_model() -> NoReturn:
    """Models have a release of their own."""
    raise NotImplementedError(
        "run.register_model: models arrive in a later release of Trainmaster. "
        "Until then the files of a run can be had with run.download_file(name)."
    )


def secrets(method: str) -> NoReturn:
    """Secrets come with the workspace's key store."""
    raise NotImplementedError(
        f"{method}: secrets arrive in a later release of Trainmaster. "
        "Until then hand them to the job in environment_variables."
    )


def mlflow_tracking() -> NoReturn:
    """MLflow speaks to a server."""
    raise NotImplementedError(
        "workspace.get_mlflow_tracking_uri: MLflow tracking arrives in a later release of Trainmaster. "
        "Until then log with run.log(name, value)."
    )
