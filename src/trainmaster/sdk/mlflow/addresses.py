"""Addresses by which MLflow knows a workspace on this machine, and the files in it.

Files that a server gives as `mlflow-artifacts:/0/RUN/artifacts` are `trainmaster:///WORKSPACE/mlflow-artifacts/0/RUN/
artifacts` here: MLflow takes the first kind from servers only.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from trainmaster.job.errors import UserErrorException

_SCHEME = "trainmaster://"
_THERE, _HERE = "mlflow-artifacts:/", "/mlflow-artifacts/"


def address_of(workspace: Path) -> str:
    """The address for `mlflow.set_tracking_uri`.

    >>> address_of(Path("/home/ann/my work"))
    'trainmaster:///home/ann/my%20work'
    """
    return _SCHEME + quote(str(workspace))


def workspace_of(address: str) -> Path:
    """The folder of the workspace that an address is of.

    >>> workspace_of("trainmaster:///home/ann/my%20work")
    PosixPath('/home/ann/my work')
    """
    parts = urlsplit(address)
    if parts.netloc or not parts.path.startswith("/"):
        raise UserErrorException(
            f"{address[:200]!r} is not the address of a workspace",
            hint="Use what Workspace.get_mlflow_tracking_uri() returns.",
        )
    return Path(unquote(parts.path))


def is_of_workspace(address: str) -> bool:
    """Whether an address of files is one of these, and not the folder of a job's run. MLflow leaves out slashes.

    >>> is_of_workspace("trainmaster:/ws/mlflow-artifacts/0/a/artifacts"), is_of_workspace("trainmaster:///ws/runs/a")
    (True, False)
    """
    return address.startswith("trainmaster:/") and _HERE in address


def split_files(address: str) -> tuple[Path, tuple[str, ...]]:
    """The workspace and the path of files in it.

    >>> split_files("trainmaster:///ws/mlflow-artifacts/0/abc/artifacts/a%20b")
    (PosixPath('/ws'), ('0', 'abc', 'artifacts', 'a b'))
    """
    before, _, path = address.rpartition(_HERE)
    return workspace_of(before), tuple(unquote(part) for part in path.split("/") if part)


def localize(answer: Any, workspace: Path) -> Any:
    """An answer with addresses of this machine for those of a server."""
    return _replace(answer, re.compile(rf"^{_THERE}/*"), address_of(workspace) + _HERE)


def globalize(question: Any, workspace: Path) -> Any:
    """The arguments of a request with addresses of a server for those of this machine.

    >>> globalize({"source": "trainmaster:///ws/mlflow-artifacts/0/abc/artifacts/net"}, Path("/ws"))
    {'source': 'mlflow-artifacts:/0/abc/artifacts/net'}
    """
    path = re.escape(quote(str(workspace)) + _HERE)
    return _replace(question, re.compile(f"^trainmaster:(//)?{path}"), _THERE)


_FIELDS = frozenset({"artifact_uri", "artifact_location", "source"})


def _replace(value: Any, pattern: re.Pattern[str], by: str) -> Any:
    if isinstance(value, dict):
        return {
            name: pattern.sub(lambda _: by, each)
            if name in _FIELDS and isinstance(each, str)
            else _replace(each, pattern, by)
            for name, each in value.items()
        }
    return [_replace(each, pattern, by) for each in value] if isinstance(value, list) else value
