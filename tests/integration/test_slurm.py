"""Runs on a real Slurm: kinds of jobs, states, ends, and what survives what."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.slurm import MiniSlurm, variables
from tests.conftest import dispatcher_handle, end_workspace, ended, until, wait_gone

from trainmaster import (
    Estimator,
    Experiment,
    GridParameterSampling,
    HyperDriveConfig,
    PrimaryMetricGoal,
    Workspace,
    choice,
)
from trainmaster.cli.entry import run as command
from trainmaster.environments.pythons import all_pythons
from trainmaster.job.errors import ComputeTargetException
from trainmaster.sdk.compute.slurm import SlurmCompute
from trainmaster.sdk.compute.target import ComputeTarget
from trainmaster.sdk.estimators.distributed_training import Gloo, Mpi, ParameterServer
from trainmaster.sdk.run.run import Run
from trainmaster.shared.folders import WorkspaceFolder

# Without an open interconnect, Open MPI's ranks on the pretended machines would share memory that they do not share.
TCP = {"OMPI_MCA_btl": "self,tcp"}
WAITS = "import signal, sys, time\nprint('here', flush=True)\ntime.sleep(600)\n"


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MiniSlurm]:
    with (
        MiniSlurm(tmp_path_factory.mktemp("slurm") / "cluster", nodes=3, apart=1, gpus=2) as cluster,
        variables(cluster),
    ):
        yield cluster


@pytest.fixture(scope="module")
def shared_workspace(tmp_path_factory: pytest.TempPathFactory, slurm: MiniSlurm) -> Iterator[Workspace]:
    ws = Workspace.create("slurm", path=tmp_path_factory.mktemp("workspace") / "w", show_output=False)
    folder = str(ws.path.parent)
    plain = {"shared_folder": folder, "cpus_per_node": 1}
    ComputeTarget.create(ws, "cluster", SlurmCompute.configuration("main", max_nodes=3, **plain))
    ComputeTarget.create(ws, "gpus", SlurmCompute.configuration("main", max_nodes=3, gpus_per_node=2, **plain))
    ComputeTarget.create(ws, "whole", SlurmCompute.configuration("main", max_nodes=3, shared_folder=folder))
    ComputeTarget.create(ws, "short", SlurmCompute.configuration("short", max_nodes=3, **plain))
    ComputeTarget.create(ws, "nowhere", SlurmCompute.configuration("nowhere", **plain))
    yield ws
    end_workspace(ws.path)


@pytest.fixture(scope="module", autouse=True)
def minute(shared_workspace: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run whose time is over after a minute, which is the least that Slurm knows: on a node of its own, meanwhile."""
    source = tmp_path_factory.mktemp("minute")
    (source / "train.py").write_text(WAITS)
    estimator = Estimator(str(source), entry_script="train.py", user_managed=True, compute_target="short")
    return Experiment(shared_workspace, "minute").submit(estimator)


@pytest.fixture
def send(shared_workspace: Workspace, project: Callable[..., Path], slurm: MiniSlurm) -> Iterator[Callable[..., Run]]:
    """Submits a script given as text; what still runs after the test is ended, so that the next one finds room."""
    sent: list[Run] = []

    def submit(script: str, **settings: Any) -> Run:
        settings.setdefault("compute_target", "cluster")
        settings.setdefault("user_managed", True)
        source = project(train=script)
        estimator = Estimator(str(source), entry_script="train.py", **settings)
        sent.append(Experiment(shared_workspace, "slurm").submit(estimator))
        return sent[-1]

    yield submit
    for run in sent:
        run.cancel()
    for run in sent:
        ended(run)


def log_of(run: Run, name: str = "70_driver_log.txt") -> str:
    path = _folder(run).files / "azureml-logs" / name
    return path.read_text() if path.exists() else ""


def job_of(run: Run) -> str:
    noted = _folder(run).path / "nodes" / "slurm.json"
    return until(lambda: noted.exists() and json.loads(noted.read_text())["job_id"], what="a job")


def _folder(run: Run):
    return WorkspaceFolder(run.experiment.workspace.path).run(run.id)


def until_running(run: Run, name: str = "70_driver_log.txt", word: str = "here") -> None:
    until(lambda: word in log_of(run, name), what="the script's first line")


def until_there(path: Path) -> str:
    """Lines of a script that waits for a file."""
    waits = f"while not os.path.exists({str(path)!r}):\n    time.sleep(0.05)\n"
    return f"import os, time\nprint('here', flush=True)\n{waits}"


class TestKinds:
    def test_one_process_with_metrics_outputs_and_arguments(self, send):
        run = send(
            "import os, sys\nfrom azureml.core import Run\nprint('SLURM_JOB_ID' in os.environ, sys.argv[1:])\n"
            "run = Run.get_context()\nrun.log('loss', 0.5)\nopen('outputs/model.txt', 'w').write('weights')\n",
            script_params={"--epochs": 3},
        )
        details = ended(run)
        assert details["status"] == "Completed", details
        assert "['--epochs', '3']" in log_of(run)
        assert run.get_metrics() == {"loss": 0.5}
        assert "outputs/model.txt" in run.get_file_names()
        assert details["properties"]["slurm.job_id"] == job_of(run)

    def test_gloo_knows_its_place_on_two_nodes(self, send):
        script = (
            "import os, socket\nrank, world = int(os.environ['RANK']), int(os.environ['WORLD_SIZE'])\n"
            "address = (os.environ['MASTER_ADDR'], int(os.environ['MASTER_PORT']))\n"
            "lines = [line.split() for line in open(os.environ['TRAINMASTER_HOSTFILE'])]\n"
            "assert lines[0][0] == os.environ['MASTER_ADDR'], lines\n"
            "assert sum(int(slots.replace('slots=', '')) for _, slots in lines) == 2, lines\n"
            "if rank == 0:\n    server = socket.create_server(address)\n"
            "    met = sorted(server.accept()[0].recv(9).decode() for _ in range(world - 1))\n    print('met', met)\n"
            "else:\n    import time\n    for _ in range(1200):\n        try:\n"
            "            peer = socket.create_connection(address)\n            break\n"
            "        except OSError:\n            time.sleep(0.1)\n    peer.sendall(str(rank).encode())\n"
        )
        run = send(script, node_count=2, distributed_training=Gloo())
        details = ended(run)
        assert details["status"] == "Completed", (details.get("error"), log_of(run, "70_driver_log_0.txt"))
        assert "met ['1']" in log_of(run, "70_driver_log_0.txt")

    def test_mpi_on_two_nodes(self, send):
        script = (
            "import os\nprint('rank', os.environ['OMPI_COMM_WORLD_RANK'], os.environ['RANK'], os.environ['NODE_RANK'])"
        )
        run = send(script, node_count=2, distributed_training=Mpi(2), environment_variables=TCP, user_managed=False)
        details = ended(run)
        assert details["status"] == "Completed", (details.get("error"), _mpirun_log(run))
        for rank in range(4):
            assert f"rank {rank} {rank} {rank // 2}" in log_of(run, f"70_driver_log_{rank}.txt")

    def test_parameter_servers_end_when_the_workers_have(self, send):
        script = (
            "import json, os, time\nconfig = json.loads(os.environ['TF_CONFIG'])\nprint(config['task'])\n"
            "assert all('trainmaster' not in host for hosts in config['cluster'].values() for host in hosts)\n"
            "time.sleep(600 if config['task']['type'] == 'ps' else 0)\n"
        )
        run = send(script, node_count=2, distributed_training=ParameterServer(worker_count=2, parameter_server_count=1))
        details = ended(run)
        assert details["status"] == "Completed", details.get("error")

    def test_each_process_gets_its_share_of_the_gpus(self, send):
        script = "import os\nprint('GPUs', os.environ['CUDA_VISIBLE_DEVICES'])"
        run = send(script, compute_target="gpus", node_count=2, distributed_training=Gloo(), environment_variables={})
        assert ended(run)["status"] == "Completed"
        for rank in range(2):
            assert log_of(run, f"70_driver_log_{rank}.txt").strip() == "GPUs 0,1"

    def test_an_old_python_on_the_nodes_is_enough_for_the_agents(self, send, shared_workspace):
        pythons = all_pythons()
        oldest = min(pythons, key=lambda version: tuple(map(int, version.split("."))))
        configuration = SlurmCompute.configuration("main", max_nodes=2, cpus_per_node=1, python=pythons[oldest])
        ComputeTarget.create(shared_workspace, "old", configuration)
        run = send("print('new script')", compute_target="old", node_count=2, distributed_training=Gloo())
        assert ended(run)["status"] == "Completed", oldest
        assert log_of(run, "70_driver_log_1.txt") == "new script\n"

    def test_a_sweep(self, shared_workspace, project):
        script = "import sys\nfrom azureml.core import Run\nRun.get_context().log('score', float(sys.argv[2]))\n"
        estimator = Estimator(
            str(project(train=script)), entry_script="train.py", compute_target="cluster", user_managed=True
        )
        config = HyperDriveConfig(
            estimator=estimator,
            hyperparameter_sampling=GridParameterSampling({"--value": choice(1, 2, 3, 4)}),
            primary_metric_name="score",
            primary_metric_goal=PrimaryMetricGoal.MAXIMIZE,
            max_total_runs=4,
            max_concurrent_runs=2,
        )
        run = Experiment(shared_workspace, "sweep").submit(config)
        assert ended(run)["status"] == "Completed"
        assert run.get_best_run_by_primary_metric().get_metrics() == {"score": 4.0}


def _mpirun_log(run: Run) -> str:
    path = _folder(run).path / "nodes" / "0" / "mpirun.log"
    return path.read_text() if path.exists() else ""


class TestEnds:
    def test_a_failing_script(self, send):
        details = ended(send("print('so far')\nraise SystemExit(3)"))
        assert details["status"] == "Failed"
        assert "rank 0 on node 0 ended with exit code 3" in str(details["error"])

    def test_one_failing_node_ends_the_other(self, send):
        script = "import os, time\nif os.environ['RANK'] == '1':\n    raise ValueError('mine')\ntime.sleep(600)\n"
        run = send(script, node_count=2, distributed_training=Gloo())
        details = ended(run)
        assert details["status"] == "Failed"
        assert details["error"]["message"].startswith("rank 1 on node 1: ValueError: mine\n")
        assert "rank 1 on node 1 ended with exit code 1" in str(details["error"])

    def test_refused_by_slurm(self, send):
        details = ended(send("print(1)", compute_target="nowhere"))
        assert details["status"] == "Failed"
        assert "Slurm refused the job" in str(details["error"])
        assert "nvalid partition" in str(details["error"])

    def test_cancelled_while_it_runs(self, send, slurm):
        run = send(
            "import signal, sys, time\n"
            "signal.signal(signal.SIGTERM, lambda *_: (print('saved', flush=True), sys.exit(0)))\n"
            "print('here', flush=True)\ntime.sleep(600)\n"
        )
        until_running(run)
        run.cancel()
        assert ended(run)["status"] == "Canceled"
        assert "saved" in log_of(run)
        until(lambda: job_of(run) not in slurm.jobs(), what="the end of its job")

    def test_several_nodes_cancelled(self, send, slurm):
        run = send(WAITS, node_count=3, distributed_training=Gloo())
        until_running(run, "70_driver_log_2.txt")
        run.cancel()
        assert ended(run)["status"] == "Canceled"
        until(lambda: job_of(run) not in slurm.jobs(), what="the end of its job")

    def test_waits_in_words_and_is_cancelled_there(self, send, slurm):
        holder = send(WAITS, compute_target="whole", node_count=3, distributed_training=Gloo())
        until_running(holder, "70_driver_log_2.txt")
        first = send("print(1)", compute_target="whole")
        job_of(first)
        second = send("print(2)", compute_target="whole")
        words = until(lambda: "ahead" in _waiting(second) and _waiting(second), what="a reason")
        assert words.startswith("waiting for Slurm: ")
        assert "about 1 job ahead" in words
        assert second.get_status() == "Queued"
        for run in (second, first, holder):
            run.cancel()
        assert {ended(run)["status"] for run in (second, first, holder)} == {"Canceled"}
        mine = {job_of(run) for run in (holder, first, second)}
        until(lambda: not mine & set(slurm.jobs()), what="the end of all jobs")

    def test_cancelled_behind_our_back(self, send, slurm):
        run = send(WAITS)
        until_running(run)
        slurm.run("scancel", job_of(run))
        details = ended(run)
        assert details["status"] == "Canceled"
        assert "cancelled in Slurm" in str(details["error"])

    def test_cancelled_behind_our_back_while_it_waits(self, send, slurm):
        holder = send(WAITS, compute_target="whole", node_count=3, distributed_training=Gloo())
        until_running(holder, "70_driver_log_2.txt")
        run = send("print(1)", compute_target="whole")
        slurm.run("scancel", job_of(run))
        details = ended(run)
        assert details["status"] == "Canceled"
        assert "cancelled in Slurm" in str(details["error"])
        holder.cancel()
        ended(holder)

    def test_preempted_goes_on_from_its_checkpoint(self, send, slurm):
        script = (
            "import os, time\nfrom azureml.core import Run\nrun = Run.get_context()\n"
            "done = os.path.exists('outputs/checkpoint')\nrun.log('attempt', int(os.environ['TRAINMASTER_ATTEMPT']))\n"
            "open('outputs/checkpoint', 'w').close()\nprint('here', flush=True)\ntime.sleep(0 if done else 600)\n"
        )
        run = send(script, compute_target="whole", node_count=3, distributed_training=Gloo())
        until_running(run, "70_driver_log_2.txt")
        slurm.run("sbatch", "--partition=urgent", "--nodes=3", "--exclusive", "--output=/dev/null", "--wrap=sleep 1")
        details = ended(run)
        assert details["status"] == "Completed", details.get("error")
        first, second = details["attempts"]
        assert first["error"]["code"] == "Preempted"
        assert second["status"] == "Completed"
        assert set(run.get_metrics()["attempt"]) == {1, 2}

    def test_a_batch_script_that_cannot_begin(self, send, shared_workspace):
        bad = SlurmCompute.configuration("main", cpus_per_node=1, python="/no/such/python")
        ComputeTarget.create(shared_workspace, "pythonless", bad)
        details = ended(send("print(1)", compute_target="pythonless"))
        assert details["status"] == "Failed"
        assert "/no/such/python" in str(details["error"])


def _waiting(run: Run) -> str:
    return run.experiment.workspace.connection.call("runs.get", run_id=run.id)["waiting_for"]


class TestKills:
    def test_the_dispatcher_is_killed_while_jobs_wait_and_run(self, send, slurm, shared_workspace, tmp_path):
        go = tmp_path / "go"
        script = (
            "from azureml.core import Run\nrun = Run.get_context()\nrun.log('a', 1)\n"
            f"{until_there(go)}run.log('a', 2)\n"
        )
        running = send(script)
        failing = send("raise SystemExit(5)", compute_target="whole", node_count=3, distributed_training=Gloo())
        until_running(running)
        folder = WorkspaceFolder(shared_workspace.path)
        handle = dispatcher_handle(folder)
        os.kill(int(folder.lock.read_text()), signal.SIGKILL)
        wait_gone(handle)
        go.touch()
        until(lambda: (_folder(running).path / "nodes/0/result.json").exists(), what="a result without a dispatcher")
        assert ended(running)["status"] == "Completed"
        assert running.get_metrics() == {"a": [1, 2]}
        assert "exit code 5" in str(ended(failing)["error"])

    def test_a_job_whose_number_was_never_noted_is_found_by_its_name(self, send, slurm, shared_workspace):
        run = send(WAITS)
        until_running(run)
        job = job_of(run)
        noted = _folder(run).path / "nodes" / "slurm.json"
        folder = WorkspaceFolder(shared_workspace.path)
        handle = dispatcher_handle(folder)
        os.kill(int(folder.lock.read_text()), signal.SIGKILL)
        wait_gone(handle)
        noted.write_text(json.dumps({"version": 1, "job_id": "", "at": 0, "submissions": 1}))
        until(lambda: run.get_status() == "Running", what="that it is known to run")
        assert job_of(run) == job
        run.cancel()
        assert ended(run)["status"] == "Canceled"
        until(lambda: job not in slurm.jobs(), what="the end of its job")

    def test_slurmctld_is_killed_and_comes_back(self, send, slurm, tmp_path):
        go = tmp_path / "go"
        running = send(until_there(go))
        until_running(running)
        job_of(running)
        slurm.keep_state()
        slurm.kill_controller()
        late = send("print('late')")
        until(lambda: "waiting for Slurm" in _waiting(late), what="the reason")
        go.touch()
        assert ended(running)["status"] == "Completed"
        slurm.start_controller()
        assert ended(late)["status"] == "Completed"

    def test_a_job_that_slurmctld_lost_is_submitted_again(self, send, slurm):
        holder = send(WAITS, compute_target="whole", node_count=3, distributed_training=Gloo())
        until_running(holder, "70_driver_log_2.txt")
        slurm.keep_state()
        run = send("print('at last')")
        job_of(run)
        slurm.kill_controller()
        # What it had not yet written down is lost with it, and the number is given out again.
        slurm.lose_state()
        slurm.start_controller()
        noted = _folder(run).path / "nodes" / "slurm.json"
        until(lambda: json.loads(noted.read_text())["submissions"] == 2, what="another job")
        holder.cancel()
        assert ended(run)["status"] == "Completed"
        ended(holder)

    def test_one_slurmd_is_killed_in_a_run_of_two_nodes(self, send, slurm):
        run = send(WAITS, compute_target="whole", node_count=2, distributed_training=Gloo())
        until_running(run, "70_driver_log_1.txt")
        lost = json.loads((_folder(run).path / "nodes/gang.json").read_text())["names"][1]
        slurm.kill_node(lost)
        # Slurm would find out by itself, after `SlurmdTimeout`.
        slurm.run("scontrol", "update", f"NodeName={lost}", "State=DOWN", "Reason=dead")
        details = ended(run)
        slurm.start_node(lost)
        slurm.run("scontrol", "update", f"NodeName={lost}", "State=RESUME", check=False)
        assert details["status"] == "Failed"
        assert "Slurm lost node 1 of the run" in str(details["error"])
        # The agent there went on, and has seen that its run is given up.
        until((_folder(run).path / "nodes/1/result.json").exists, what="the end of the agent nobody reached")
        until(lambda: lost in slurm.idle(), what="the node's return")


class TestTarget:
    def test_what_the_workspace_and_the_options_must_be(self, shared_workspace, tmp_path):
        elsewhere = SlurmCompute.configuration(shared_folder=str(tmp_path))
        with pytest.raises(ComputeTargetException, match="is not in the shared folder"):
            ComputeTarget.create(shared_workspace, "elsewhere", elsewhere)
        for option in (
            "--requeue",
            "--output=/tmp/log",
            "--outp=/tmp/log",
            "--nodes=3",
            "-N3",
            "-Jmine",
            "--clusters=b",
        ):
            with pytest.raises(ComputeTargetException, match=f"must not have {option}: Trainmaster sets it"):
                SlurmCompute.configuration(extra_sbatch=[option])
        for parameter, option in {"partition": "-pmain", "qos": "--qos=low", "time_limit": "--time=3"}.items():
            with pytest.raises(ComputeTargetException, match=f"has {option}, and {parameter} says '9'"):
                SlurmCompute.configuration(extra_sbatch=[option], **{parameter: "9"})
        SlurmCompute.configuration(extra_sbatch=["--nodelist=node1", "--time=3", "--gres=gpu:a100:1"])
        with pytest.raises(ComputeTargetException, match="time_limit"):
            SlurmCompute.configuration(time_limit="soon")

    def test_more_nodes_than_one_run_may_have(self, send):
        with pytest.raises(ComputeTargetException, match="node_count=4 can never fit"):
            send("print(1)", node_count=4, distributed_training=Gloo())

    def test_it_comes_back_as_what_it_is(self, shared_workspace):
        target = ComputeTarget(shared_workspace, "cluster")
        assert isinstance(target, SlurmCompute)
        assert target.serialize()["options"]["partition"] == "main"


def test_why_a_job_waits_is_said_in_words(send, slurm, shared_workspace):
    first = job_of(send(WAITS))
    folder = str(shared_workspace.path.parent)
    # The nodes of other tests and of the run that takes a minute are left alone.
    slurm.run("scontrol", "update", "partitionname=urgent", "state=down")
    cases = {
        "held": ({"extra_sbatch": ["--hold"]}, "JobHeldUser (it is held; release it with 'scontrol release'"),
        "later": ({"extra_sbatch": ["--begin=now+1hour"]}, "BeginTime (its start time has not come yet)"),
        "after": ({"extra_sbatch": [f"--dependency=afterany:{first}"]}, "Dependency (another job must end first)"),
        "down": ({"partition": "urgent"}, "PartitionDown (the partition is down)"),
    }
    runs = {}
    try:
        for name, (settings, _) in cases.items():
            configuration = SlurmCompute.configuration(shared_folder=folder, cpus_per_node=1, **settings)
            ComputeTarget.create(shared_workspace, name, configuration)
            runs[name] = send("print(1)", compute_target=name)
        for name, (_, words) in cases.items():
            until(lambda name=name, words=words: words in _waiting(runs[name]), what=f"{words} of '{name}'")
    finally:
        slurm.run("scontrol", "update", "partitionname=urgent", "state=up")


def test_compute_show_tells_the_machines_and_their_states(shared_workspace, slurm, capfd):
    place = ["--workspace", str(shared_workspace.path)]
    last = slurm.nodes[2]
    slurm.run("scontrol", "update", f"nodename={last}", "state=drain", "reason=new memory")
    try:
        assert command(["compute", "show", "cluster", *place]) == 0
        said = capfd.readouterr().out
        assert command(["compute", "show", "cluster", "--json", *place]) == 0
        known = json.loads(capfd.readouterr().out)
    finally:
        slurm.run("scontrol", "update", f"nodename={last}", "state=resume")
    assert "Target 'cluster' (slurm) has 3 nodes with 1 CPU and 0 GPUs each." in said
    assert known["settings"]["partition"] == "main"
    assert [each["name"] for each in known["machines"]] == slurm.nodes[:3]
    (drained,) = [each for each in known["machines"] if each["name"] == last]
    assert (drained["state"], drained["reason"]) in [("drained", "new memory"), ("draining", "new memory")]
    (line,) = [line for line in said.splitlines() if line.startswith(last)]
    assert line.split()[2:] == ["main", "4", "2", "3.9", "GB", "new", "memory"]


def test_a_machine_without_slurm_says_so(tmp_path: Path) -> None:
    """It is the dispatcher that calls Slurm's commands, so its PATH counts."""
    ws = Workspace.create("other", path=tmp_path / "w", show_output=False)
    end_workspace(ws.path)
    words = [sys.executable, "-m", "trainmaster.cli", "compute", "create", "slurm", "here", "--workspace", str(ws.path)]
    try:
        done = subprocess.run(words, env={**os.environ, "PATH": "/nowhere"}, capture_output=True, text=True)
    finally:
        end_workspace(ws.path)
    assert done.returncode != 0
    assert "there is no sbatch on the PATH of this machine" in done.stderr


def test_compute_create_asks_sinfo(shared_workspace, slurm, capfd):
    place = ["--workspace", str(shared_workspace.path)]
    assert command(["compute", "create", "slurm", "asked", *place]) == 0
    said = capfd.readouterr()
    assert "main (default): 3 nodes with 4 CPUs and 2 GPUs" in said.err
    assert "can use up to 3 nodes with 4 CPUs and 2 GPUs each" in said.out
    assert ComputeTarget(shared_workspace, "asked").serialize()["options"]["partition"] == "main"
    assert command(["compute", "create", "slurm", "asked", "--partition", "nowhere", *place]) != 0
    assert "Slurm has no partition 'nowhere'" in capfd.readouterr().err


def test_killed_by_the_time_limit(minute):
    """The last of all, since it takes its time."""
    details = ended(minute)
    assert details["status"] == "Canceled"
    assert "time limit" in str(details["error"])
