"""On the server's machine its own variables take the place of the laptop's."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trainmaster.server.own_variables import use_own_variables

SERVER = {"PATH": "/server/bin", "HOME": "/server", "SECRET": "s", "PIP_CERT": "/server.pem"}
INHERITED = {"PATH": "/server/bin", "HOME": "/server"}
LAPTOP = {"script": "train.py", "inherited_variables": {"PATH": "/laptop/bin"}}
JOB = {"script": "train.py", "inherited_variables": INHERITED}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"run": {"id": "a", "spec": json.dumps(LAPTOP)}}, {"run": {"id": "a", "spec": json.dumps(JOB)}}),
        ({"sweep": json.dumps({"job": LAPTOP})}, {"sweep": json.dumps({"job": JOB})}),
        ({"service": {"spec": LAPTOP}}, {"service": {"spec": JOB}}),
        ({"changes": {"spec": LAPTOP}}, {"changes": {"spec": JOB}}),
        ({"changes": {"tags": {}}}, {"changes": {"tags": {}}}),
        # Left to the dispatcher, which refuses it.
        ({"run": {"id": "a", "spec": "{"}}, {"run": {"id": "a", "spec": "{"}}),
        ({"run": 3, "sweep": None}, {"run": 3, "sweep": None}),
        ({"sources": None}, {"sources": {"PIP_CERT": "/server.pem"}}),
        (
            {"sources": {"PIP_INDEX_URL": "https://a", "PIP_FIND_LINKS": "https://b /wheels", "UV_OFFLINE": "1"}},
            {"sources": {"PIP_CERT": "/server.pem", "PIP_INDEX_URL": "https://a", "UV_OFFLINE": "1"}},
        ),
        ({"sources": {"TRAINMASTER_ENVIRONMENTS": "x"}}, {"sources": {"PIP_CERT": "/server.pem"}}),
    ],
)
def test_variables_are_replaced(given: dict[str, Any], expected: dict[str, Any]) -> None:
    assert use_own_variables(given, SERVER) == expected
