"""Sends requests of MLflow's clients in a job to the workspace."""

from mlflow.exceptions import MlflowException

from trainmaster.job.errors import TrainmasterError
from trainmaster.job.script.asking import ask

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def send(method: str, path: str, arguments: "dict[str, Any]") -> "Any":
    """The status and the body of the answer."""
    try:
        given = {"method": method, "path": path, "arguments": arguments}
        return ask(
            "mlflow.call", given, "MLflow's experiments, runs and models", "What is logged is kept all the same."
        )
    except TrainmasterError as error:
        raise MlflowException(str(error)) from None
