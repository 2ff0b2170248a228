"""`Model.package` as an image: built by a real podman from its Dockerfile, run, and called over HTTP."""

from __future__ import annotations

import ensurepip
import json
import re
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import until
from tests.container_engine import Podman, add_image

from trainmaster import Environment, InferenceConfig, Model, Workspace

pytestmark = pytest.mark.timeout(600)

SCRIPT = """
import json, os, sys
from azureml.core.model import Model

def init():
    global factor
    with open(Model.get_model_path("factor")) as file:
        factor = float(file.read())

def run(data):
    return {"result": factor * json.loads(data)["number"], "user": os.getuid(), "python": sys.prefix}
"""
PIP = '#!/bin/sh\nexec python /usr/local/lib/pip.whl/pip "$@"\n'


@pytest.fixture
def base_image(container_engine: Podman, tmp_path: Path) -> None:
    """Stands for the image of the same name in the registry that cannot be reached: a Python with pip, and useradd."""
    (wheel,) = Path(ensurepip.__path__[0]).glob("_bundled/pip-*.whl")
    (tmp_path / "pip").write_text(PIP)
    (tmp_path / "pip").chmod(0o755)
    (tmp_path / "empty").touch()
    files = {"usr/local/lib/pip.whl": wheel, "usr/local/bin/pip": tmp_path / "pip"}
    files.update({f"etc/{name}": tmp_path / "empty" for name in ("login.defs", "shadow", "gshadow")})
    name = f"docker.io/library/python:{sys.version_info.major}.{sys.version_info.minor}-slim"
    add_image(container_engine, name, files=files, programs=["useradd"])


@pytest.fixture
def service(container_engine: Podman) -> Iterator[str]:
    """The name for a container; it is gone after the test."""
    yield "trainmaster-test-service"
    container_engine.run("rm", "--force", "--ignore", "--time", "0", "trainmaster-test-service")


def test_it_is_built_and_answers(
    container_engine: Podman, base_image: None, service: str, shared: Workspace, tmp_path: Path
) -> None:
    (tmp_path / "score.py").write_text(SCRIPT)
    (tmp_path / "factor.txt").write_text("10")
    model = Model.register(shared, str(tmp_path / "factor.txt"), "factor")
    config = InferenceConfig("score.py", source_directory=str(tmp_path), environment=Environment("plain"))
    made = Model.package(shared, [model], config, image_name="trainmaster-test-scoring", image_label="7")
    made.pull()
    assert made.location == "trainmaster-test-scoring:7"
    container_engine.run("run", "--detach", "--name", service, "--network", "host", "--env", "PORT=0", made.location)
    found = until(lambda: re.search(r"running on http://0\.0\.0\.0:(\d+)", said_by(container_engine, service)), 120)
    answer = asked(int(found[1]), {"number": 4.2})
    assert (answer["result"], answer["python"]) == (42.0, "/usr/local")
    assert answer["user"] != 0


def said_by(engine: Podman, name: str) -> str:
    running = engine.run("inspect", "--format", "{{.State.Status}}", name).strip()
    said = engine.logs(name)
    assert running == "running", f"{running}: {said}"
    return said


def asked(port: int, question: object) -> Any:
    body = json.dumps(question).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}/score", body, {"Content-Type": "application/json"})
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as answer:
        return json.load(answer)
