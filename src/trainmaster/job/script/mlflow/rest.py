"""MLflow's own clients of its REST API, which ask the dispatcher instead of a server."""

import json

from mlflow.exceptions import RestException
from mlflow.store.model_registry import rest_store as rest_registry
from mlflow.store.model_registry.rest_store import RestStore as RestRegistry
from mlflow.store.tracking import rest_store
from mlflow.store.tracking.rest_store import RestStore
from mlflow.utils.proto_json_utils import parse_dict
from mlflow.utils.rest_utils import MlflowHostCreds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    Send = Callable[[str, str, dict[str, Any]], dict[str, Any]]
    """Takes the method, the path below `/api/` and the arguments; returns the status and the body as JSON text."""

_API = "/api/"


def call(send: "Send", endpoint: str, method: str, body: "str | None", answer: "Any") -> "Any":
    """The message that an endpoint answers with. Raises MLflow's error."""
    found = send(method, endpoint.partition(_API)[2], json.loads(body) if body else {})
    content = json.loads(found["body"])
    if found["status"] != 200:
        raise RestException(content)
    parse_dict(content, answer)
    return answer


class AskingStore(RestStore):  # type: ignore[misc]
    """Experiments, runs and logged models of a workspace."""

    def __init__(self, address: str, send: "Send") -> None:
        # MLflow prints this address. What it sends there without asking this store, fails.
        super(AskingStore, self).__init__(lambda: MlflowHostCreds(address))
        self._send = send

    def _call_endpoint(self, api: "Any", json_body: "Any" = None, endpoint: "Any" = None, **_: "Any") -> "Any":
        # A table of the module in MLflow 2, of the class in MLflow 3.
        table = getattr(self, "_METHOD_TO_INFO", None) or rest_store._METHOD_TO_INFO
        usual, method = table[api]
        return call(self._send, endpoint or usual, method, json_body, api.Response())


class AskingRegistry(RestRegistry):  # type: ignore[misc]
    """Registered models of a workspace."""

    def __init__(self, address: str, send: "Send") -> None:
        super(AskingRegistry, self).__init__(lambda: MlflowHostCreds(address))
        self._send = send

    def _call_endpoint(self, api: "Any", json_body: "Any" = None, *_: "Any", **__: "Any") -> "Any":
        find = getattr(self, "_get_endpoint_from_method", None) or rest_registry._METHOD_TO_INFO.__getitem__
        endpoint, method = find(api)
        return call(self._send, endpoint, method, json_body, api.Response())
