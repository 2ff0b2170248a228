"""The machine loses power: what was acknowledged before is there afterwards, whole, and what was queued runs."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.disks import Disk
from tests.chaos.wheels import make_wheel
from tests.conftest import end_workspace, ended, until
from trainmaster import ComputeTarget, Estimator, Experiment, LocalCompute, Model, Workspace
from trainmaster.environments import prefix
from trainmaster.environments.build import build
from trainmaster.environments.private_wheel import keep_wheel
from trainmaster.shared.job_spec import EnvironmentSpec

NUMBERS = bytes(range(256)) * 400
TRAIN = f"""
import os
from trainmaster import Run
run = Run.get_context()
with open("outputs/model.bin", "wb") as file:
    file.write({NUMBERS[:256]!r} * 400)
with open("elsewhere.txt", "w") as file:
    file.write("uploaded" * 1000)
run.upload_file("kept/elsewhere.txt", "elsewhere.txt")
run.log("loss", 0.25)
print("trained")
"""


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    disk = Disk(tmp_path)
    monkeypatch.setenv("TRAINMASTER_HOME", str(disk.path / "home"))
    yield disk
    disk.close()


@pytest.fixture
def place(disk: Disk) -> Iterator[Path]:
    yield disk.path / "ws"
    end_workspace(disk.path / "ws")


def reopened(ws: Workspace, disk: Disk) -> Workspace:
    ws.connection.close()
    disk.cut_power()
    return Workspace(path=ws.path)


def test_what_was_acknowledged_survives(disk: Disk, place: Path, project: Callable[..., Path], tmp_path: Path) -> None:
    ws = Workspace.create("cut", path=place, show_output=False)
    ComputeTarget.create(ws, "box", LocalCompute.configuration(nodes=1, cpus_per_node=1, gpus_per_node=0))
    experiment = Experiment(ws, "cut")
    trained = experiment.submit(_estimator(project("first", train=TRAIN)))
    assert ended(trained)["status"] == "Completed"
    spec = (ws.path / "runs" / trained.id / "spec.json").read_bytes()
    (tmp_path / "weights.pkl").write_bytes(NUMBERS)
    Model.register(ws, str(tmp_path / "weights.pkl"), "weights")
    ws.get_default_keyvault().set_secret("token", "s3cr3t")
    ws.get_default_datastore().upload_files([str(tmp_path / "weights.pkl")], target_path="data", show_progress=False)
    logged = experiment.start_logging(snapshot_directory=None)
    logged.upload_file("notes.bin", str(tmp_path / "weights.pkl"))
    logged.complete()
    running = experiment.submit(_estimator(project("second", train="import time\ntime.sleep(600)\n")))
    until(lambda: running.get_status() == "Running", what="a run that holds the node")
    queued = experiment.submit(_estimator(project("third", train="import part\n", part="print('part' * 1000)\n")))
    ws = reopened(ws, disk)
    assert ws.name == "cut"
    again = {run.id: run for run in Experiment(ws, "cut").get_runs()}
    assert set(again) == {trained.id, logged.id, running.id, queued.id}
    # What had ended is as it was.
    done = again[trained.id]
    assert (done.get_status(), done.get_metrics()) == ("Completed", {"loss": 0.25})
    assert _contents(done, "outputs/model.bin", tmp_path) == NUMBERS
    assert _contents(done, "kept/elsewhere.txt", tmp_path) == b"uploaded" * 1000
    assert b"trained" in _contents(done, "azureml-logs/70_driver_log.txt", tmp_path)
    assert (ws.path / "runs" / done.id / "spec.json").read_bytes() == spec
    assert _contents(again[logged.id], "notes.bin", tmp_path) == NUMBERS
    found = Model(ws, "weights").download(target_dir=str(tmp_path / "downloaded"))
    assert Path(found).read_bytes() == NUMBERS
    assert ws.get_default_keyvault().get_secret("token") == "s3cr3t"
    ws.get_default_datastore().download(str(tmp_path / "downloaded"), prefix="data", show_progress=False)
    assert (tmp_path / "downloaded" / "data" / "weights.pkl").read_bytes() == NUMBERS
    # What ran has lost its processes; what was queued runs, from a whole snapshot.
    assert ended(again[running.id])["status"] == "Failed"
    assert ended(again[queued.id])["status"] == "Completed"
    assert b"part" * 1000 in _contents(again[queued.id], "azureml-logs/70_driver_log.txt", tmp_path)


def test_a_workspace_is_there_as_soon_as_create_returns(disk: Disk, place: Path) -> None:
    ws = Workspace.create("cut", path=place / "far" / "down", show_output=False, tags={"a": "b"})
    identity = (ws.path / "workspace.json").read_bytes()
    ws.write_config(path=place)
    ws = reopened(ws, disk)
    assert (ws.path / "workspace.json").read_bytes() == identity
    assert json.loads((place / ".azureml" / "config.json").read_text())["workspace_name"] == "cut"


def test_an_environment_that_was_called_ready_is_whole(
    disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [each for each in os.environ if each.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    make_wheel(tmp_path / "wheels", "packagea")
    given = keep_wheel(disk.path / "given", make_wheel(tmp_path / "others", "packageb"), exist_ok=False)
    folder = build(disk.path / "environments", EnvironmentSpec(pip_packages=("packagea",)))
    sizes = _sizes(folder)
    disk.cut_power()
    ready = prefix.find_ready(disk.path / "environments", folder.name.partition(".")[0])
    assert ready == folder
    assert _sizes(folder) == sizes
    assert Path(given.removeprefix("file://")).read_bytes() == (tmp_path / "others" / Path(given).name).read_bytes()
    said = subprocess.run([folder / "bin/python", "-c", "import packagea; print(packagea.NAME)"], capture_output=True)
    assert said.stdout == b"packagea\n"


def _estimator(source: Path) -> Estimator:
    return Estimator(str(source), entry_script="train.py", compute_target="box", user_managed=True)


def _contents(run: Any, name: str, tmp_path: Path) -> bytes:
    target = tmp_path / "got" / name
    run.download_file(name, str(target))
    return target.read_bytes()


def _sizes(folder: Path) -> dict[str, int]:
    """Of all files; what Python made on import is no part of the build."""
    files = [path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return {str(path.relative_to(folder)): path.stat().st_size for path in files}
