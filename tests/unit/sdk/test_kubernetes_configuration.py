"""KubernetesCompute.configuration: what people write, and what is recorded of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainmaster import KubernetesCompute
from trainmaster.engines.kubernetes.permissions import NEEDED, NEEDED_BY_SERVICES
from trainmaster.engines.kubernetes.storage_path import with_storage_path
from trainmaster.job.errors import ComputeTargetException
from trainmaster.shared.kubernetes_settings import Cache, Storage, Volume, write_settings
from trainmaster.shared.kubernetes_texts import read_cache, read_pairs, read_storage, read_toleration, read_volume
from trainmaster.shared.pod_sizes import find_pod_size, pod_size
from trainmaster.shared.records import TargetRecord
from trainmaster.shared.vm_sizes import VmSize, VmSizes, read_sizes


def test_texts_and_objects_mean_the_same():
    given = KubernetesCompute.configuration(
        "prod",
        "train",
        cpus_per_node=0.5,
        memory_per_node=8 * 2**30,
        storage="claim=shared,path=/mnt/shared",
        volumes=["claim=data,path=/data,read-only"],
        tolerations=["gpu=yes:NoSchedule"],
        labels=["team=vision"],
        resources=["rdma/hca=1"],
        spread=True,
    )
    same = KubernetesCompute.configuration(
        context="prod",
        namespace="train",
        cpus_per_node="0.5",
        memory_per_node="8GB",
        storage={"claim": "shared", "path": "/mnt/shared"},
        volumes=[{"kind": "claim", "name": "data", "path": "/data", "read_only": True}],
        tolerations=[{"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}],
        labels={"team": "vision"},
        resources={"rdma/hca": 1},
        spread="require",
    )
    recorded, other = write_settings(given.settings), write_settings(same.settings)
    assert (recorded.pop("memory"), other.pop("memory")) == ("8Gi", "8GB")
    assert recorded == other
    assert given.settings.storage == Storage("shared", "/mnt/shared")
    assert given.settings.volumes == (Volume("claim", "data", "/data", True),)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"storage": "clam=shared"}, "Did you mean claim"),
        ({"storage": {"claim": "a", "pth": "/a"}}, "unknown keys: pth"),
        ({"cache": "claim=a,node=/b"}, "cache must be none, claim=NAME or node=/FOLDER"),
        ({"volumes": ["claim=data"]}, "volumes must be such as"),
        ({"volumes": "claim=data,path=/data"}, "volumes must be a list"),
        ({"tolerations": ["gpu:NoScedule"]}, "Did you mean NoSchedule"),
        ({"labels": ["team"]}, "labels must be a list of KEY=VALUE"),
        ({"nodes": 0}, "nodes must be a whole number of at least 1"),
        ({"gpus_per_node": -1}, "gpus_per_node must be"),
        ({"cpus_per_node": "many"}, "cpus_per_node must be"),
        ({"memory_per_node": "1k"}, "memory_per_node must be"),
        ({"image": "a b"}, "image must be"),
        ({"spread": "wide"}, "spread must be one of"),
        ({"image_pull_policy": "Sometimes"}, "image_pull_policy must be one of"),
        ({"namespace": 5}, "namespace must be str"),
    ],
)
def test_wrong_values_are_refused_at_once(wrong, words):
    with pytest.raises(ComputeTargetException) as caught:
        KubernetesCompute.configuration(**wrong)
    assert words in caught.value.message


def test_nothing_given_is_nothing():
    assert read_storage(None) is None
    assert read_cache("none") == read_cache(None) == Cache()
    assert read_pairs("labels", None) == {}
    assert read_toleration({"key": "a"}) == {"key": "a"}
    assert read_volume(Volume("claim", "a", "/a")) == Volume("claim", "a", "/a")


def test_a_pod_leaves_a_part_of_its_machine_to_the_cluster():
    for size in read_sizes().sizes.values():
        pod = pod_size(size)
        assert pod.gpus == size.gpus
        assert 0 < int(pod.memory.removesuffix("Mi")) < size.memory_gb * 1024
    assert pod_size(VmSize("A", 1, 0, 2.0)).cpus == "750m"
    assert pod_size(VmSize("A", 40, 0, 2.0)).cpus == "38"


def test_an_unknown_size_is_refused():
    sizes = VmSizes({"STANDARD_NC6": VmSize("STANDARD_NC6", 6, 1, 56.0)})
    assert find_pod_size(sizes, "nc6").gpus == 1
    with pytest.raises(ComputeTargetException, match="Did you mean STANDARD_NC6"):
        find_pod_size(sizes, "STANDARD_NC7")


def test_a_storage_has_the_workspace_in_it(tmp_path):
    workspace = tmp_path / "shared" / "workspace"
    workspace.mkdir(parents=True)
    target = TargetRecord("gpu", "kubernetes", 1, 0, 0, {"image": "a", "storage": {"claim": "shared", "path": ""}})

    def stored(path: Path) -> TargetRecord:
        given = {**target.options, "storage": {"claim": "shared", "path": str(path)}}
        return with_storage_path(TargetRecord("gpu", "kubernetes", 1, 0, 0, given), workspace)

    assert stored(tmp_path / "shared").options["storage"] == {"claim": "shared", "path": str(tmp_path / "shared")}
    with pytest.raises(ComputeTargetException, match="is not a folder of this machine"):
        stored(tmp_path / "missing")
    (tmp_path / "other").mkdir()
    with pytest.raises(ComputeTargetException, match="is not in the storage"):
        stored(tmp_path / "other")


@pytest.mark.parametrize(("file", "needed"), [("role.yaml", NEEDED), ("role-services.yaml", NEEDED_BY_SERVICES)])
def test_the_roles_have_exactly_what_is_needed(file, needed):
    import yaml

    role = yaml.safe_load((Path(__file__).parents[3] / "deploy" / "kubernetes" / file).read_text())
    allowed = {
        ".".join(filter(None, (resource, group))): set(rule["verbs"])
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert allowed == {name: set(verbs) for name, verbs in needed.items()}
