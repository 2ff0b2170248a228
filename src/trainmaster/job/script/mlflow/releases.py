"""Objects and errors for all releases of MLflow."""

import inspect

from mlflow.exceptions import MlflowException

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def make(kind: "Any", **fields: "Any") -> "Any":
    """An object of MLflow, with the fields that it has in the installed release."""
    known = inspect.signature(kind.__init__).parameters
    return kind(**{name: value for name, value in fields.items() if name in known})


def not_here(what: str) -> "MlflowException":
    """The error for what a job cannot do."""
    return MlflowException("{} with MLflow is not possible in a job of Trainmaster".format(what))
