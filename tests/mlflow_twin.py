"""The same requests to a real MLflow server and to ours, whose answers must be the same.

What a server chooses itself (ids, times, addresses) is compared by its place: where one server answers with the id of
an experiment, the other must answer with the id of the same experiment.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

from tests.conftest import PATIENCE

_IDS = (
    *("experiment_id", "run_id", "run_uuid", "model_id", "page_token", "next_page_token", "id", "trace_id"),
    *("runId", "experimentId", "modelId"),
)
_TIMES = ("creation_time", "last_update_time", "start_time", "end_time", "creationTime")
_ADDRESSES = ("artifact_uri", "artifact_location", "source", "storage_location", "artifactUri", "rootUri", "root_uri")
_LEFT_OUT = ("workspace",)
"""Its name is our own."""
_FREE_WORDS = ("sqlite3.", "not one of '{", "Valid keys are '{", "page token", "'max_results'")
"""Messages about statements of SQL, with sets in any order, or about what is our own."""
_OFTEN_EMPTY = ("inputs", "outputs")
_JSON = {"Content-Type": "application/json"}
_SORTED = ("tags", "params", "metrics", "aliases")
"""Lists whose order MLflow does not promise."""


@dataclass(frozen=True)
class Pair:
    """What both servers answered at one place."""

    ours: Any
    theirs: Any

    def __getitem__(self, key: str | int) -> Pair:
        return Pair(self.ours[key], self.theirs[key])


@dataclass(frozen=True)
class Answer:
    """The answer of one server."""

    status: int
    body: Any


class Line:
    """A connection to one server."""

    def __init__(self, address: str, token: str = "") -> None:
        parts = urlsplit(address)
        assert parts.hostname and parts.port
        self._connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=PATIENCE)
        self._prefix = parts.path
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def close(self) -> None:
        self._connection.close()

    def send(self, method: str, path: str, arguments: Any, headers: Mapping[str, str] = _JSON) -> Answer:
        body = None
        if method == "GET":
            path += "?" + urlencode(arguments, doseq=True)
        else:
            body = arguments if isinstance(arguments, bytes) else json.dumps(arguments).encode()
        self._connection.request(method, self._prefix + path, body, {**self._headers, **headers})
        found = self._connection.getresponse()
        text = found.read()
        try:
            return Answer(found.status, json.loads(text))
        except ValueError:
            return Answer(found.status, text.decode(errors="replace")[:200])


class Twin:
    """Both servers."""

    def __init__(self, ours: Line, theirs: Line) -> None:
        self._ours, self._theirs = ours, theirs
        self._names: tuple[dict[str, str], dict[str, str]] = {}, {}
        self.differences: list[str] = []
        """Other statuses, codes of errors, or contents."""
        self.wordings: list[str] = []
        """The same errors in other words."""

    def close(self) -> None:
        """Close both connections."""
        self._ours.close()
        self._theirs.close()

    def get(self, path: str, /, **arguments: Any) -> Pair:
        """GET below `/api/2.0/mlflow/`."""
        return self.send("GET", f"/api/2.0/mlflow/{path}", arguments)

    def post(self, path: str, /, **arguments: Any) -> Pair:
        """POST below `/api/2.0/mlflow/`."""
        return self.send("POST", f"/api/2.0/mlflow/{path}", arguments)

    def send(self, method: str, path: str | Pair, arguments: Any, headers: Mapping[str, str] = _JSON) -> Pair:
        """Send one request to both, note a difference, and return both bodies."""
        ours = self._ours.send(method, _pick(path, 0), _pick(arguments, 0), headers)
        theirs = self._theirs.send(method, _pick(path, 1), _pick(arguments, 1), headers)
        self._learn(ours.body, theirs.body)
        one, other = self._normalize(ours, 0), self._normalize(theirs, 1)
        if one != other:
            shown = repr(_pick(arguments, 1))[:300]
            text = f"{method} {_pick(path, 1)} {shown}\n  ours:   {one}\n  theirs: {other}"
            if _code_of(one) is None or _code_of(one) != _code_of(other):
                self.differences.append(text)
            elif not any(part in other[1]["message"] for part in _FREE_WORDS):
                self.wordings.append(text)
        return Pair(ours.body, theirs.body)

    def _learn(self, ours: Any, theirs: Any, key: str = "") -> None:
        """Give names to ids that are at the same place."""
        if isinstance(ours, dict) and isinstance(theirs, dict):
            for each in ours.keys() & theirs.keys():
                self._learn(ours[each], theirs[each], each)
        elif isinstance(ours, list) and isinstance(theirs, list):
            for one, other in zip(ours, theirs, strict=False):
                self._learn(one, other, key)
        elif key in _IDS and _is_new(ours, self._names[0]) and _is_new(theirs, self._names[1]):
            self._names[0][ours] = self._names[1][theirs] = f"<{key} {len(self._names[0])}>"

    def _normalize(self, answer: Answer, side: int) -> tuple[int, Any]:
        return answer.status, self._plain(answer.body, side, "")

    def _plain(self, value: Any, side: int, key: str) -> Any:
        if isinstance(value, Mapping):
            return {
                name: self._plain(each, side, name)
                for name, each in sorted(value.items())
                if name not in _LEFT_OUT and not (name in _OFTEN_EMPTY and not each)
            }
        if isinstance(value, list):
            found = [self._plain(each, side, key) for each in value]
            return sorted(found, key=lambda each: json.dumps(each, sort_keys=True)) if key in _SORTED else found
        if (key in _TIMES or key.endswith(("timestamp", "_time_ms", "timestamp_ms"))) and _is_now(value):
            return "<time>"
        return self._rename(value, side, key) if isinstance(value, str) else value

    def _rename(self, text: str, side: int, key: str) -> str:
        # "1" is the id of an experiment, and the number of a version.
        if text in self._names[side] and (len(text) >= 16 or key in _IDS):
            return self._names[side][text]
        if key in _ADDRESSES or key == "message":
            # Long ids only: "1" is the id of an experiment, and in many texts.
            for each, name in self._names[side].items():
                if len(each) >= 16:
                    text = text.replace(each, name)
                elif key in _ADDRESSES:
                    text = text.replace(f"/{each}/", f"/{name}/").removesuffix(f"/{each}")
        return text


def _is_new(text: Any, names: Mapping[str, str]) -> bool:
    return isinstance(text, str) and bool(text) and text not in names


def _code_of(answer: tuple[int, Any]) -> tuple[int, str] | None:
    """The status and the code of an error; None for an answer that is none."""
    status, body = answer
    return (status, body["error_code"]) if isinstance(body, dict) and "error_code" in body else None


def _pick(value: Any, side: int) -> Any:
    """The arguments for one of the servers."""
    if isinstance(value, Pair):
        return value.theirs if side else value.ours
    if isinstance(value, dict):
        return {name: _pick(each, side) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_pick(each, side) for each in value]
    return value


def _is_now(value: Any) -> bool:
    """Whether a time is one of the server's clock, and not one that a test gave."""
    return isinstance(value, (int, str)) and str(value).isdigit() and int(value) > 1_700_000_000_000
