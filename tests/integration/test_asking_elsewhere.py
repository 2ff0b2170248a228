"""Scripts on other machines ask their workspace: secrets, datasets, models. Real sshd, a real Slurm."""

from __future__ import annotations

import pytest
from tests.cluster.hosts import SHARED, Hosts
from tests.cluster.slurm import MiniSlurm, variables
from tests.conftest import end_workspace, ended

from trainmaster import ComputeTarget, Estimator, Experiment, SshCompute, Workspace
from trainmaster.compute import SlurmCompute

VALUE = "hunter22-öäü"
HEAD = "import json, os, sys\nfrom azureml.core import Run\nrun = Run.get_context()\n"


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    with Hosts(tmp_path_factory.mktemp("cluster") / "hosts", 2) as made:
        yield made


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    with MiniSlurm(tmp_path_factory.mktemp("slurm") / "cluster", nodes=1) as made, variables(made):
        yield made


@pytest.fixture(scope="module")
def ws(tmp_path_factory, hosts, slurm):
    workspace = Workspace.create("elsewhere", path=tmp_path_factory.mktemp("elsewhere") / "ws", show_output=False)
    names = [host.name for host in hosts]
    known = {"config_file": hosts.ssh_config, "lost_after_seconds": 12}
    ComputeTarget.create(workspace, "pair", SshCompute.configuration(names, **known))
    ComputeTarget.create(workspace, "sharing", SshCompute.configuration(names, shared_folder=f"{SHARED}/tm", **known))
    there = {"shared_folder": str(workspace.path.parent), "cpus_per_node": 1}
    ComputeTarget.create(workspace, "cluster", SlurmCompute.configuration("main", max_nodes=1, **there))
    workspace.get_default_keyvault().set_secret("token", VALUE)
    yield workspace
    end_workspace(workspace.path)


@pytest.fixture
def send(ws, tmp_path):
    numbers = iter(range(100))

    def submit(script, **settings):
        source = tmp_path / f"source{next(numbers)}"
        source.mkdir()
        (source / "train.py").write_text(HEAD + script)
        settings = {"compute_target": "pair", "user_managed": True, **settings}
        return Experiment(ws, "asking").submit(Estimator(str(source), entry_script="train.py", **settings))

    return submit


def log(run, name="azureml-logs/70_driver_log.txt"):
    return run.get_details_with_logs()["logFiles"].get(name, "")


def completed(run):
    details = ended(run)
    assert details["status"] == "Completed", (details.get("error"), log(run))
    return log(run)


@pytest.mark.parametrize("target", ["pair", "sharing", "cluster"])
def test_a_secret(send, target):
    script = "value = run.get_secret('token')\nprint(len(value), value)\nprint(run.get_secret('none'))\n"
    told = completed(send(script, compute_target=target))
    assert f"{len(VALUE)} *" in told
    assert "hunter22" not in told
