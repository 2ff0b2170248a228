"""`trainmaster env ...` and `submit --refresh-env` as a person uses them: real processes, wheels made on the spot."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.chaos.wheels import make_wheel

from trainmaster import Workspace


@pytest.fixture(autouse=True)
def sources(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    wheels = tmp_path_factory.mktemp("wheels")
    make_wheel(wheels, "moves", "1.0")
    for name in [each for each in os.environ if each.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    return wheels


def tell(workspace: Workspace, *argv: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "trainmaster.cli", *argv, "--workspace", str(workspace.path)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == code, (argv, done.returncode, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    return done


def data(workspace: Workspace, *argv: str, code: int = 0) -> Any:
    return json.loads(tell(workspace, *argv, "--json", code=code).stdout)


def test_build_list_show_refresh_prune(workspace: Workspace, sources: Path, project: Any) -> None:
    assert data(workspace, "env", "list") == []
    built = tell(workspace, "env", "build", "--pip", "moves")
    first = built.stdout.strip()
    assert first.endswith(".1")
    assert "uv pip compile moves" in built.stderr and "is ready after" in built.stderr
    # There already: nothing is built, nothing is shown.
    again = tell(workspace, "env", "build", "--pip", "moves")
    assert (again.stdout.strip(), again.stderr) == (first, "")

    make_wheel(sources, "moves", "2.0")
    second = data(workspace, "env", "build", "--pip", "moves", "--refresh")
    assert second["name"] == f"{second['digest']}.2"
    listed = {each["name"]: each for each in data(workspace, "env", "list")}
    assert [listed[name]["current"] for name in (first, second["name"])] == [False, True]
    assert listed[second["name"]]["packages"] == ["moves"]
    assert 0 < second["own_bytes"] <= second["bytes"]
    assert "(replaced)" in tell(workspace, "env", "list").stdout

    shown = data(workspace, "env", "show", second["digest"][:8])
    assert [(each["name"], each["version"]) for each in shown["locked"]] == [("moves", "2.0")]
    assert "moves==1.0" in tell(workspace, "env", "show", first).stdout

    assert data(workspace, "env", "prune", "--dry-run")["removed"] == [first]
    assert Path(listed[first]["path"]).is_dir()
    assert data(workspace, "env", "prune")["removed"] == [first]
    assert not Path(listed[first]["path"]).exists()
    assert data(workspace, "env", "prune", "--older-than", "1")["removed"] == []
    assert data(workspace, "env", "prune", "--keep-bytes", "0")["removed"] == [second["name"]]
    assert data(workspace, "env", "list") == []


def test_refresh_for_a_run(workspace: Workspace, sources: Path, project: Any) -> None:
    folder = str(project(train="import moves, importlib.metadata as m; print(m.version('moves'))"))
    arguments = ["submit", folder, "train.py", "--pip", "moves", "--wait"]
    assert tell(workspace, *arguments).stdout.strip() == "1.0"
    make_wheel(sources, "moves", "2.0")
    assert tell(workspace, *arguments).stdout.strip() == "1.0"
    assert tell(workspace, *arguments, "--refresh-env").stdout.strip() == "2.0"
    assert "moves==2.0" in tell(workspace, "env", "show", "last").stdout
    assert "moves==1.0" in tell(workspace, "env", "show", "@2").stdout


def test_what_cannot_be_done(workspace: Workspace, project: Any) -> None:
    failed = data(workspace, "env", "build", "--pip", "no-such-package", code=2)
    assert "no-such-package was not found" in failed["error"]["cause"]
    assert "no environment and no run" in tell(workspace, "env", "show", "nothing", code=4).stderr
    assert "must not be negative" in tell(workspace, "env", "prune", "--keep-bytes", "-1", code=2).stderr
    folder = str(project(train=""))
    wrong = tell(workspace, "submit", folder, "train.py", "--user-managed", "--refresh-env", code=2)
    assert "--refresh-env cannot be used with" in wrong.stderr


def test_a_build_that_fails_says_why_once(workspace: Workspace, project: Any) -> None:
    folder = str(project(train=""))
    for argv, code in (
        (["env", "build", "--pip", "absent-package"], 2),
        (["submit", folder, "train.py", "--pip", "absent-package", "--refresh-env"], 2),
        (["submit", folder, "train.py", "--pip", "absent-package", "--wait"], 1),
    ):
        told = tell(workspace, *argv, code=code).stderr
        for words in ("No solution found", "the environment could not be built", "Check the spelling"):
            assert told.count(words) == 1, (words, told)
    # A program reads the error alone.
    error = data(workspace, "env", "build", "--pip", "absent-package", code=2)["error"]
    assert "No solution found" in error["cause"] and "Check the spelling" in error["hint"]
