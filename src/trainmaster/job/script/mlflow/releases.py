"""Objects and errors that all releases of MLflow have."""

import inspect

from mlflow.exceptions import MlflowException


def made(kind, **fields):
    """An object of MLflow with those fields that it has in this release."""
    known = inspect.signature(kind.__init__).parameters
    return kind(**{name: value for name, value in fields.items() if name in known})


def not_here(what):
    """The error for what a job cannot do."""
    return MlflowException("{} with MLflow is not possible in a job of Trainmaster".format(what))
