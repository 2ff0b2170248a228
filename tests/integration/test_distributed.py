"""Several processes on several local nodes: real Open MPI, torch.distributed and TensorFlow's parameter servers."""

from __future__ import annotations

import contextlib
import json
import os
import random
import time
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import ended, run_folder, until

from trainmaster import (
    ComputeTarget,
    Estimator,
    Experiment,
    Gloo,
    LocalCompute,
    Mpi,
    ParameterServer,
    PyTorch,
    TensorFlow,
    Workspace,
)
from trainmaster.job.agent.tree import processes_of
from trainmaster.sdk.run.run import Run

pytestmark = pytest.mark.timeout(1200)


@pytest.fixture(scope="module")
def experiment(frameworks: Workspace) -> Experiment:
    ComputeTarget.create(frameworks, "box", LocalCompute.configuration(nodes=2, gpus_per_node=2))
    return Experiment(frameworks, "distributed")


@pytest.fixture
def source(tmp_path: Path) -> Any:
    def write(text: str) -> str:
        folder = tmp_path / "source"
        folder.mkdir(exist_ok=True)
        (folder / "train.py").write_text(text)
        return str(folder)

    return write


def log(run: Run, rank: int) -> str:
    folder = run.experiment.workspace.path / "runs" / run.id / "files" / "azureml-logs"
    return (folder / f"70_driver_log_{rank}.txt").read_text()


def completed(run: Run) -> Run:
    details = ended(run)
    assert details["status"] == "Completed", details.get("error")
    assert processes_of(run.id) == []
    return run


PLACE = """
import json, os
from azureml.core import Run
names = ("RANK", "LOCAL_RANK", "NODE_RANK", "CUDA_VISIBLE_DEVICES", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")
with open(os.environ["TRAINMASTER_HOSTFILE"]) as hosts:
    print(json.dumps({"hosts": hosts.read(), **{name: os.environ.get(name) for name in names}}))
Run.get_context().log("rank", int(os.environ["RANK"]))
"""


@pytest.mark.parametrize("backend", [Mpi(2), Gloo()], ids=["mpi", "gloo"])
@pytest.mark.filterwarnings("ignore:process_count_per_node is deprecated")
def test_two_nodes_with_two_processes_each(experiment: Experiment, source: Any, backend: Any) -> None:
    kind = Estimator if isinstance(backend, Mpi) else PyTorch
    run = completed(
        experiment.submit(
            kind(
                source(PLACE),
                entry_script="train.py",
                compute_target="box",
                node_count=2,
                process_count_per_node=2,
                distributed_training=backend,
                **({} if isinstance(backend, Mpi) else {"user_managed": True}),
            )
        )
    )
    places = [json.loads(log(run, rank)) for rank in range(4)]
    assert [(p["RANK"], p["LOCAL_RANK"], p["NODE_RANK"], p["CUDA_VISIBLE_DEVICES"]) for p in places] == [
        ("0", "0", "0", "0"),
        ("1", "1", "0", "1"),
        ("2", "0", "1", "2"),
        ("3", "1", "1", "3"),
    ]
    # Both nodes are parts of this machine, and launchers want each machine once.
    assert {p["hosts"] for p in places} == {"127.0.0.1 slots=4\n"}
    if isinstance(backend, Mpi):
        assert [p["OMPI_COMM_WORLD_RANK"] for p in places] == ["0", "1", "2", "3"]
        assert {p["OMPI_COMM_WORLD_SIZE"] for p in places} == {"4"}
    assert sorted(run.get_metrics()["rank"]) == [0, 1, 2, 3]
    table = json.loads((run_folder(run).logs / "process_info.json").read_text())
    assert sorted(row["rank"] for row in table) == [0, 1, 2, 3]


FAILS = """
import os, sys, time
if os.environ["RANK"] == "2":
    print("the real mistake", flush=True)
    sys.exit(7)
time.sleep(600)
"""


@pytest.mark.parametrize("backend", [Mpi(2), Gloo()], ids=["mpi", "gloo"])
@pytest.mark.filterwarnings("ignore:process_count_per_node is deprecated")
def test_one_failing_rank_ends_the_run_and_is_named(experiment: Experiment, source: Any, backend: Any) -> None:
    kind = Estimator if isinstance(backend, Mpi) else PyTorch
    run = experiment.submit(
        kind(
            source(FAILS),
            entry_script="train.py",
            compute_target="box",
            node_count=2,
            process_count_per_node=2,
            distributed_training=backend,
            **({} if isinstance(backend, Mpi) else {"user_managed": True}),
        )
    )
    details = ended(run)
    assert details["status"] == "Failed"
    assert (details["error"]["rank"], details["error"]["node"], details["error"]["exit_code"]) == (2, 1, 7)
    assert details["error"]["tail"] == "the real mistake"
    assert processes_of(run.id) == []


@pytest.mark.parametrize("backend", [Mpi(2), Gloo()], ids=["mpi", "gloo"])
@pytest.mark.filterwarnings("ignore:process_count_per_node is deprecated")
def test_cancel_at_any_moment_leaves_nothing(experiment: Experiment, source: Any, backend: Any) -> None:
    kind = Estimator if isinstance(backend, Mpi) else PyTorch
    seed = random.SystemRandom().randrange(2**32)
    print("seed", seed)
    chance = random.Random(seed)
    estimator = kind(
        source("import time, subprocess\nsubprocess.Popen(['setsid', 'sleep', '600'])\ntime.sleep(600)\n"),
        entry_script="train.py",
        compute_target="box",
        node_count=2,
        process_count_per_node=2,
        distributed_training=backend,
        **({} if isinstance(backend, Mpi) else {"user_managed": True}),
    )
    for _ in range(10):
        run = experiment.submit(estimator)
        # The moment of the cancel is the point of the test, not a wait for something.
        time.sleep(chance.random() * 0.6)
        run.cancel()
        details = ended(run)
        assert details["status"] == "Canceled", details
        assert processes_of(run.id) == []


ALLREDUCE = """
import os, torch, torch.distributed as dist
dist.init_process_group("gloo", init_method=os.environ.get("INIT") or "env://",
                        rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"]))
torch.manual_seed(dist.get_rank())
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()
weights = torch.cat([p.detach().flatten() for p in model.parameters()])
every = [torch.zeros_like(weights) for _ in range(dist.get_world_size())]
dist.all_gather(every, weights)
assert all(torch.equal(every[0], one) for one in every), every
print("same weights on", dist.get_world_size(), "ranks", flush=True)
dist.barrier()
# torch 2.13 sometimes aborts while Python takes its threads down, under torchrun as well; the work is done.
os._exit(0)
"""


@pytest.mark.parametrize("init", ["", "$AZ_BATCHAI_PYTORCH_INIT_METHOD"], ids=["env", "file"])
@pytest.mark.filterwarnings("ignore:process_count_per_node is deprecated")
def test_ddp_over_gloo(experiment: Experiment, source: Any, init: str) -> None:
    script = ALLREDUCE.replace('os.environ.get("INIT")', "__import__('sys').argv[1]") if init else ALLREDUCE
    run = experiment.submit(
        PyTorch(
            source(script),
            entry_script="train.py",
            script_params={init: ""} if init else None,
            compute_target="box",
            node_count=2,
            distributed_training=Gloo(),
        )
    )
    # torch may have told before it how long it waited for the other rank.
    assert log(completed(run), 1).endswith("same weights on 2 ranks\n")


MPI4PY = """
from mpi4py import MPI
comm = MPI.COMM_WORLD
print(comm.Get_size(), comm.allreduce(comm.Get_rank() + 1))
"""


def test_mpi4py(experiment: Experiment, source: Any) -> None:
    estimator = Estimator(
        source(MPI4PY),
        entry_script="train.py",
        compute_target="box",
        node_count=2,
        distributed_training=Mpi(process_count_per_node=2),
        pip_packages=["mpi4py"],
    )
    run = completed(experiment.submit(estimator))
    assert [log(run, rank) for rank in range(4)] == ["4 10\n"] * 4


SERVERS = """
import json, os
import tensorflow.compat.v1 as tf
tf.disable_eager_execution()
config = json.loads(os.environ["TF_CONFIG"])
task = config["task"]
server = tf.train.Server(tf.train.ClusterSpec(config["cluster"]), job_name=task["type"], task_index=task["index"])
if task["type"] == "ps":
    server.join()
with tf.device(tf.train.replica_device_setter(worker_device="/job:worker/task:%d" % task["index"],
                                              cluster=tf.train.ClusterSpec(config["cluster"]))):
    count = tf.get_variable("count", [], initializer=tf.zeros_initializer())
    add = tf.assign_add(count, 1.0, use_locking=True)
# Workers do not wait for each other, only for the server.
filters = tf.ConfigProto(device_filters=["/job:ps", "/job:worker/task:%d" % task["index"]])
chief = task["index"] == 0
with tf.train.MonitoredTrainingSession(master=server.target, is_chief=chief, config=filters) as session:
    for _ in range(10):
        value = session.run(add)
print("worker", task["index"], "counted to", value)
"""


def test_parameter_servers_three_tasks_on_two_nodes(experiment: Experiment, source: Any) -> None:
    estimator = TensorFlow(
        source(SERVERS),
        entry_script="train.py",
        compute_target="box",
        node_count=2,
        distributed_training=ParameterServer(worker_count=2, parameter_server_count=1),
    )
    run = completed(experiment.submit(estimator))
    counted = [float(log(run, rank).rsplit("counted to ", 1)[1]) for rank in (0, 1)]
    # Both added to one variable, which lived on the server.
    assert max(counted) > 10.0
    with contextlib.suppress(FileNotFoundError):
        assert "counted" not in log(run, 2)


LAST_WORKER = """
import json, os, socket, sys, time
config = json.loads(os.environ["TF_CONFIG"])
host, port = config["cluster"]["ps"][0].split(":")
if config["task"]["type"] == "ps":
    server = socket.create_server((host, int(port)))
    while True:
        server.accept()[0].sendall(b"served")
if config["task"]["index"] == 1:
    # Goes on only when the worker beside the server has long ended.
    open(sys.argv[1]).read()
    while True:
        try:
            print(socket.create_connection((host, int(port)), timeout=120).recv(100))
            break
        except ConnectionRefusedError:
            # The server may be slower to come up than the worker beside it was to end.
            time.sleep(0.05)
"""


def test_a_server_stays_for_the_workers_of_other_nodes(experiment: Experiment, source: Any, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    estimator = TensorFlow(
        source(LAST_WORKER),
        entry_script="train.py",
        script_params={str(gate): ""},
        compute_target="box",
        node_count=2,
        distributed_training=ParameterServer(worker_count=2, parameter_server_count=1),
        user_managed=True,
    )
    run = experiment.submit(estimator)
    until(lambda: (run_folder(run).node(0) / "done.json").exists(), what="the end of worker 0")
    gate.write_text("")
    assert log(completed(run), 1) == "b'served'\n"
