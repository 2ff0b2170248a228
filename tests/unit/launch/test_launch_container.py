"""A plan whose processes run in an image."""

from __future__ import annotations

from dataclasses import replace

import pytest

from trainmaster.environments.containers import Container, Engine, Mount
from trainmaster.launch import Launch, plan_launch
from trainmaster.shared.job_spec import ContainerSpec, Distribution, EnvironmentSpec, JobSpec

SPEC = JobSpec(
    source_directory="/src",
    target="local",
    script="train.py",
    environment=EnvironmentSpec(container=ContainerSpec("org/image:1")),
    environment_variables={"MINE": "1", "LANG": "C"},
    inherited_variables={"PATH": "/bin", "HOME": "/home/me", "LANG": "de_DE", "https_proxy": "http://proxy"},
)
LAUNCH = Launch(
    run_id="r1",
    code_folder="/ws/runs/r1/code",
    log_folder="/ws/runs/r1/logs",
    python="python",
    run_variables={"AZUREML_RUN_ID": "r1", "PYTHONPATH": "/ws/kits/k"},
    container=Container(Engine("docker", "/usr/bin/docker"), (Mount("/ws/runs/r1"),), "0:0"),
)


def container_variables(argv):
    return {argv[n + 1] for n, word in enumerate(argv) if word == "--env"}


def test_the_script_runs_in_the_image():
    ((process,),) = [plan.processes for plan in plan_launch(SPEC, LAUNCH)]
    assert process.argv[:2] == ("/usr/bin/docker", "run")
    assert process.argv[-3:] == ("org/image:1", "python", "train.py")
    assert process.argv[process.argv.index("--name") + 1] == "trainmaster-r1-1-0"
    assert process.remove == ("/usr/bin/docker", "rm", "--force", "trainmaster-r1-1-0")
    assert process.env["TRAINMASTER_AGENT"] == "r1/0"
    assert process.cwd == "/ws/runs/r1/code"
    assert process.env["PATH"] == "/bin"


def test_it_sees_what_is_said_about_the_run_and_not_the_machine():
    names = container_variables(plan_launch(SPEC, LAUNCH)[0].processes[0].argv)
    assert {
        "MINE",
        "LANG",
        "AZUREML_RUN_ID",
        "PYTHONPATH",
        "TRAINMASTER_RANK",
        "TRAINMASTER_AGENT",
        "https_proxy",
    } <= names
    assert names.isdisjoint({"PATH", "HOME"})


@pytest.mark.parametrize(("gpus", "has_some"), [(((),), False), ((("0", "1"),), True)])
@pytest.mark.parametrize("kind", ["single", "mpi", "torch"])
def test_gpus_only_where_the_run_has_some(kind, gpus, has_some):
    spec = replace(SPEC, distribution=Distribution(kind))
    (plan,) = plan_launch(spec, replace(LAUNCH, gpus=gpus, ports=(1,)))
    assert ("--gpus" in plan.processes[0].argv) == has_some


def test_ranks_of_mpirun_have_the_variables_of_its_container_and_their_own():
    spec = replace(SPEC, distribution=Distribution("mpi", process_count_per_node=2))
    (plan,) = plan_launch(spec, replace(LAUNCH, ports=(1,)))
    assert "mpirun" in plan.processes[0].argv
    for rank in plan.ranks:
        assert rank.inherits == ("",)
        assert rank.argv == ("python", "train.py")
        assert {"MINE", "RANK", "PYTHONPATH"} <= set(rank.env)
        assert set(rank.env).isdisjoint({"PATH", "HOME"})


def test_without_an_image_nothing_changes():
    plain = replace(SPEC, environment=EnvironmentSpec())
    assert plan_launch(plain, LAUNCH)[0].processes[0].argv == ("python", "train.py")
