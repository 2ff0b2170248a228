"""Which process runs where and with which variables, under each backend."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from trainmaster.launch import Launch, agent_count, plan_hostfile, plan_launch, port_count
from trainmaster.shared.job_spec import Distribution, JobSpec


def job(kind, nodes=2, **distribution):
    variables = distribution.pop("variables", {})
    return JobSpec(
        "/source",
        "box",
        script="train.py",
        arguments=("--index", "$AZ_BATCHAI_TASK_INDEX"),
        node_count=nodes,
        distribution=Distribution(kind=kind, **distribution),
        environment_variables=variables,
    )


def launch(nodes=2, gpus=None, ports=(7000, 7001, 7002, 7003)):
    hosts = tuple(f"host{number}" for number in range(nodes))
    return Launch("run", "/code", "/logs", "/env/bin/python", hosts=hosts, ports=ports, node_folder="/node", kit="/kit",
                  gpus=gpus or ((),) * nodes)  # fmt: skip


def variables(plans, *names):
    return [tuple(process.env[name] for name in names) for plan in plans for process in plan.processes]


def test_torch_gives_every_process_what_torchrun_would():
    plans = plan_launch(job("torch", backend="gloo", process_count=4), launch())
    found = variables(
        plans, "RANK", "LOCAL_RANK", "NODE_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"
    )
    assert found == [
        ("0", "0", "0", "4", "2", "host0", "7000"),
        ("1", "1", "0", "4", "2", "host0", "7000"),
        ("2", "0", "1", "4", "2", "host0", "7000"),
        ("3", "1", "1", "4", "2", "host0", "7000"),
    ]
    assert [len(plan.processes) for plan in plans] == [2, 2]
    role = variables(plans, "GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_NAME", "ROLE_RANK", "ROLE_WORLD_SIZE")
    assert role == [(str(rank // 2), "2", "default", str(rank), "4") for rank in range(4)]
    elastic = ("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_MAX_RESTARTS")
    assert set(variables(plans, *elastic)) == {("run", "0", "0")}
    again = replace(launch(), run_variables={"TRAINMASTER_ATTEMPT": "2"})
    retried = replace(job("torch", process_count=4), max_retries=3)
    assert set(variables(plan_launch(retried, again), *elastic)) == {("run", "1", "3")}
    assert plans[1].processes[0].log == "/logs/70_driver_log_2.txt"
    assert plans[1].processes[0].argv == ("/env/bin/python", "train.py", "--index", "2")
    init = {process.env["AZ_BATCHAI_PYTORCH_INIT_METHOD"] for plan in plans for process in plan.processes}
    assert init == {"file:///node/torch_init"}


def test_accelerate_and_deepspeed_find_what_their_launchers_set():
    names = ("CROSS_RANK", "CROSS_SIZE", "LOCAL_SIZE", "ACCELERATE_USE_CPU", "ACCELERATE_MIXED_PRECISION")
    found = variables(plan_launch(job("torch", backend="gloo", process_count=4), launch()), *names)
    assert found == [("0", "2", "2", "true", "no")] * 2 + [("1", "2", "2", "true", "no")] * 2
    own = job("torch", backend="nccl", variables={"ACCELERATE_MIXED_PRECISION": "bf16"})
    assert variables(plan_launch(own, launch()), *names[3:]) == [("false", "bf16")] * 2


@pytest.mark.parametrize(
    ("kind", "distribution", "slots"),
    [
        ("torch", {"process_count": 4}, [2, 2]),
        ("torch", {}, [1, 1]),
        ("mpi", {"process_count_per_node": 3}, [3, 3]),
        ("parameter_server", {"worker_count": 2, "parameter_server_count": 1}, [2, 1]),
    ],
)
def test_the_hostfile_counts_the_processes_of_each_host(kind, distribution, slots):
    spec = job(kind, variables={"MINE": "1"}, **distribution)
    found = plan_hostfile(spec, replace(launch(), run_variables={"TRAINMASTER_RUN_ID": "run"}))
    assert found is not None
    assert [host["name"] for host in found["hosts"]] == ["host0", "host1"]
    assert [host["slots"] for host in found["hosts"]] == slots
    assert (found["folder"], found["env"]) == ("/node", {"MINE": "1", "TRAINMASTER_RUN_ID": "run"})
    processes = [each for plan in plan_launch(spec, launch()) for each in (plan.ranks or plan.processes)]
    assert {each.env["TRAINMASTER_HOSTFILE"] for each in processes} == {"/node/hostfile"}
    assert {each.env["DS_ENV_FILE"] for each in processes} == {"/node/deepspeed_env"}


def test_a_single_process_has_no_hostfile():
    assert plan_hostfile(job("single", nodes=1), launch(1)) is None
    assert "TRAINMASTER_HOSTFILE" not in plan_launch(job("single", nodes=1), launch(1))[0].processes[0].env


@pytest.mark.parametrize(
    ("processes", "own", "threads"), [(4, {}, "1"), (4, {"OMP_NUM_THREADS": "3"}, "3"), (2, {}, None)]
)
def test_torch_processes_that_share_a_node_have_one_thread_each(processes, own, threads):
    plans = plan_launch(job("torch", process_count=processes, variables=own), launch())
    assert {each.env.get("OMP_NUM_THREADS") for plan in plans for each in plan.processes} == {threads}


def test_torch_nodes_that_are_parts_of_one_machine_share_its_cores():
    local = replace(launch(), hosts=("127.0.0.1", "127.0.0.1"))
    assert variables(plan_launch(job("torch"), local), "OMP_NUM_THREADS") == [("1",), ("1",)]
    (alone,) = plan_launch(job("torch", nodes=1), launch(1))
    assert "OMP_NUM_THREADS" not in alone.processes[0].env


@pytest.mark.parametrize(
    ("cpus", "own", "threads"), [(8, {}, "2"), (2, {}, "1"), (0, {}, None), (8, {"OMP_NUM_THREADS": "8"}, "8")]
)
def test_mpi_ranks_that_share_a_machine_share_its_cores(cpus, own, threads):
    local = replace(launch(), hosts=("127.0.0.1", "127.0.0.1"), cpus=cpus)
    (plan,) = plan_launch(job("mpi", process_count_per_node=2, variables=own), local)
    assert {rank.env.get("OMP_NUM_THREADS") for rank in plan.ranks} == {threads}


def test_torch_is_one_process_per_node_unless_told():
    plans = plan_launch(job("torch", nodes=3, backend="nccl"), launch(3))
    assert variables(plans, "RANK", "WORLD_SIZE") == [("0", "3"), ("1", "3"), ("2", "3")]


@pytest.mark.parametrize(("kind", "more"), [("torch", {"process_count": 4}), ("mpi", {"process_count_per_node": 2})])
def test_every_process_has_its_share_of_the_gpus(kind, more):
    plans = plan_launch(job(kind, **more), launch(gpus=(("0", "1", "2", "3"), ("4", "5", "6", "7"))))
    processes = [each for plan in plans for each in (plan.ranks or plan.processes)]
    assert [each.env["CUDA_VISIBLE_DEVICES"] for each in processes] == ["0,1", "2,3", "4,5", "6,7"]


def test_mpi_is_one_launcher_whose_ranks_are_planned():
    spec = job("mpi", process_count_per_node=2)
    (plan,) = plan_launch(spec, launch())
    (launcher,) = plan.processes
    assert launcher.argv[:3] == ("mpirun", "-np", "4")
    assert launcher.argv[-2:] == ("/kit/trainmaster/job/agent/rank.py", "/node/ranks.json")
    assert launcher.env["OMPI_ALLOW_RUN_AS_ROOT"] == launcher.env["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] == "1"
    # What mpirun itself says is not the user's log.
    assert launcher.log == "/node/mpirun.log"
    assert [(rank.env["RANK"], rank.env["LOCAL_RANK"], rank.env["NODE_RANK"]) for rank in plan.ranks] == [
        ("0", "0", "0"),
        ("1", "1", "0"),
        ("2", "0", "1"),
        ("3", "1", "1"),
    ]
    assert plan.ranks[3].argv == ("/env/bin/python", "train.py", "--index", "3")
    assert plan.ranks[3].env["AZ_BATCH_MASTER_NODE"] == "host0:7000"
    assert agent_count(spec) == 1


def test_the_example_of_the_documents_three_tasks_on_two_nodes():
    plans = plan_launch(job("parameter_server", worker_count=2, parameter_server_count=1), launch())
    assert [len(plan.processes) for plan in plans] == [2, 1]
    configs = [json.loads(text) for (text,) in variables(plans, "TF_CONFIG")]
    cluster = {"ps": ["host0:7002"], "worker": ["host0:7000", "host1:7001"]}
    assert all(config["cluster"] == cluster and config["environment"] == "cloud" for config in configs)
    assert [config["task"] for config in configs] == [
        {"type": "worker", "index": 0},
        {"type": "ps", "index": 0},
        {"type": "worker", "index": 1},
    ]
    assert [process.service for plan in plans for process in plan.processes] == [False, True, False]


def test_workers_without_servers():
    plans = plan_launch(job("parameter_server", worker_count=2, parameter_server_count=0), launch())
    configs = [json.loads(text) for (text,) in variables(plans, "TF_CONFIG")]
    assert [config["cluster"] for config in configs] == [{"worker": ["host0:7000", "host1:7001"]}] * 2
    assert [config["task"] for config in configs] == [{"type": "worker", "index": 0}, {"type": "worker", "index": 1}]
    assert not any(process.service for plan in plans for process in plan.processes)


def test_worker_0_may_be_announced_as_master():
    spec = job("parameter_server", worker_count=2, variables={"TRAINMASTER_TF_CHIEF": "master"})
    configs = [json.loads(text) for (text,) in variables(plan_launch(spec, launch()), "TF_CONFIG")]
    assert {"type": "master", "index": 0} in [config["task"] for config in configs]
    assert configs[0]["cluster"]["worker"] == ["host0:7000", "host1:7001"]


def test_under_a_coordinator_the_workers_are_servers_too():
    spec = job("parameter_server", worker_count=3, variables={"TRAINMASTER_TF_CHIEF": "chief"})
    plans = plan_launch(spec, launch())
    config = json.loads(plans[0].processes[0].env["TF_CONFIG"])
    assert config["cluster"] == {"chief": ["host0:7000"], "ps": ["host1:7003"], "worker": ["host1:7001", "host0:7002"]}
    tasks = {json.loads(p.env["TF_CONFIG"])["task"]["type"]: p.service for plan in plans for p in plan.processes}
    assert tasks == {"chief": False, "worker": True, "ps": True}


@pytest.mark.parametrize(
    ("spec", "ports", "agents"),
    [
        (job("single", nodes=1), 0, 1),
        (job("torch"), 1, 2),
        (job("mpi"), 1, 1),
        (job("parameter_server", worker_count=3, parameter_server_count=2), 5, 2),
    ],
)
def test_what_a_run_needs(spec, ports, agents):
    assert (port_count(spec), agent_count(spec)) == (ports, agents)


@pytest.mark.parametrize("kind", ["single", "torch", "mpi", "parameter_server"])
def test_only_runs_that_may_not_be_silent_can_be_asked_where_they_stand(kind):
    spec = job(kind, nodes=1, worker_count=1, parameter_server_count=1)
    for seconds, value in ((None, None), (60.0, "1")):
        (plan,) = plan_launch(replace(spec, hang_seconds=seconds), launch(1))
        assert {each.env.get("PYTHONFAULTHANDLER") for each in plan.ranks or plan.processes} == {value}
    own = job(kind, nodes=1, worker_count=1, parameter_server_count=1, variables={"PYTHONFAULTHANDLER": ""})
    (plan,) = plan_launch(replace(own, hang_seconds=60.0), launch(1))
    assert {each.env["PYTHONFAULTHANDLER"] for each in plan.ranks or plan.processes} == {""}


def test_mpi_itself_is_no_rank_and_keeps_quiet_in_the_logs():
    (plan,) = plan_launch(job("mpi", process_count_per_node=1, variables={"UCX_HANDLE_ERRORS": "bt"}), launch())
    assert "TRAINMASTER_RANK" not in plan.processes[0].env
    assert [rank.env["TRAINMASTER_RANK"] for rank in plan.ranks] == ["0", "1"]
    assert {(rank.env["OMPI_MCA_opal_signal"], rank.env["UCX_HANDLE_ERRORS"]) for rank in plan.ranks} == {("", "bt")}
    assert plan.ranks[0].env["PYTHONPATH"] == "/kit/trainmaster/job/agent/mpi_site"
