"""What every launcher must do, as tests to inherit.

    from trainmaster.testing import LauncherConformance, LauncherPlace

    class TestMyLauncher(LauncherConformance):
        @pytest.fixture
        def place(self):
            return LauncherPlace(plan=plan_mine, spec=JobSpec(...), agents=2, ports=1)

A launcher is a pure function from a job specification and a `Launch` to a plan for each node. The tests start nothing.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from trainmaster.job.agent.tokens import host_token, replace_tokens, token_values
from trainmaster.launch import Launch, NodePlan, ProcessPlan
from trainmaster.launch.command import log_name
from trainmaster.shared.job_spec import JobSpec


@dataclass(frozen=True)
class LauncherPlace:
    """A launcher, and a job of its kind."""

    plan: Callable[[JobSpec, Launch], tuple[NodePlan, ...]]
    spec: JobSpec
    """The number of nodes and the distribution; the tests choose the script, its arguments and variables."""
    agents: int
    """How many nodes have an agent: all, or fewer if the launcher itself reaches the others."""
    ports: int
    """How many ports the processes need to reach each other."""

    def launch(self, **changes: Any) -> Launch:
        """What is known when the job starts: two GPUs per node, and exactly as many ports as it needs."""
        nodes = range(self.spec.node_count)
        settings: dict[str, Any] = {
            "run_id": "run",
            "code_folder": "/ws/runs/run/code",
            "log_folder": "/ws/runs/run/logs",
            "python": "/env/bin/python",
            "environment_variables": {"ORIGIN": "environment", "ENVIRONMENT": "yes"},
            "run_variables": {"AZUREML_RUN_ID": "run", "PYTHONPATH": "/kit"},
            "gpus": tuple(("0", "1") for _ in nodes),
            "hosts": tuple(f"host{node}" for node in nodes),
            "cpus": 8,
            "ports": tuple(range(7000, 7000 + self.ports)),
            "node_folder": "/ws/runs/run/nodes/0",
            "kit": "/kit",
        }
        return Launch(**{**settings, **changes})

    def job(self, **changes: Any) -> JobSpec:
        """The job with a script, an argument of its own for each process, and variables from every source."""
        return replace(
            self.spec,
            **{
                "script": "train.py",
                "arguments": ("--rank", "$TRAINMASTER_RANK"),
                "inherited_variables": {"ORIGIN": "shell", "SHELL_ONLY": "yes", "CUDA_VISIBLE_DEVICES": "7"},
                "environment_variables": {"ORIGIN": "user", "AZUREML_RUN_ID": "user", "PYTHONPATH": "/mine"},
                **changes,
            },
        )


class LauncherConformance:
    """Inherit this and define the fixture `place`."""

    def test_it_is_pure(self, place: LauncherPlace) -> None:
        """The same arguments give the same plans, and stay as they are."""
        spec, launch = place.job(), place.launch()
        before = copy.deepcopy((spec, launch))
        assert place.plan(spec, launch) == place.plan(spec, launch)
        assert (spec, launch) == before

    def test_plans_are_plain_data(self, place: LauncherPlace) -> None:
        """Agents read plans as JSON; command lines and variables are texts that the system accepts."""
        for process in _all_processes(place.plan(place.job(), place.launch())):
            texts = [*process.argv, *process.env, *process.env.values(), process.cwd, process.log]
            assert all(isinstance(text, str) and "\0" not in text for text in texts)
            assert process.argv and not any("=" in name for name in process.env)

    def test_one_plan_for_each_agent(self, place: LauncherPlace) -> None:
        """Nodes have the numbers from 0 up, in this order, and each has something to do."""
        plans = place.plan(place.job(), place.launch())
        assert [plan.node for plan in plans] == list(range(place.agents))
        assert all(plan.processes for plan in plans)

    def test_each_rank_once(self, place: LauncherPlace) -> None:
        """The processes of the script have the ranks from 0 up, and know their rank and node."""
        processes = _script_processes(place.plan(place.job(), place.launch()))
        assert sorted(process.rank for process in processes) == list(range(len(processes)))
        for process in processes:
            assert process.env["TRAINMASTER_RANK"] == str(process.rank)
            assert int(process.env["TRAINMASTER_NODE"]) in range(place.spec.node_count)
        assert {process.env["TRAINMASTER_NODE"] for process in processes} == set(map(str, range(place.spec.node_count)))

    def test_the_run_can_end(self, place: LauncherPlace) -> None:
        """At least one process is not a service, which never ends by itself."""
        plans = place.plan(place.job(), place.launch())
        assert any(not process.service for plan in plans for process in plan.processes)

    def test_command_line(self, place: LauncherPlace) -> None:
        """Every process runs the script with the environment's Python; arguments use the process's own variables."""
        for process in _script_processes(place.plan(place.job(), place.launch())):
            assert process.argv == ("/env/bin/python", "train.py", "--rank", str(process.rank))
            assert process.cwd == "/ws/runs/run/code"

    def test_own_command(self, place: LauncherPlace) -> None:
        """A command of the user goes through a shell, as in v1."""
        plans = place.plan(place.job(command=("echo", "$HOME"), script="", arguments=()), place.launch())
        assert {process.argv for process in _script_processes(plans)} == {("/bin/sh", "-c", "echo $HOME")}

    def test_logs(self, place: LauncherPlace) -> None:
        """Every process has a log of its own, those of the script with v1's names."""
        plans = place.plan(place.job(), place.launch())
        processes = _script_processes(plans)
        names = {process.rank: f"/ws/runs/run/logs/{log_name(process.rank, len(processes))}" for process in processes}
        assert {process.rank: process.log for process in processes} == names
        logs = [process.log for process in _all_processes(plans)]
        assert len(set(logs)) == len(logs)

    def test_variables(self, place: LauncherPlace) -> None:
        """The run's variables have precedence over the user's, these over the environment's, these over the shell's."""
        for process in _script_processes(place.plan(place.job(), place.launch())):
            assert process.env["AZUREML_RUN_ID"] == "run"
            assert process.env["ORIGIN"] == "user"
            assert (process.env["ENVIRONMENT"], process.env["SHELL_ONLY"]) == ("yes", "yes")
            assert process.env["PYTHONUNBUFFERED"] == "1"
            paths = process.env["PYTHONPATH"].split(":")
            assert "/kit" in paths and paths.index("/kit") < paths.index("/mine")

    def test_gpus_of_its_node_only(self, place: LauncherPlace) -> None:
        """A process sees only GPUs of its own node. Where processes use GPUs, they use all of their node."""
        gpus = tuple((f"{node}a", f"{node}b") for node in range(place.spec.node_count))
        seen: dict[int, set[str]] = {}
        for process in _script_processes(place.plan(place.job(), place.launch(gpus=gpus))):
            node = int(process.env["TRAINMASTER_NODE"])
            found = set(filter(None, process.env["CUDA_VISIBLE_DEVICES"].split(",")))
            assert found <= set(gpus[node])
            seen.setdefault(node, set()).update(found)
        assert any(seen.values())
        assert all(found in (set(), set(gpus[node])) for node, found in seen.items())

    def test_no_gpu_that_was_not_given(self, place: LauncherPlace) -> None:
        """On a node without GPUs a process sees none, whatever the submitter's shell says."""
        launch = place.launch(gpus=((),) * place.spec.node_count)
        for process in _all_processes(place.plan(place.job(), launch)):
            assert process.env["CUDA_VISIBLE_DEVICES"] == ""

    def test_tokens(self, place: LauncherPlace) -> None:
        """Plans for hosts that are not known yet become those for known hosts when the tokens are replaced."""
        hosts = place.launch().hosts
        tokens = tuple(host_token(node) for node in range(len(hosts)))
        early = _plain(place.plan(place.job(), place.launch(hosts=tokens)))
        assert replace_tokens(early, token_values(hosts, [])) == _plain(place.plan(place.job(), place.launch()))


def _script_processes(plans: tuple[NodePlan, ...]) -> list[ProcessPlan]:
    """The processes of the script: those that a launcher starts, or the ones of the plans themselves."""
    return [process for plan in plans for process in (plan.ranks or plan.processes)]


def _all_processes(plans: tuple[NodePlan, ...]) -> list[ProcessPlan]:
    return [process for plan in plans for process in (*plan.processes, *plan.ranks)]


def _plain(plans: tuple[NodePlan, ...]) -> Any:
    def from_mapping(value: Any) -> Any:
        return dict(value) if isinstance(value, Mapping) else value

    return json.loads(json.dumps([asdict(plan) for plan in plans], default=from_mapping))
