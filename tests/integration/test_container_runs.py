"""Runs in an image, from submit to their end, with a real podman (`tests/container_engine.py`)."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from pathlib import Path

import pytest
from tests.cluster.slurm import MiniSlurm, variables
from tests.conftest import end_workspace, ended, until
from tests.container_engine import IMAGE, PATH, add_image

from trainmaster import (
    ComputeTarget,
    Dataset,
    Datastore,
    Experiment,
    Gloo,
    LocalCompute,
    Model,
    Mpi,
    PyTorch,
    Workspace,
)
from trainmaster.engines.plans import read_claim
from trainmaster.environments import findings
from trainmaster.job.agent.tree import processes_of
from trainmaster.sdk.compute.slurm import SlurmCompute
from trainmaster.shared.folders import WorkspaceFolder

pytestmark = [pytest.mark.timeout(600), pytest.mark.usefixtures("container_engine")]

LOG = "azureml-logs/70_driver_log.txt"
PATIENCE = 120.0
KNOWS_ITS_RUN = """
import os, azureml.core
run = azureml.core.Run.get_context()
run.log("seen", 1)
os.makedirs("outputs/deep", exist_ok=True)
open("outputs/deep/made", "w").close()
print(run.id, os.environ["MINE"], os.environ["HOME"], os.environ["PATH"])
"""
STUBBORN = """
import signal, time
signal.signal(signal.SIGTERM, lambda *_: print("told", flush=True))
print("waits", flush=True)
while True:
    time.sleep(1)
"""
SAVES = """
import signal, sys
def save(*_):
    open("outputs/saved", "w").close()
    sys.exit(3)
signal.signal(signal.SIGTERM, save)
print("waits", flush=True)
signal.pause()
"""
# The working folder is the same one inside and outside.
AT_A_GATE = """
import os, time
print("waits", flush=True)
while not os.path.exists("open"):
    time.sleep(0.1)
print("went on", flush=True)
"""
MEET = """
import json, os, socket
names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "NODE_RANK")
mine = {name: int(os.environ[name]) for name in names}
place = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
if mine["RANK"] == 0:
    with socket.create_server(place) as server:
        met = [mine]
        while len(met) < mine["WORLD_SIZE"]:
            with server.accept()[0] as line:
                met.append(json.loads(line.makefile().readline()))
    json.dump(met, open("outputs/met.json", "w"))
else:
    while True:
        try:
            with socket.create_connection(place) as line:
                line.sendall(json.dumps(mine).encode() + b"\\n")
            break
        except ConnectionRefusedError:
            pass
"""


ASKS = """
from azureml.core import Dataset, Model, Run
run = Run.get_context()
ws = run.experiment.workspace
print(len(run.get_secret("token")))
print(open(Model.get_model_path("known")).read())
for name in ("inner", "outer"):
    print(open(Dataset.get_by_name(ws, name).download("/tmp/" + name)[0]).read())
with open("outputs/model.txt", "w") as file:
    file.write("trained")
print(run.register_model("mine", model_path="outputs/model.txt").id)
with open("/tmp/model.txt", "w") as file:
    file.write("seen only inside")
print(Model.register(ws, "/tmp/model.txt", "other").id)
store = ws.get_default_datastore()
print(store.upload_files(["/tmp/model.txt"], target_path="made", show_progress=False).path_on_datastore)
print(store.download("/tmp/got", prefix="made", show_progress=False), open("/tmp/got/made/model.txt").read())
"""


def text(run, log=LOG):
    return run.get_details_with_logs()["logFiles"].get(log, "")


def await_line(run, line):
    until(lambda: line in text(run).splitlines() or run.get_status() == "Failed", PATIENCE, f"'{line}'")
    assert line in text(run).splitlines(), run.get_details_with_logs()


def nothing_is_left(run, engine):
    assert engine.containers(run.id) == []
    assert processes_of(run.id) == []


def folder_of(run):
    return WorkspaceFolder(Path(run.experiment.workspace.path)).run(run.id)


def test_the_script_runs_and_knows_its_run(launch, podman):
    run = launch(KNOWS_ITS_RUN, custom_docker_image=IMAGE, environment_variables={"MINE": "yes"})
    details = ended(run)
    assert details["status"] == "Completed", run.get_details_with_logs()
    assert details["warnings"] == []
    assert text(run) == f"{run.id} yes /tmp {PATH}\n"
    assert run.get_metrics() == {"seen": 1}
    assert "outputs/deep/made" in run.get_file_names()
    made = folder_of(run).files / "outputs" / "deep" / "made"
    assert (made.stat().st_uid, made.stat().st_gid) == (os.getuid(), os.getgid())
    nothing_is_left(run, podman)


def test_a_failing_script(launch, podman):
    run = launch("raise ValueError('no such thing')", custom_docker_image=IMAGE)
    details = ended(run)
    assert details["status"] == "Failed"
    assert details["error"]["code"] == "ScriptFailed"
    assert "ValueError: no such thing" in details["error"]["message"]
    nothing_is_left(run, podman)


def test_cancel_lets_the_script_end_by_itself(launch, podman):
    run = launch(SAVES, custom_docker_image=IMAGE)
    await_line(run, "waits")
    run.cancel()
    assert ended(run)["status"] == "Canceled"
    assert "outputs/saved" in run.get_file_names()
    nothing_is_left(run, podman)


def test_cancel_of_a_script_that_ignores_it(launch, podman):
    run = launch(STUBBORN, custom_docker_image=IMAGE)
    await_line(run, "waits")
    run.cancel()
    assert ended(run)["status"] == "Canceled"
    assert text(run).splitlines().count("told") == 1
    nothing_is_left(run, podman)


def test_too_long(launch, podman):
    run = launch("import time; time.sleep(3600)", custom_docker_image=IMAGE, max_run_duration_seconds=1)
    details = ended(run)
    assert details["status"] == "Canceled"
    assert details["error"]["code"] == "MaxRunDurationExceeded"
    nothing_is_left(run, podman)


def test_an_agent_that_is_killed_leaves_no_container(launch, podman):
    run = launch(STUBBORN, custom_docker_image=IMAGE)
    await_line(run, "waits")
    os.kill(read_claim(folder_of(run).node(0))["pid"], signal.SIGKILL)
    details = ended(run)
    assert details["status"] == "Failed"
    assert details["error"]["code"] == "NodeAgentLost"
    nothing_is_left(run, podman)


def test_a_run_is_adopted_after_its_dispatcher_was_killed(launch, podman):
    run = launch(AT_A_GATE, custom_docker_image=IMAGE)
    await_line(run, "waits")
    dispatcher = WorkspaceFolder(Path(run.experiment.workspace.path)).lock
    before = dispatcher.read_text()
    os.kill(int(before), signal.SIGKILL)
    until(lambda: run.get_status() == "Running", PATIENCE, "the run goes on")
    assert dispatcher.read_text() != before
    (folder_of(run).code / "open").touch()
    assert ended(run)["status"] == "Completed", run.get_details_with_logs()
    assert text(run) == "waits\nwent on\n"
    nothing_is_left(run, podman)


@pytest.mark.filterwarnings("ignore:process_count_per_node is deprecated")
def test_four_processes_on_two_nodes_meet(shared, project, podman):
    ComputeTarget.create(shared, "box", LocalCompute.configuration(nodes=2))
    estimator = PyTorch(
        str(project(train=MEET)), entry_script="train.py", compute_target="box", user_managed=True,
        custom_docker_image=IMAGE, node_count=2, process_count_per_node=2, distributed_training=Gloo(),
    )  # fmt: skip
    run = Experiment(shared, "spine").submit(estimator)
    assert ended(run)["status"] == "Completed", run.get_details_with_logs()
    met = json.loads((folder_of(run).files / "outputs" / "met.json").read_text())
    assert sorted((one["RANK"], one["NODE_RANK"], one["LOCAL_RANK"]) for one in met) == [
        (0, 0, 0), (1, 0, 1), (2, 1, 0), (3, 1, 1),
    ]  # fmt: skip
    nothing_is_left(run, podman)


def test_it_asks_for_secrets_datasets_datastores_and_models_and_registers_models(shared, launch, podman, tmp_path):
    shared.get_default_keyvault().set_secret("token", "hunter22")
    made = tmp_path / "made"
    made.mkdir()
    (made / "known.txt").write_text("known before")
    (made / "data.txt").write_text("data of a folder")
    Model.register(shared, str(made / "known.txt"), "known")
    shared.get_default_datastore().upload(str(made), target_path="set")
    Dataset.File.from_files((shared.get_default_datastore(), "set/data.txt")).register(shared, "inner")
    store = Datastore.register(shared, "outer_store", str(made))
    Dataset.File.from_files((store, "data.txt")).register(shared, "outer")
    run = launch(ASKS, custom_docker_image=IMAGE)
    assert ended(run)["status"] == "Completed", run.get_details_with_logs()
    said = ["8", "known before", "data of a folder", "data of a folder", "mine:1", "other:1"]
    assert text(run).splitlines() == [*said, "made", "1 seen only inside"]
    assert (shared.path / "datastore" / "made" / "model.txt").read_text() == "seen only inside"
    assert Path(Model(shared, "mine").download(str(tmp_path / "1"))).read_text() == "trained"
    assert Path(Model(shared, "other").download(str(tmp_path / "2"))).read_text() == "seen only inside"
    assert Model(shared, "mine").run_id == run.id


def test_an_image_that_does_not_exist(launch, podman):
    run = launch("", custom_docker_image="localhost/trainmaster-none:1")
    details = ended(run)
    assert details["status"] == "Failed"
    assert details["error"]["code"] == "EnvironmentError"
    message = details["error"]["message"]
    assert "image 'localhost/trainmaster-none:1' cannot be fetched" in message
    assert "docker://localhost/trainmaster-none:1" in message, "the words of podman"
    assert "podman pull localhost/trainmaster-none:1" in text(run, "azureml-logs/20_image_build_log.txt")


BESIDE = {"user_managed": False, "pip_packages": ["six"]}


class TestPackagesAndAnImage:
    """The environment is built outside; the image gives all the rest."""

    def test_they_are_seen_in_it(self, launch, podman):
        script = (
            "import os, shutil, six, sys\n"
            "print(os.path.exists('/bin/busybox'), six.__file__.startswith(sys.prefix), sys.prefix)\n"
            "print(shutil.which('python') == sys.prefix + '/bin/python', os.environ['PATH'].partition(':')[2])\n"
        )
        run = launch(script, custom_docker_image=IMAGE, **BESIDE)
        assert ended(run)["status"] == "Completed", run.get_details_with_logs()
        place = run.experiment.workspace.path / "environments"
        first, second = text(run).splitlines()
        assert first.startswith(f"True True {place}/")
        assert second == f"True {PATH}"
        assert "six==" in (folder_of(run).environment_lock).read_text()
        nothing_is_left(run, podman)

    def test_an_image_that_cannot_run_them_is_refused(self, launch, podman):
        add_image(podman, "localhost/trainmaster-bare:1", python=False)
        run = launch("", custom_docker_image="localhost/trainmaster-bare:1", **BESIDE)
        details = ended(run)
        assert details["status"] == "Failed"
        message = details["error"]["message"]
        assert "the Python of this environment does not run in image 'localhost/trainmaster-bare:1'" in message
        assert "no such file or directory" in message.lower()
        assert "glibc" in message
        nothing_is_left(run, podman)


def test_doctor_says_that_it_answers():
    found = findings.container_engine(os.environ)
    assert found.state == "found"
    assert re.fullmatch(r"podman \d+\.[\d.]+ \(/.+/podman\), because of TRAINMASTER_CONTAINER_ENGINE", found.found)


def test_a_hang_says_where_the_script_stood(launch, podman):
    script = "import time\ndef stuck():\n    time.sleep(3600)\nprint('waits', flush=True)\nstuck()\n"
    run = launch(script, custom_docker_image=IMAGE, hang_seconds=5)
    # However long the container takes to start: a word of the run that is always new.
    word = folder_of(run).logs / "word"
    word.parent.mkdir(parents=True, exist_ok=True)
    word.touch()
    os.utime(word, (time.time() + 3600,) * 2)
    await_line(run, "waits")
    os.utime(word)
    details = ended(run)
    assert (details["status"], details["error"]["code"]) == ("Failed", "HangDetected")
    assert 'File "train.py", line 3 in stuck' in details["error"]["message"]
    assert "goroutine" not in text(run)
    nothing_is_left(run, podman)


def test_mpirun_and_its_ranks_are_in_one_container(launch, podman):
    names = ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "HOME", "TRAINMASTER_CONTAINER", "MINE")
    script = f"import os; print(*(os.environ[name] for name in {names!r}), os.path.exists('/bin/busybox'))"
    run = launch(
        script, custom_docker_image=IMAGE, distributed_training=Mpi(2), environment_variables={"MINE": "yes"}, **BESIDE
    )
    assert ended(run)["status"] == "Completed", run.get_details_with_logs()
    said = [text(run, f"azureml-logs/70_driver_log_{rank}.txt") for rank in range(2)]
    assert said == [f"{rank} 2 /tmp {IMAGE} yes True\n" for rank in range(2)]
    nothing_is_left(run, podman)


def test_on_nodes_of_slurm(podman, project, tmp_path):
    """They have the image, and see the folder of the workspace, of which the scripts ask by letters."""
    script = (
        "import os\nfrom azureml.core import Model, Run\nrun = Run.get_context()\n"
        "print(len(run.get_secret('token')), os.path.exists('/bin/busybox'), os.environ['RANK'])\n"
        "with open('/tmp/model.txt', 'w') as file:\n    file.write(os.environ['RANK'])\n"
        "Model.register(run.experiment.workspace, '/tmp/model.txt', 'of_rank_' + os.environ['RANK'])\n"
    )
    with MiniSlurm(tmp_path / "cluster", nodes=2) as cluster, variables(cluster):
        ws = Workspace.create("on_slurm", path=tmp_path / "shared" / "ws", show_output=False)
        there = {"shared_folder": str(tmp_path / "shared"), "cpus_per_node": 1}
        ComputeTarget.create(ws, "cluster", SlurmCompute.configuration("main", max_nodes=2, **there))
        try:
            ws.get_default_keyvault().set_secret("token", "hunter22")
            estimator = PyTorch(
                str(project(train=script)), entry_script="train.py", compute_target="cluster", user_managed=True,
                custom_docker_image=IMAGE, node_count=2, distributed_training=Gloo(),
            )  # fmt: skip
            run = Experiment(ws, "containers").submit(estimator)
            assert ended(run)["status"] == "Completed", run.get_details_with_logs()
            assert [text(run, f"azureml-logs/70_driver_log_{rank}.txt") for rank in range(2)] == [
                "8 True 0\n",
                "8 True 1\n",
            ]
            kept = [Path(Model(ws, f"of_rank_{rank}").download(str(tmp_path / str(rank)))) for rank in range(2)]
            assert [path.read_text() for path in kept] == ["0", "1"]
            nothing_is_left(run, podman)
        finally:
            end_workspace(ws.path)
