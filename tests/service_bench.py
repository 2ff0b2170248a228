"""What tests of services share: models that multiply by a number, a script that serves them, plain HTTP requests."""

from __future__ import annotations

import http.client
import json
import os
import signal
import struct
import sys
from pathlib import Path
from typing import Any

from tests.backends import folder_of
from tests.conftest import wait_gone
from trainmaster import Environment, InferenceConfig, LocalWebservice, Model, Webservice, Workspace
from trainmaster.job.agent import jsonfile
from trainmaster.shared.folders import WorkspaceFolder

SCORE = """
import json, os
from azureml.core.model import Model

def init():
    global factor
    with open(Model.get_model_path("factor")) as file:
        factor = json.load(file)["factor"]
    print("loaded", factor, "from", os.environ["AZUREML_MODEL_DIR"])

def run(data):
    return {"result": [factor * each for each in json.loads(data)["data"]], "process": os.getpid()}
"""
ASKED = json.dumps({"data": [1, 2]})


def own_python() -> Environment:
    """The Python of the tests, which has what the server needs: nothing is built."""
    environment = Environment("own")
    environment.python.user_managed_dependencies = True
    environment.python.interpreter_path = sys.executable
    return environment


class Bench:
    """A workspace, a folder with a scoring script, and models that multiply by a number."""

    def __init__(self, workspace: Workspace, place: Path) -> None:
        self.workspace = workspace
        self.place = place
        self.script("score.py", SCORE)

    def script(self, name: str, text: str) -> Path:
        path = self.place / name
        path.write_text(text)
        return path

    def model(self, factor: int) -> Model:
        file = self.place / "factor.json"
        file.write_text(json.dumps({"factor": factor}))
        return Model.register(self.workspace, str(file), "factor")

    def config(self, script: str = "score.py", **settings: Any) -> InferenceConfig:
        settings.setdefault("environment", own_python())
        return InferenceConfig(script, source_directory=str(self.place), **settings)

    def deploy(self, name: str, factor: int = 2, config: Any = None, wait: bool = True, **settings: Any) -> Any:
        deployment = settings.pop("deployment_config", None) or LocalWebservice.deploy_configuration()
        service = Model.deploy(
            self.workspace, name, [self.model(factor)], config or self.config(), deployment, **settings
        )
        if wait:
            service.wait_for_deployment()
        return service


def supervisor_of(workspace: Workspace, name: str) -> int:
    pid: int = jsonfile.read(str(folder_of(workspace) / "services" / name / "supervisor.json"))["pid"]
    return pid


def ask(service: Webservice, body: str = ASKED, **headers: str) -> tuple[int, Any]:
    """A plain HTTP request, as any program would send it."""
    connection = http.client.HTTPConnection("127.0.0.1", service._record.port, timeout=60)
    connection.request("POST", "/score", body=body, headers={"Content-Type": "application/json", **headers})
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, json.loads(text) if answer.status == 200 else text.decode()


def kill(pid: int) -> None:
    handle = os.pidfd_open(pid)
    os.kill(pid, signal.SIGKILL)
    wait_gone(handle)


def kill_dispatcher(folder: WorkspaceFolder) -> None:
    kill(int(folder.lock.read_text()))


def onnx_times(factor: float, size: int) -> bytes:
    """An ONNX file that multiplies rows of so many numbers, put together byte by byte: no package is needed for it."""

    def field(place: int, value: int | str | bytes) -> bytes:
        if isinstance(value, int):
            return bytes((place << 3, value))
        data = value.encode() if isinstance(value, str) else value
        assert len(data) < 128
        return bytes((place << 3 | 2, len(data))) + data

    def end(name: str) -> bytes:
        sizes = field(1, field(2, "batch")) + field(1, field(1, size))
        return field(1, name) + field(2, field(1, field(1, 1) + field(2, sizes)))

    node = field(1, "x") + field(1, "w") + field(2, "y") + field(4, "Mul")
    weight = field(1, 1) + field(2, 1) + field(8, "w") + field(9, struct.pack("<f", factor))
    parts = (field(1, node), field(2, "g"), field(5, weight), field(11, end("x")), field(12, end("y")))
    graph = b"".join(parts)
    # Longer than one byte can say.
    size_of_graph = bytes((len(graph) & 0x7F | 0x80, len(graph) >> 7))
    return field(1, 8) + field(8, field(2, 17)) + bytes((7 << 3 | 2,)) + size_of_graph + graph
