"""The addresses by which MLflow's clients download the files of registered models. Pure."""

from __future__ import annotations

from urllib.parse import quote, unquote

ADDRESS_TOP = "mlflow-artifacts:/models/"
TOP = "models"
"""The first part of the path; that of a run's files is the number of an experiment."""


def make_address(name: str, version: int) -> str:
    """The address of a version's files.

    >>> make_address("mnist", 3), make_address("my model", 1)
    ('mlflow-artifacts:/models/mnist/3', 'mlflow-artifacts:/models/my%20model/1')
    """
    return f"{ADDRESS_TOP}{quote(name)}/{version}"


def read_parts(parts: tuple[str, ...]) -> tuple[str, int, tuple[str, ...]] | None:
    """The name, the version and the rest of a path; None if it is not one of a registered model.

    >>> read_parts(("models", "my%20model", "1", "MLmodel"))
    ('my model', 1, ('MLmodel',))
    >>> read_parts(("3", "f00", "artifacts"))
    """
    if len(parts) < 3 or parts[0] != TOP or not parts[2].isascii() or not parts[2].isdecimal() or len(parts[2]) > 9:
        return None
    return unquote(parts[1]), int(parts[2]), parts[3:]
