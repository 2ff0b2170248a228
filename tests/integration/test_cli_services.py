"""`trainmaster services ...` as a person uses it: real processes, real services."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.backends import new_name
from tests.conftest import end_workspace
from tests.service_bench import ASKED, SCORE

BACKENDS = ("local", "server")

COMMAND = [sys.executable, "-m", "trainmaster.cli"]


class Shell:
    """Runs commands in a folder, with a home of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.variables = {**os.environ, "TRAINMASTER_HOME": str(folder / "home")}

    def __call__(self, *argv: str, code: int = 0, given: str = "") -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [*COMMAND, *argv],
            cwd=self.folder,
            env=self.variables,
            input=given,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == code, (argv, done.returncode, done.stdout, done.stderr)
        return done

    def json(self, *argv: str, code: int = 0) -> Any:
        return json.loads(self(*argv, "--json", code=code).stdout)


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory, backend: Any) -> Iterator[Shell]:
    folder = tmp_path_factory.mktemp("cli-services")
    (folder / "score.py").write_text(SCORE)
    (folder / "broken.py").write_text("def init():\n    raise LookupError('never')\n\ndef run(data):\n    pass\n")
    for factor in (2, 3):
        (folder / f"{factor}").mkdir()
        (folder / f"{factor}" / "factor").write_text(json.dumps({"factor": factor}))
    made = Shell(folder)
    if backend is not None:
        made.variables["TRAINMASTER_WORKSPACE"] = name = new_name("services")
        backend.create_workspace(name)
        yield made
        end_workspace(backend.root / "workspaces" / name)
        return
    yield made
    end_workspace(folder / "home" / "workspaces" / "default")


def test_the_whole_way(shell: Shell) -> None:
    assert "no services yet" in shell("services", "list").stderr
    own = ("--python", sys.executable)
    done = shell("services", "deploy", "mine", "--model", "2/factor", "--script", "score.py", *own, "--tag", "a=b")
    address = done.stdout.strip()
    assert re.match("http://(localhost|127.0.0.1):", address) and "\n" not in address and "ready on port" in done.stderr
    assert json.loads(shell("services", "call", "mine", ASKED).stdout)["result"] == [2, 4]
    assert json.loads(shell("services", "call", "mine", given=ASKED).stdout)["result"] == [2, 4]
    (shell.folder / "request.json").write_text(ASKED)
    assert shell.json("services", "call", "mine", "@request.json")["answer"]["result"] == [2, 4]
    assert [each["name"] for each in shell.json("services", "list")] == ["mine"]
    shown = shell("services", "show", "mine").stdout
    assert "Healthy" in shown and "a=b" in shown and "mine" in shell("services", "list").stdout
    said = shell.json("services", "update", "mine", "--model", "3/factor", "--replicas", "2")
    assert said["numReplicas"] == 2 and said["scoringUri"] == address and said["modelIds"] == ["factor:2"]
    assert shell.json("services", "call", "mine", ASKED)["answer"]["result"] == [3, 6]
    assert "loaded 3 from" in shell("services", "logs", "mine").stdout
    assert "generation 2" in shell("services", "logs", "mine", "--deployment").stdout
    keys = shell.json("services", "keys", "mine")
    assert shell.json("services", "keys", "mine", "--regenerate", "secondary")["primary"] == keys["primary"]
    assert shell.json("services", "delete", "mine") == {"deleted": ["mine"]}
    assert shell.json("services", "show", "mine", code=4)["error"]["headline"].startswith("WebserviceNotFound")


def test_v1_files(shell: Shell) -> None:
    environment = {"name": "own", "python": {"userManagedDependencies": True, "interpreterPath": sys.executable}}
    (shell.folder / "ic.json").write_text(json.dumps({"entryScript": "score.py", "environment": environment}))
    (shell.folder / "dc.json").write_text(
        json.dumps(
            {"computeType": "ACI", "containerResourceRequirements": {"cpu": 1, "memoryInGB": 1}, "authEnabled": True}
        )
    )
    said = shell.json("services", "deploy", "of-files", "-m", "2/factor", "--ic", "ic.json", "--dc", "dc.json")
    assert (said["computeType"], said["authEnabled"], said["settings"]["cpu_cores"]) == ("ACI", True, 1)
    assert shell.json("services", "call", "of-files", ASKED)["answer"]["result"] == [2, 4]
    shell("services", "delete", "of-files")


def test_what_goes_wrong(shell: Shell) -> None:
    own = ("--python", sys.executable)
    failed = shell("services", "deploy", "broken", "-m", "2/factor", "--script", "broken.py", *own, code=1)
    assert "LookupError: never" in failed.stderr
    assert "LookupError" in shell("services", "show", "broken").stdout
    assert "have no keys" in shell("services", "keys", "broken", "--regenerate", "primary", code=2).stderr
    shell("services", "delete", "broken")
    assert "need --script" in shell("services", "deploy", "x-y-z", "-m", "2/factor", *own, code=2).stderr
    assert (
        "specify only one of"
        in shell("services", "deploy", "x-y-z", "--script", "score.py", "--environment", "e", *own, code=2).stderr
    )
    assert (
        shell.json("services", "deploy", "x-y-z", "-m", "unknown", code=4)["error"]["type"] == "ModelNotFoundException"
    )
    local = ("--kind", "local", "--auth")
    assert (
        "does not support these settings"
        in shell("services", "deploy", "x-y-z", "-m", "2/factor", *local, code=2).stderr
    )
    assert shell.json("services", "list") == []
