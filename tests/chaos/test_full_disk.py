"""A disk that is full, as a small tmpfs: clear errors, nothing half-made, and all is well once there is room."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import end_workspace, ended, until
from tests.left_out import require_root
from trainmaster import Estimator, Experiment, Workspace
from trainmaster.job.errors import TrainmasterError

MEGABYTE = 1024 * 1024


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of 16 MB."""
    require_root("to mount a small file system")
    place = tmp_path / "small"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(place)], check=True)
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.fixture
def full_workspace(small: Path) -> Iterator[Workspace]:
    ws = Workspace.create("small", path=small / "ws", show_output=False)
    yield ws
    (small / "ballast").unlink(missing_ok=True)
    end_workspace(ws.path)


def fill(place: Path, leave: int = 0) -> None:
    """Takes all the room there is."""
    ballast = place / "ballast"
    with open(ballast, "wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * 65536)
        except OSError:
            pass
        if leave:
            file.truncate(file.tell() - leave)


def _estimator(project: object, script: str) -> Estimator:
    return Estimator(str(project(train=script)), entry_script="train.py", compute_target="local", user_managed=True)


def test_submit_on_a_full_disk_says_so_and_leaves_nothing(full_workspace: Workspace, project: object) -> None:
    experiment = Experiment(full_workspace, "full")
    fill(full_workspace.path.parent)
    with pytest.raises(TrainmasterError, match=r"(?i)no space|full"):
        experiment.submit(_estimator(project, "print('never')"))
    (full_workspace.path.parent / "ballast").unlink()
    assert list(experiment.get_runs()) == []
    assert ended(experiment.submit(_estimator(project, "print('now')")))["status"] == "Completed"


def test_a_script_that_fills_the_disk_fails_with_its_own_words(full_workspace: Workspace, project: object) -> None:
    experiment = Experiment(full_workspace, "full")
    run = experiment.submit(
        _estimator(project, "with open('outputs/big', 'wb') as f:\n    while True: f.write(b'0' * 65536)\n")
    )
    until(lambda: any((full_workspace.path / "runs" / run.id / "code" / "outputs").glob("big")), what="the script")
    until(lambda: _settled(full_workspace, run.id), what="the run's end, or a run that waits for room")
    big = next(full_workspace.path.glob(f"runs/{run.id}/*/outputs/big"))
    big.unlink()
    details = ended(run)
    assert details["status"] == "Failed"
    assert "no space left on device" in details["error"]["message"]
    assert ended(experiment.submit(_estimator(project, "print('fine')")))["status"] == "Completed"


def _settled(workspace: Workspace, run_id: str) -> bool:
    record = workspace.connection.call("runs.get", run_id=run_id)
    return record["status"] in ("Failed", "Completed") or "waiting to write" in record["waiting_for"]


def test_a_value_that_cannot_be_kept_is_not_silently_lost(full_workspace: Workspace, project: object) -> None:
    script = (
        "import sys\n"
        "from trainmaster import Run\n"
        "run = Run.get_context()\n"
        "kept = 0\n"
        "try:\n"
        "    while True:\n"
        "        run.log('value', kept)\n"
        "        kept += 1\n"
        "except Exception as error:\n"
        "    import os\n"
        "    os.unlink('outputs/ballast') if os.path.exists('outputs/ballast') else None\n"
        "    print('KEPT', kept, type(error).__name__, flush=True)\n"
    )
    experiment = Experiment(full_workspace, "full")
    source = project(train=script)
    (source / "train.py").write_text(
        "f = open('outputs/ballast', 'wb', buffering=0)\n"
        "try:\n    while True: f.write(b'0' * 65536)\nexcept OSError: pass\n"
        # Room for the bytecode of what the script imports (230 kB), and for some values.
        "f.truncate(f.tell() - 1000000)\nf.close()\n" + script
    )
    run = experiment.submit(Estimator(str(source), entry_script="train.py", compute_target="local", user_managed=True))
    details = ended(run)
    assert details["status"] == "Completed", details["error"]
    log = (full_workspace.path / "runs" / run.id / "files" / "azureml-logs" / "70_driver_log.txt").read_text()
    kept = int(log.split("KEPT ")[1].split()[0])
    assert kept > 100
    assert run.get_metrics()["value"][:kept] == list(range(kept))
