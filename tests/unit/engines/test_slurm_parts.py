"""Slurm, the pure parts: options of sbatch, the output of squeue, the meaning of an end, and tokens."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from trainmaster.dispatcher.runs.decisions import Occupation, decide
from trainmaster.dispatcher.runs.outcome import outcome
from trainmaster.dispatcher.runs.waiting import Request
from trainmaster.engines.engine import Ending, EngineContext, Nodes
from trainmaster.engines.slurm import cluster as slurm_cluster
from trainmaster.engines.slurm import engine as slurm_engine
from trainmaster.engines.slurm import states
from trainmaster.engines.slurm.commands import CommandResult
from trainmaster.engines.slurm.engine import SlurmEngine
from trainmaster.engines.slurm.options import batch_script, command_variables, sbatch_options
from trainmaster.engines.slurm.site import Here, OnlyHere
from trainmaster.job.agent import claim, slurm, tokens
from trainmaster.job.agent.other_nodes import OtherNodes
from trainmaster.launch.mpi import plan_mpi
from trainmaster.launch.plan import Launch
from trainmaster.shared.folders import RunFolder, WorkspaceFolder
from trainmaster.shared.job_spec import Distribution, JobSpec
from trainmaster.shared.records import RunError, Status, TargetRecord


def nodes(
    folder: Path = Path("/w/runs/r"), count: int = 2, seconds: int | None = None, gpus: int = 0, **options
) -> Nodes:
    target = TargetRecord("cluster", "slurm", 4, 0, gpus, options)
    return Nodes("r", RunFolder(folder), count, target, tuple(range(count)), 2, seconds)


class TestOptions:
    def test_a_plain_one(self):
        assert sbatch_options(nodes(), "/w/runs/r/nodes", "/w/runs/r") == [
            "--job-name=trainmaster.r.1",
            "--nodes=2",
            "--ntasks=2",
            "--ntasks-per-node=1",
            "--no-requeue",
            "--open-mode=append",
            "--output=/w/runs/r/nodes/slurm-%j.log",
            "--chdir=/w/runs/r",
            "--exclusive",
        ]

    def test_all_that_can_be_said(self):
        given = {
            "partition": "gpu",
            "account": "a",
            "qos": "q",
            "constraint": "c",
            "cpus": 8,
            "extra_sbatch": ["--mem=8G"],
        }
        found = sbatch_options(nodes(seconds=600, gpus=4, time_limit_seconds=86400, **given), "/o", "/w/runs/r")
        assert found[8:] == [
            "--cpus-per-task=8",
            "--gres=gpu:4",
            "--partition=gpu",
            "--account=a",
            "--qos=q",
            "--constraint=c",
            "--time=12",
            "--mem=8G",
        ]

    def test_a_priority_is_told_to_slurm(self):
        told = [sbatch_options(replace(nodes(), priority=points), "/o", "/r")[9:] for points in (-3, 0, 3)]
        assert told == [["--nice=300"], [], ["--nice=-300"]]

    def test_the_script_keeps_odd_paths_together(self):
        text = batch_script("/py thon", "/k", "/w's", 1, ["module load cuda"])
        assert text.splitlines() == [
            "#!/bin/sh",
            "module load cuda",
            """exec '/py thon' -I -S /k/trainmaster/job/agent/slurm.py '/w'"'"'s' 1""",
        ]

    def test_secrets_of_the_shell_do_not_travel(self):
        known = {"PATH": "/bin", "AWS_SECRET_ACCESS_KEY": "s", "SLURM_JOB_ID": "7", "SLURM_CONF": "/c", "LC_ALL": "C"}
        assert set(command_variables(known)) == {"PATH", "SLURM_CONF", "LC_ALL"}


class TestStates:
    @pytest.mark.parametrize(
        ("line", "sentence"),
        [
            ("9|PENDING|5|main||Resources|n", "waiting for Slurm: Resources, about 2 jobs ahead (job 9)"),
            ("9|PENDING|50|main||Resources|n", "waiting for Slurm: Resources (job 9)"),
            (
                "9|PENDING|5|other||QOSMaxNodePerUserLimit|n",
                "waiting for Slurm: QOSMaxNodePerUserLimit (you have as many nodes as the QOS allows you) (job 9)",
            ),
            ("9|PENDING|5|other||None|n", "waiting for Slurm: a place in the queue (job 9)"),
            ("9|CONFIGURING|5|main|node[1-2]|None|n", "Slurm is preparing node[1-2] (job 9)"),
            ("9|RUNNING|5|main|node1|None|n", "Slurm has allocated node1; the agent is starting (job 9)"),
        ],
    )
    def test_what_is_waited_for(self, line, sentence):
        others = (
            "7|PENDING|5|main||Priority|a\n8_[1-9]|PENDING|6|main||Priority|b|with|bars\n"
            "6|PENDING|9|main||Dependency|c\n"
        )
        (job,) = states.parse(line)
        assert states.waiting_sentence(job, [*states.parse(others), job]) == sentence

    @pytest.mark.parametrize(
        ("state", "status", "code", "again"),
        [
            ("PREEMPTED", "Failed", "Preempted", True),
            ("CANCELLED", "Canceled", "CanceledInSlurm", False),
            ("TIMEOUT", "Canceled", "SlurmTimeLimit", False),
            ("NODE_FAIL", "Failed", "NodeFailed", False),
            ("OUT_OF_MEMORY", "Failed", "OutOfMemory", False),
            ("FAILED", "Failed", "StartError", False),
            ("LOST", "Failed", "NodeAgentLost", False),
        ],
    )
    def test_what_an_end_means(self, state, status, code, again):
        found = states.ending("7", state, "node1")
        assert (str(found.status), found.error.code, found.again) == (status, code, again)
        assert "7" in found.error.message

    def test_what_needs_no_words(self):
        assert states.ending("7", "RUNNING", "node1") is None

    def test_lines_that_are_none(self):
        assert states.parse("slurm_load_jobs error: something\n\n") == []


class TestOutcome:
    """The engine's reason counts only if processes were ended from outside."""

    ENDING = Ending(Status.FAILED, RunError("Preempted", "taken"), again=True)

    def result(self, **changes):
        return {"reason": "exited", "first_failure": None, "processes": [], "ended_at": 1.0, **changes}

    def outcome_of(self, *results, cancel=False):
        return outcome(results, cancel_requested=cancel, time_limit=None, ending=self.ENDING)

    def test_agents_that_were_stopped_or_lost(self):
        assert self.outcome_of(self.result(reason="cancelled")).again
        assert self.outcome_of(None, self.result()).error.code == "Preempted"

    def test_a_run_that_was_done_before(self):
        assert self.outcome_of(self.result()).status is Status.COMPLETED

    def test_a_script_that_failed_by_itself(self):
        failure = {"rank": 0, "exit_code": 3, "signal": None}
        assert self.outcome_of(self.result(first_failure=failure)).error.code == "ScriptFailed"

    def test_a_run_that_was_to_be_cancelled(self):
        assert self.outcome_of(self.result(reason="cancelled"), cancel=True).status is Status.CANCELED


def test_runs_are_handed_over_at_once_but_for_a_limit():
    queue = [Request(f"r{number}", "cluster", 4, number) for number in range(5)]
    free = TargetRecord("cluster", "slurm", 4, 0, 0)
    assert len(decide(queue, Occupation({"cluster": free}, queue_themselves={"cluster"})).starts) == 5
    limited = TargetRecord("cluster", "slurm", 4, 0, 0, {"max_jobs": 2})
    decision = decide(
        queue, Occupation({"cluster": limited}, {"cluster": {"older": (0,)}}, queue_themselves={"cluster"})
    )
    assert list(decision.starts) == ["r0"]
    assert decision.reasons["r4"] == "waiting: 'cluster' is given 2 runs at a time"


class TestBlanks:
    def test_a_plan_for_hosts_that_are_not_known_yet(self, tmp_path, monkeypatch):
        place = SlurmEngine(EngineContext(WorkspaceFolder(tmp_path), lambda run_id, event: None)).place(
            nodes(tmp_path, gpus=2)
        )
        spec = JobSpec("", "cluster", node_count=2, distribution=Distribution("mpi", process_count_per_node=2))
        launch = Launch(
            "r", "/c", "/l", "/env/bin/python", gpus=place.gpus, hosts=place.hosts, ports=(7000,), node_folder="/n",
            kit="/k", fills_in=True, mpi_options=place.mpi_options, mpi_inherits=place.mpi_inherits,
        )  # fmt: skip
        (plan,) = plan_mpi(spec, launch)
        assert plan.processes[0].argv[:6] == ("mpirun", "-np", "4", "--map-by", "ppr:2:node:OVERSUBSCRIBE", "--bind-to")
        assert plan.processes[0].inherits == ("SLURM", "PMI")
        hosts = tmp_path / "gang.json"
        hosts.write_text(json.dumps({"hosts": ["one", "two"]}))
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,7")
        monkeypatch.setenv("SLURM_CPUS_ON_NODE", "16")
        env = tokens.fill_plan({"hosts": str(hosts), "env": dict(plan.ranks[3].env)})["env"]
        assert env["OMP_NUM_THREADS"] == "8"
        assert (env["MASTER_ADDR"], env["AZ_BATCHAI_WORKER_HOSTS"], env["CUDA_VISIBLE_DEVICES"]) == (
            "one",
            "one,two",
            "7",
        )

    def test_a_plan_without_blanks_stays_as_it_is(self):
        plan = {"processes": [{"argv": ["{trainmaster:host:0}"]}]}
        assert tokens.fill_plan(plan) is plan


class TestGang:
    def test_only_the_first_job_has_the_nodes(self, tmp_path, capsys):
        assert claim.take(str(tmp_path / slurm.GANG), {"job_id": "1"})
        environment = {"SLURM_JOB_NODELIST": "node1", "SLURM_JOB_ID": "2"}
        assert slurm._begin(str(tmp_path), 1, environment) == 0
        assert "another job runs these nodes" in capsys.readouterr().err
        assert json.loads((tmp_path / slurm.GANG).read_text()) == {"job_id": "1"}

    def test_one_agent_for_each_node(self):
        command = slurm.srun_command("/n", 3, {"SLURM_CPUS_PER_TASK": "8"})
        assert command[:5] == ["srun", "--nodes=3", "--ntasks=3", "--ntasks-per-node=1", "--cpus-per-task=8"]
        assert command[-1] == "/n"


class TestWatch:
    """Agents that watch each other."""

    def put(self, folder, node, name, data):
        (folder / str(node)).mkdir(exist_ok=True)
        (folder / str(node) / name).write_text(json.dumps(data))

    def says(self, folder, count=2):
        watch = OtherNodes(str(folder / "0"), count)
        assert not watch.is_stop_required(), "not before its time"
        watch.look_at = 0.0
        return watch.is_stop_required()

    def test_nothing_has_happened(self, tmp_path):
        for node in range(2):
            self.put(tmp_path, node, "plan.json", {"processes": [{"service": False}]})
        assert not self.says(tmp_path)

    def test_another_node_failed(self, tmp_path):
        self.put(tmp_path, 1, "result.json", {"reason": "exited", "first_failure": {"rank": 1}})
        assert self.says(tmp_path)

    def test_another_node_ended_well(self, tmp_path):
        self.put(tmp_path, 0, "plan.json", {"processes": [{"service": False}]})
        self.put(tmp_path, 1, "result.json", {"reason": "exited", "first_failure": None})
        assert not self.says(tmp_path)

    def test_only_services_are_left(self, tmp_path):
        self.put(tmp_path, 0, "done.json", {})
        self.put(tmp_path, 1, "plan.json", {"processes": [{"service": True}]})
        assert self.says(tmp_path)

    def test_the_run_was_given_up(self, tmp_path):
        (tmp_path / "stop.json").write_text("{}")
        assert self.says(tmp_path, count=1)


class Answering(Here):
    """A site whose Slurm lists a job on two machines as cancelled, and has lost the machines in `down`."""

    def __init__(self, down: str) -> None:
        super().__init__()
        self.down = down

    async def run_command(self, command, stdin, seconds):
        answers = {"squeue": "7|CANCELLED|1|main|one,two|None|trainmaster.r.1\n", "sinfo": self.down, "scancel": ""}
        return CommandResult(0, answers[command[0]], "")


class TestSweeping:
    @pytest.fixture
    def run_of_killed_agents(self, tmp_path):
        """Two agents had started; neither left a result."""
        place = nodes(tmp_path)
        for number in range(2):
            place.folder.node(number).mkdir(parents=True)
            (place.folder.node(number) / "agent.json").write_text(json.dumps({"version": 1, "pid": 1}))
        (place.folder.nodes / slurm.GANG).write_text(json.dumps({"job_id": "7", "names": ["one", "two"]}))
        (place.folder.nodes / "slurm.json").write_text(json.dumps({"version": 1, "job_id": "7", "at": 0}))
        return place

    @pytest.fixture(autouse=True)
    def patience(self, monkeypatch):
        """A sweep that waits for agents waits forever."""
        monkeypatch.setattr(slurm_engine, "_GIVE_UP_SECONDS", float("inf"))
        monkeypatch.setattr(slurm_cluster, "_SETTLE_SECONDS", 0.0)

    async def _sweep(self, place, down):
        context = EngineContext(WorkspaceFolder(place.folder.path), lambda run_id, event: None)
        engine = SlurmEngine(context, OnlyHere(Answering(down)))
        await engine.wait_for_end(place, 0)
        await engine.sweep(place)
        await engine.close()

    def test_agents_that_slurm_has_ended_are_not_waited_for(self, run_of_killed_agents):
        asyncio.run(asyncio.wait_for(self._sweep(run_of_killed_agents, ""), 60))
        assert (run_of_killed_agents.folder.nodes / "stop.json").exists()

    def test_one_on_a_machine_that_slurm_has_lost_is(self, run_of_killed_agents):
        async def sweep():
            sweeping = asyncio.create_task(self._sweep(run_of_killed_agents, "two\n"))
            while not (run_of_killed_agents.folder.nodes / "stop.json").exists():
                await asyncio.sleep(0.01)
            done, _ = await asyncio.wait({sweeping}, timeout=1.0)
            assert not done
            # The file tells the agent to end, and it writes its result.
            (run_of_killed_agents.folder.node(1) / "result.json").write_text(
                json.dumps({"version": 1, "reason": "cancelled"})
            )
            await sweeping

        asyncio.run(asyncio.wait_for(sweep(), 60))


def test_a_job_of_a_run_that_was_given_up_does_not_begin(tmp_path, monkeypatch, capfd):
    """A controller that lost its latest state may start such a job."""
    for name, value in {"SLURM_JOB_NODELIST": "node1", "SLURM_JOB_ID": "7"}.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "stop.json").write_text("{}")
    assert slurm.main([str(tmp_path), "1"]) == 0
    assert "given up" in capfd.readouterr().err
    assert not (tmp_path / slurm.GANG).exists()


@pytest.mark.parametrize("config", ["", "BOOT_TIME = 2026-01-01T00:00:00", "Configuration data as of 9\nBOOT_TIME = 3"])
def test_a_controller_that_does_not_say_its_age(config):
    assert states.controller_age(config) is None
