"""v1's compute targets against a real dispatcher: made, found, described, used, refused."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import warnings

import pytest
from tests.conftest import end_workspace, ended, until

from trainmaster import (
    ComputeTarget,
    Estimator,
    Experiment,
    Gloo,
    KubernetesCompute,
    LocalCompute,
    PyTorch,
    RunConfiguration,
    ScriptRunConfig,
)
from trainmaster.job.errors import ComputeTargetException
from trainmaster.sdk.compute.clusters import AmlCompute
from trainmaster.sdk.compute.remote import RemoteCompute
from trainmaster.sdk.v1.azure_targets import (
    AksCompute,
    BatchAiCompute,
    DsvmCompute,
    HDInsightCompute,
)
from trainmaster.sdk.v1.compute_instance import ComputeInstance

pytestmark = pytest.mark.filterwarnings("ignore:target .*this machine has none:UserWarning")

STATUS_KEYS = {
    "currentNodeCount",
    "targetNodeCount",
    "nodeStateCounts",
    "allocationState",
    "allocationStateTransitionTime",
    "errors",
    "creationTime",
    "modifiedTime",
    "provisioningState",
    "provisioningStateTransitionTime",
    "scaleSettings",
    "vmPriority",
    "vmSize",
}


@pytest.fixture
def cluster(shared):
    config = AmlCompute.provisioning_configuration(vm_size="STANDARD_D2_V2", min_nodes=1, max_nodes=3)
    made = ComputeTarget.create(shared, "cpu-cluster", config)
    yield made
    if "cpu-cluster" in shared.compute_targets:
        ComputeTarget(shared, "cpu-cluster").delete()


def test_find_else_create(shared, capsys):
    """The block that every notebook has."""
    try:
        target = ComputeTarget(workspace=shared, name="found-or-made")
        raise AssertionError("it cannot be there")
    except ComputeTargetException as error:
        assert "ComputeTargetNotFound" in error.message
        config = AmlCompute.provisioning_configuration(vm_size="STANDARD_D2_V2", max_nodes=4)
        target = ComputeTarget.create(shared, "found-or-made", config)
        target.wait_for_completion(show_output=True, min_node_count=None, timeout_in_minutes=20)
    assert "Minimum number of nodes requested have been provisioned" in capsys.readouterr().out
    assert (target.nodes, target.type, target.provisioning_state) == (4, "AmlCompute", "Succeeded")
    again = ComputeTarget(shared, "found-or-made")
    assert type(again) is AmlCompute
    assert again.serialize() == target.serialize()
    assert shared.compute_targets["found-or-made"].type == "AmlCompute"
    assert shared.compute_targets()["found-or-made"].vm_size == "STANDARD_D2_V2"


def test_status_of_a_cluster(cluster, shared, launch, gate):
    idle = cluster.get_status()
    assert set(idle.serialize()) == STATUS_KEYS
    assert idle.serialize() == cluster.status.serialize()
    assert (idle.current_node_count, idle.node_state_counts.idle_node_count) == (1, 1)
    assert idle.serialize()["scaleSettings"] == {
        "minNodeCount": 1,
        "maxNodeCount": 3,
        "nodeIdleTimeBeforeScaleDown": "PT1800S",
    }
    wait = gate("busy")
    run = launch(wait.wait, compute_target=cluster)
    wait.await_arrival()
    busy = cluster.get_status()
    assert (busy.node_state_counts.running_node_count, busy.node_state_counts.idle_node_count) == (1, 0)
    assert [each.id for each in cluster.get_active_runs()] == [run.id]
    assert [(node["nodeState"], node["runId"]) for node in cluster.list_nodes()] == [("running", run.id)]
    with pytest.raises(ComputeTargetException, match="in use"):
        cluster.delete()
    wait.open()
    assert ended(run)["status"] == "Completed"


def test_update_and_what_azure_alone_knows(cluster, shared):
    cluster.update(min_nodes=0, max_nodes=5, idle_seconds_before_scaledown="2400")
    cluster.add_identity("UserAssigned", ["me"])
    again = ComputeTarget(shared, "cpu-cluster")
    scale = again.scale_settings
    assert (scale.minimum_node_count, scale.maximum_node_count, scale.idle_seconds_before_scaledown) == (0, 5, 2400)
    assert again.created_on == cluster.created_on
    assert again.serialize()["properties"]["properties"]["identity_id"] == ["me"]
    cluster.remove_identity()
    assert "identity_id" not in cluster.serialize()["properties"]["properties"]
    with pytest.raises(ComputeTargetException, match="min_nodes=9 is more"):
        cluster.update(min_nodes=9)
    assert ComputeTarget(shared, "cpu-cluster").nodes == 5


def test_azure_parameters_are_recorded_but_no_password(shared):
    config = AmlCompute.provisioning_configuration(
        vm_size="STANDARD_D2_V2",
        vm_priority="lowpriority",
        max_nodes=1,
        admin_username="me",
        admin_user_password="s3cr3t-word",
        vnet_resourcegroup_name="g",
        vnet_name="v",
        subnet_name="s",
        tags={"team": "vision"},
        description="ours",
        location="westeurope",
        idle_seconds_before_scaledown="120",
    )
    made = ComputeTarget.create(shared, "recorded", config)
    facts = json.dumps(made.serialize())
    assert all(word in facts for word in ("me", '"vnet_name": "v"', "lowpriority", "vision", "ours"))
    assert "s3cr3t" not in facts
    assert made.location == "westeurope"
    assert made.tags == {"team": "vision"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "max_nodes is missing"),
        ({"max_nodes": -1}, "max_nodes"),
        ({"max_nodes": "4"}, "max_nodes"),
        ({"max_nodes": True}, "max_nodes"),
        ({"max_nodes": 1, "min_nodes": 2}, "min_nodes=2 is more than max_nodes=1"),
        ({"max_nodes": 1, "vm_size": 6}, "vm_size must be a text"),
        ({"max_nodes": 1, "vm_priority": "soon"}, "vm_priority"),
        ({"max_nodes": 1, "idle_seconds_before_scaledown": "soon"}, "idle_seconds"),
        ({"max_nodes": 1, "admin_username": "me"}, "admin_user_password or admin_user_ssh_key"),
        ({"max_nodes": 1, "vnet_name": "v"}, "belong together"),
        ({"max_nodes": 1, "tags": ["a"]}, "tags must be a dict"),
    ],
)
def test_clusters_that_cannot_be(settings, message):
    with pytest.raises(ComputeTargetException, match=message):
        AmlCompute.provisioning_configuration(**settings)


@pytest.mark.parametrize("name", ["local", "amlcompute", "containerinstance", "AmlCompute", "a b", "", None, "x" * 64])
def test_names_that_cannot_be(shared, name):
    config = AmlCompute.provisioning_configuration(max_nodes=1)
    with pytest.raises(ComputeTargetException, match="name"):
        ComputeTarget.create(shared, name, config)


def test_what_describes_no_target(shared):
    attach = RemoteCompute.attach_configuration("me", address="localhost")
    for wrong in (None, {}, "cluster", attach, AmlCompute):
        with pytest.raises(ComputeTargetException, match="does not describe"):
            ComputeTarget.create(shared, "wrong", wrong)
    with pytest.raises(ComputeTargetException, match="does not describe"):
        ComputeTarget.attach(shared, "wrong", AmlCompute.provisioning_configuration(max_nodes=1))
    assert "wrong" not in shared.compute_targets


def test_class_is_that_of_the_target(shared, cluster):
    with pytest.raises(ComputeTargetException, match="class AmlCompute, not RemoteCompute"):
        RemoteCompute(shared, "cpu-cluster")
    assert type(AmlCompute(shared, "cpu-cluster")) is AmlCompute
    assert type(ComputeTarget(shared, "local")) is LocalCompute
    assert ComputeTarget(shared, "local").get_status().serialize()["name"] == "local"


def test_gpus_that_are_not_here(shared, launch, monkeypatch):
    monkeypatch.setattr("trainmaster.shared.machine.gpus", lambda: ())
    config = AmlCompute.provisioning_configuration(vm_size="STANDARD_NC6", max_nodes=2)
    with warnings.catch_warnings(), pytest.warns(UserWarning, match="1 GPU per node, this machine has none"):
        warnings.simplefilter("always")
        cluster = ComputeTarget.create(shared, "gpu-cluster", config)
    assert shared.get_default_compute_target("GPU").vm_size == "STANDARD_NC6"
    run = launch("print('ran')", compute_target=cluster)
    details = ended(run)
    assert details["status"] == "Completed"
    assert "this machine has none: scripts run on the CPU" in details["warnings"][0]["message"]


def test_strict_sizes_refuse(shared, project, monkeypatch):
    monkeypatch.setattr("trainmaster.shared.machine.gpus", lambda: ())
    table = shared.path / "vm-sizes.json"
    table.write_text('{"strict": true, "sizes": {"BIG": {"vcpus": 9, "gpus": 64, "memory_gb": 1}}}')
    try:
        for vm_size in ("BIG", "UNKNOWN"):
            with pytest.raises(ComputeTargetException, match=vm_size):
                ComputeTarget.create(
                    shared, "never", AmlCompute.provisioning_configuration(vm_size=vm_size, max_nodes=1)
                )
        source = project(train="print('ran')")
        with pytest.raises(ComputeTargetException, match="64 GPUs per node"):
            Experiment(shared, "strict").submit(Estimator(str(source), entry_script="train.py", vm_size="BIG"))
    finally:
        table.unlink()
    assert "never" not in shared.compute_targets
    assert list(Experiment(shared, "strict").get_runs()) == []


def test_vm_size_makes_a_cluster_for_the_run(shared, project, gate):
    wait = gate("own")
    estimator = PyTorch(
        str(project(train=f"import os\nif os.environ['RANK'] == '0':\n    {wait.wait}\n")),
        entry_script="train.py",
        user_managed=True,
        vm_size="STANDARD_D2_V2",
        vm_priority="lowpriority",
        node_count=3,
        distributed_training=Gloo(),
    )
    run = Experiment(shared, "own").submit(estimator)
    wait.await_arrival()
    own = ComputeTarget(shared, run.get_details()["target"])
    assert own.name.startswith("amlcompute-")
    assert (type(own), own.nodes, own.vm_size, own.vm_priority) == (AmlCompute, 3, "STANDARD_D2_V2", "lowpriority")
    assert own.get_status().node_state_counts.running_node_count == 3
    wait.open()
    assert ended(run)["status"] == "Completed"
    assert until(lambda: own.name not in shared.compute_targets)


def test_run_configuration_with_a_cluster_of_its_own(shared, project):
    config = RunConfiguration()
    config.environment.python.user_managed_dependencies = True
    config.target = "amlcompute"
    source = ScriptRunConfig(str(project(train="print('ran')")), script="train.py", run_config=config)
    with pytest.raises(ComputeTargetException, match="needs a vm_size"):
        Experiment(shared, "own").submit(source)
    config.amlcompute.vm_size = "STANDARD_D2_V2"
    assert ended(Experiment(shared, "own").submit(source))["status"] == "Completed"


def test_batch_ai_of_2018(shared, launch, capsys):
    config = BatchAiCompute.provisioning_configuration(
        vm_size="STANDARD_D2_V2", autoscale_enabled=True, cluster_min_nodes=0, cluster_max_nodes=4
    )
    made = BatchAiCompute.create(shared, name="batchai", provisioning_configuration=config)
    made.wait_for_completion(show_output=True, min_node_count=None, timeout_in_minutes=20)
    assert "Succeeded" in capsys.readouterr().out
    assert made.status.serialize()["scaleSettings"]["maxNodeCount"] == 4
    assert (type(shared.compute_targets()["batchai"]), made.type) == (BatchAiCompute, "BatchAI")
    assert ended(launch("print(1)", compute_target=made))["status"] == "Completed"


def test_machines_of_this_machine(shared, launch):
    instance = ComputeTarget.create(shared, "instance", ComputeInstance.provisioning_configuration("STANDARD_D2_V2"))
    dsvm = DsvmCompute.create(shared, "dsvm", DsvmCompute.provisioning_configuration(vm_size="Standard_D2_v2"))
    here = ComputeTarget.attach(
        shared, "here", RemoteCompute.attach_configuration(username="me", address="localhost", password="s3cr3t-word")
    )
    assert [each.type for each in (instance, dsvm, here)] == ["ComputeInstance", "VirtualMachine", "VirtualMachine"]
    runs = [launch("print(1)", compute_target=each) for each in (instance, dsvm, here)]
    assert [ended(run)["status"] for run in runs] == ["Completed"] * 3
    assert "s3cr3t" not in json.dumps(here.serialize())
    instance.stop(show_output=True)
    assert instance.get_status().state == "Stopped"
    with pytest.raises(ComputeTargetException, match="is stopped"):
        launch("print(1)", compute_target=ComputeTarget(shared, "instance"))
    instance.start()
    assert ended(launch("print(1)", compute_target=instance))["status"] == "Completed"
    instance.delete(wait_for_completion=True)
    here.detach()
    assert not {"instance", "here"} & set(shared.compute_targets)


def test_machine_that_cannot_be_reached(shared, launch, tmp_path):
    key = tmp_path / "id_rsa"
    key.write_text("private")
    with socket.socket() as nobody:
        # Taken, and nobody listens there.
        nobody.bind(("127.0.0.2", 0))
        port = nobody.getsockname()[1]
        with pytest.warns(UserWarning, match="cannot be reached"):
            old = RemoteCompute.attach(
                shared, "box", username="me", address="127.0.0.2", ssh_port=port, private_key_file=str(key)
            )
        assert (old.address, old.ssh_port, old.username) == ("127.0.0.2", port, "me")
        assert old.get_credentials()["privateKeyFile"] == str(key)
        assert type(ComputeTarget(shared, "box")) is RemoteCompute
        details = ended(launch("print(1)", compute_target=old))
    assert details["status"] == "Failed"
    assert f"host me@127.0.0.2:{port} cannot be reached" in details["error"]["message"]


def test_targets_that_take_no_jobs(shared, launch):
    aks = ComputeTarget.create(shared, "aks", AksCompute.provisioning_configuration(agent_count=3, vm_size="x"))
    with pytest.warns(UserWarning, match="'arc' is only recorded"):
        kubernetes = ComputeTarget.attach(shared, "arc", KubernetesCompute.attach_configuration("id", namespace="n"))
    spark = ComputeTarget.attach(
        shared, "spark", HDInsightCompute.attach_configuration("me", address="hd", password="p")
    )
    assert [each.type for each in (aks, kubernetes, spark)] == ["AKS", "Kubernetes", "HDInsight"]
    assert aks.serialize()["options"]["azure"]["agent_count"] == 3
    for target, reason in ((aks, "services"), (kubernetes, "Kubernetes"), (spark, "HDInsight")):
        with pytest.raises(ComputeTargetException, match=reason):
            launch("print(1)", compute_target=target)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"username": "", "address": "h"}, "username is missing"),
        ({"username": "me"}, "address"),
        ({"username": "me", "address": "h", "ssh_port": 0}, "ssh_port"),
        ({"username": "me", "address": "h", "ssh_port": "x"}, "ssh_port"),
        (
            {"username": "me", "address": "h", "private_key_file": "/no/such/key"},
            "private key file /no/such/key does not exist",
        ),
    ],
)
def test_machines_that_cannot_be(settings, message):
    with pytest.raises(ComputeTargetException, match=message):
        RemoteCompute.attach_configuration(**settings)


def test_supported_sizes(shared):
    found = {each["name"]: each for each in AmlCompute.supported_vmsizes(shared)}
    assert found["STANDARD_NC6"] == {"name": "STANDARD_NC6", "vCPUs": 6, "gpus": 1, "memoryGB": 56}
    assert AmlCompute.list_usages(shared) == AmlCompute.list_quotas(shared) == []
    with pytest.raises(NotImplementedError, match="max_nodes"):
        AmlCompute.update_quotas(shared, "family", 3)


def test_command_line(shared):
    def trainmaster(*words: str) -> subprocess.CompletedProcess[str]:
        command = [
            sys.executable,
            "-m",
            "trainmaster.cli",
            "compute",
            *words,
            "--workspace",
            str(shared.path),
            "--json",
        ]
        return subprocess.run(command, capture_output=True, text=True, timeout=120)

    made = trainmaster("create", "sized", "--vm-size", "STANDARD_ND40rs_v2", "--nodes", "2")
    facts = json.loads(made.stdout)
    assert (facts["type"], facts["vm_size"], facts["nodes"]) == ("AmlCompute", "STANDARD_ND40rs_v2", 2)
    assert "8 GPUs per node" in made.stderr
    table = json.loads(trainmaster("sizes", "nd40").stdout)
    assert [size["gpus"] for size in table["sizes"]] == [8]
    assert str(shared.path / "vm-sizes.json") in table["files"]
    assert trainmaster("create", "sized", "--vm-size", "STANDARD_D2", "--gpus", "1").returncode == 2


def test_target_of_a_class_that_is_not_known(shared):
    from trainmaster.shared.records import TargetRecord
    from trainmaster.shared.serialization import to_plain

    shared.connection.call("targets.put", target=to_plain(TargetRecord("alien", "local", 1, 1, 0, {"class": "Alien"})))
    with pytest.raises(ComputeTargetException, match="unknown class 'Alien'"):
        ComputeTarget(shared, "alien")
    shared.connection.call("targets.delete", name="alien")


def test_many_programs_make_the_same_cluster(workspace):
    program = (
        "import sys\nfrom trainmaster import AmlCompute, ComputeTarget, Workspace\n"
        "config = AmlCompute.provisioning_configuration(max_nodes=3)\n"
        "print(ComputeTarget.create(Workspace(path=sys.argv[1]), 'same', config).nodes)\n"
    )
    command = [sys.executable, "-c", program, str(workspace.path)]
    programs = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ) for _ in range(4)]
    assert [each.communicate(timeout=120)[0].strip() for each in programs] == ["3"] * 4
    assert sorted(workspace.compute_targets) == ["local", "same"]


def test_throw_away_cluster_outlives_the_dispatcher(workspace, submit, gate):
    wait = gate("gate")
    run = submit(wait.wait, compute_target=None, vm_size="STANDARD_D2_V2")
    wait.await_arrival()
    from tests.conftest import stop_dispatcher

    from trainmaster.shared.folders import WorkspaceFolder

    workspace.connection.close()
    stop_dispatcher(WorkspaceFolder(workspace.path))
    # A table that nobody can read must not stop the next dispatcher from taking the run up.
    (workspace.path / "vm-sizes.json").write_text("{")
    own = ComputeTarget(workspace, run.get_details()["target"])
    assert own.get_status().node_state_counts.running_node_count == 1
    wait.open()
    assert ended(run)["status"] == "Completed"
    end_workspace(workspace.path)
