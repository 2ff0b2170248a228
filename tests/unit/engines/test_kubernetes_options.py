"""What a run requests on Kubernetes: the settings of its target, and what the run itself names."""

from __future__ import annotations

from dataclasses import replace

import pytest

from trainmaster.engines.kubernetes.docker_arguments import read_arguments
from trainmaster.engines.kubernetes.options import PodOptions, as_in_pod
from trainmaster.job.errors import ComputeTargetException
from trainmaster.shared.job_spec import ContainerSpec, EnvironmentSpec, JobSpec
from trainmaster.shared.kubernetes_settings import (
    Cache,
    KubernetesSettings,
    Storage,
    Volume,
    read_settings,
    write_settings,
)
from trainmaster.shared.records import TargetRecord


def read(spec: JobSpec | None = None, **options: object) -> PodOptions:
    return PodOptions.read(
        TargetRecord("gpu", "kubernetes", 1000, 4, 1, {"class": "KubernetesCompute", **options}), spec
    )


def job(image: str = "", shm_size: str = "", *arguments: str) -> JobSpec:
    container = ContainerSpec(image, shm_size, arguments) if image else None
    return JobSpec("", "gpu", script="train.py", environment=EnvironmentSpec(container=container))


def test_the_image_of_the_run_comes_before_that_of_the_target():
    assert read(job(), image="python:3.11-slim").image == "python:3.11-slim"
    assert read(job("team/torch:2"), image="python:3.11-slim").image == "team/torch:2"
    assert read(job("team/torch:2")).image == "team/torch:2"


def test_a_run_without_any_image_is_refused():
    with pytest.raises(ComputeTargetException, match="names an image") as caught:
        read(job())
    assert "custom_docker_image" in caught.value.hint


def test_shared_memory_is_the_larger_of_both():
    assert read(job(), image="a").shm_size == "2Gi"
    assert read(job("a", "2g"), shm_size="8Gi").shm_size == "8Gi"
    assert read(job("a", "16g"), shm_size="8Gi").shm_size == "16Gi"
    assert read(job("a", "", "--shm-size=512m")).shm_size == "512Mi"
    with pytest.raises(ComputeTargetException, match="shm_size"):
        read(job("a", "big"))


def test_options_for_docker_reach_the_pod():
    options = read(
        job(
            "a", "", "--env", "A=1", "-e=B=2", "--user", "1000:100", "--cap-add", "sys_ptrace", "--ipc=host", "-m", "4g"
        ),
        memory="1Gi",
    )
    assert options.env == {"A": "1", "B": "2"}
    assert (options.settings.run_as_user, options.settings.run_as_group) == (1000, 100)
    assert options.capabilities == ("SYS_PTRACE",)
    assert options.has_host_ipc
    assert options.limits["memory"] == "4Gi"
    assert read_arguments(["--privileged", "--gpus", "all", "--cpus=2"]).is_privileged


@pytest.mark.parametrize("arguments", [["--network", "host"], ["--volume=/a:/b"], ["--user", "me"], ["--env"]])
def test_other_options_for_docker_are_refused(arguments):
    with pytest.raises(ComputeTargetException, match="docker's option"):
        read(job("a", "", *arguments))


def test_a_job_is_changed_for_its_pod():
    target = TargetRecord("gpu", "kubernetes", 1000, 4, 1, {"image": "a", "python": "/opt/python"})
    assert as_in_pod(target, job()) == job()
    changed = as_in_pod(target, job("b", "", "--env", "A=1"))
    assert changed.environment.interpreter == "/opt/python"
    assert changed.environment_variables == {"A": "1"}
    packages = replace(job("b").environment, pip_packages=("six",))
    assert as_in_pod(target, replace(job("b"), environment=packages)).environment.interpreter == ""


def test_settings_survive_the_record_of_a_target():
    settings = KubernetesSettings(
        namespace="train",
        cpus="4",
        tolerations=({"key": "gpu", "operator": "Exists"},),
        volumes=(Volume("claim", "data", "/data", read_only=True),),
        storage=Storage("shared", "/mnt/shared"),
        pod_patch={"spec": {"dnsPolicy": "None"}},
    )
    assert read_settings({"class": "KubernetesCompute", "tags": {}, **write_settings(settings)}) == settings
    assert write_settings(KubernetesSettings()) == {}


def test_places_for_files_are_plain():
    assert (read(image="a").storage_claim, read(image="a").cache_claim, read(image="a").cache_path) == ("", "", "")
    stored = read(image="a", storage={"claim": "shared", "path": "/mnt/shared"})
    assert (stored.storage_claim, stored.storage_path) == ("shared", "/mnt/shared")
    assert read(image="a", cache={"kind": "claim", "name": "cache"}).cache_claim == "cache"
    assert read(image="a", cache={"kind": "node", "name": "/var/tm"}).cache_path == "/var/tm"
    assert read(image="a").settings.cache == Cache()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"namespace": "Train"}, "namespace must be"),
        ({"image": "two words"}, "image must be"),
        ({"cpus": "many"}, "cpus_per_node must be"),
        ({"cpus": "0"}, "cpus_per_node must be"),
        ({"memory": "1k"}, "memory_per_node must be"),
        ({"memory": 5}, "the target.memory must be str"),
        ({"gpu_resource": "gpu"}, "gpu_resource must be"),
        ({"resources": {"cpu": "4"}}, "Use cpus_per_node instead"),
        ({"resources": {"rdma/hca": "some"}}, "resources must be"),
        ({"labels": {"trainmaster.io/run": "x"}}, "Trainmaster sets it"),
        ({"labels": {"team": "a b"}}, "labels must be"),
        ({"annotations": {"a/b/c": "x"}}, "annotations must be"),
        ({"node_selector": {"zone": "a b"}}, "node_selector must be"),
        ({"tolerations": [{"key": "a", "effect": "Never"}]}, "tolerations must be"),
        ({"tolerations": [{"taint": "a"}]}, "tolerations must be"),
        ({"tolerations": [{"value": "a"}]}, "tolerations must be"),
        ({"volumes": [{"kind": "claim", "name": "a", "path": "data"}]}, "must be an absolute path"),
        ({"volumes": [{"kind": "nfs", "name": "a", "path": "/data"}]}, "must be one of claim, node, config, secret"),
        ({"volumes": [{"kind": "node", "name": "/a/../b", "path": "/data"}]}, "must be an absolute path"),
        (
            {"volumes": [{"kind": "claim", "name": name, "path": "/data"} for name in ("a", "b")]},
            "two volumes have the path",
        ),
        ({"storage": {"claim": "a", "path": "/"}}, "must be an absolute path"),
        ({"storage": {"claim": "a", "path": "/a"}, "cache": {"kind": "claim", "name": "b"}}, "cannot be used together"),
        ({"cache": {"kind": "claim", "name": ""}}, "cache must be"),
        ({"spread": "wide"}, "must be one of"),
        ({"run_as_user": -1}, "run_as_user must be"),
        ({"grace_seconds": 0}, "grace_seconds must be"),
        ({"priority_class": "High!"}, "priority_class must be"),
    ],
)
def test_wrong_settings_are_refused(options, words):
    with pytest.raises(ComputeTargetException) as caught:
        read_settings({"image": "python:3.11", **options})
    assert words in caught.value.message
