"""SIGKILL for whoever registers models, at any moment: a model is registered whole, or it is not there.

`CHAOS_SEED` repeats a storm, `CHAOS_MODEL_KILLS` sets how many kills it has.
"""

from __future__ import annotations

import os
import random
import select
import signal
import subprocess
import sys
from pathlib import Path

from tests.conftest import dispatcher_handle
from trainmaster import Experiment, Model, Workspace
from trainmaster.environments.kit import ensure_kit
from trainmaster.shared.folders import WorkspaceFolder

KILLS = int(os.environ.get("CHAOS_MODEL_KILLS", "8"))
FILES = 300
# Every content, and then the list of them, gets its name by a rename: at one of these the program waits to be killed.
REGISTER = """
import signal, sys
from trainmaster import Model, Workspace
workspace = Workspace(path=sys.argv[1])
left = int(sys.argv[3])

def watch(event, arguments):
    global left
    left -= event == "os.rename"
    if event == "os.rename" and not left:
        print("waits", flush=True)
        signal.pause()

sys.addaudithook(watch)
print("begins", flush=True)
print(Model.register(workspace, sys.argv[2], "net").version, flush=True)
"""


def make_model(folder: Path, number: int) -> Path:
    """A folder of many files and some megabytes; no two are alike."""
    place = folder / f"net-{number}"
    place.mkdir()
    for part in range(FILES):
        (place / f"{part}.bin").write_bytes(f"{number} {part}".encode() * 500)
    return place


def test_killed_registrations_leave_whole_models_or_none(workspace: Workspace, tmp_path: Path) -> None:
    seed = int(os.environ.get("CHAOS_SEED", random.randrange(2**32)))
    chance = random.Random(seed)
    print(f"CHAOS_SEED={seed}")
    folder = WorkspaceFolder(workspace.path)
    expected = 0
    for number in range(KILLS):
        source = make_model(tmp_path, number)
        if number % 2:
            kill_client(workspace, source, chance.choice([1, FILES, FILES + 1, chance.randint(2, FILES - 1)]))
        else:
            expected += 1
            assert register_without_dispatcher(workspace, source, folder, chance) == expected
        # One that was not registered takes no number.
        models = Model.list(workspace, name="net")
        assert [model.version for model in models] == list(range(expected, 0, -1))
    for model in models:
        assert len(model.manifest().files) == FILES
        model.verify()
    assert Model.register(workspace, source, "net").version == expected + 1


def kill_client(workspace: Workspace, source: Path, rename: int) -> None:
    with registering(workspace, source, rename) as client:
        assert client.stdout is not None and client.stdout.readline() == "waits\n"
        client.kill()
        assert client.wait(timeout=120) == -signal.SIGKILL


def register_without_dispatcher(
    workspace: Workspace, source: Path, folder: WorkspaceFolder, chance: random.Random
) -> int:
    """The version that a client gets whose dispatcher was killed: the next one answers."""
    with registering(workspace, source, 0) as client:
        assert client.stdout is not None
        # Sometimes before, sometimes in, sometimes after it; an answer cuts the wait short.
        select.select([client.stdout], [], [], chance.uniform(0.0, 0.25))
        kill_dispatcher(folder)
        return int(client.communicate(timeout=120)[0])


JOB = """
from azureml.core import Run
run = Run.get_context()
print("begins", flush=True)
print(run.register_model("net", "outputs/net").version, flush=True)
"""


def test_a_job_whose_dispatcher_is_killed_registers_once(
    workspace: Workspace, tmp_path: Path, notebook_folder: Path
) -> None:
    chance = random.Random(int(os.environ.get("CHAOS_SEED", random.randrange(2**32))))
    run = Experiment(workspace, "jobs").start_logging()
    folder = WorkspaceFolder(workspace.path)
    (folder.run(run.id).files / "outputs").mkdir()
    make_model(folder.run(run.id).files / "outputs", 0).rename(folder.run(run.id).files / "outputs" / "net")
    variables = {
        **os.environ,
        "PYTHONPATH": str(ensure_kit(workspace.path)),
        "TRAINMASTER_RUN_ID": run.id,
        "TRAINMASTER_RUN_FOLDER": str(folder.run(run.id).path),
        "TRAINMASTER_SOCKET": str(folder.socket),
    }
    for version in range(1, 4):
        with subprocess.Popen(
            [sys.executable, "-c", JOB], stdout=subprocess.PIPE, text=True, env=variables, cwd=tmp_path
        ) as job:
            assert job.stdout is not None and job.stdout.readline() == "begins\n"
            select.select([job.stdout], [], [], chance.uniform(0.0, 0.25))
            kill_dispatcher(folder)
            # A job starts no dispatcher; the next client does.
            workspace.connection.call("status")
            assert int(job.communicate(timeout=120)[0]) == version
        assert len(Model.list(workspace)) == version
    Model(workspace, "net").verify()


def registering(workspace: Workspace, source: Path, rename: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", REGISTER, str(workspace.path), str(source), str(rename)]
    client = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert client.stdout is not None and client.stdout.readline() == "begins\n"
    return client


def kill_dispatcher(folder: WorkspaceFolder) -> None:
    handle = dispatcher_handle(folder)
    if handle is not None:
        signal.pidfd_send_signal(handle, signal.SIGKILL)
        select.select([handle], [], [], 60.0)
        os.close(handle)
