"""Containers as tables: which engine counts, and the command lines. No container is started here."""

from __future__ import annotations

import os
import stat
from dataclasses import replace

import pytest

from trainmaster.environments import pythons
from trainmaster.environments.containers import (
    SETTING,
    Container,
    Engine,
    Mount,
    check,
    engine_variables,
    find_engine,
    inside,
)
from trainmaster.environments.prefix import digest
from trainmaster.job.errors import EnvironmentException
from trainmaster.shared.job_spec import ContainerSpec, EnvironmentSpec

ARGV = ("python", "train.py", "--lr", "0.1")
MOUNTS = (Mount("/ws/runs/r1"), Mount("/ws/kits/k", read_only=True))
ENV = {"PATH": "/bin", "TRAINMASTER_RANK": "0", "TOKEN": "secret", "CUDA_VISIBLE_DEVICES": ""}
PASSED = ["CUDA_VISIBLE_DEVICES", "TOKEN", "TRAINMASTER_RANK"]


def command(name, spec=None, user="1000:100", passed=PASSED, gpus=False):
    container = Container(Engine(name, f"/usr/bin/{name}"), MOUNTS, user, {"DOCKER_HOST": "unix:///s"})
    given = ContainerSpec("org/image:1", shm_size="4g") if spec is None else spec
    return inside(container, given, "trainmaster-r1-0", ARGV, ENV, "/ws/runs/r1/code", passed, gpus)


BIND = ["--mount", "type=bind,source=/ws/runs/r1,target=/ws/runs/r1"]
BIND += ["--mount", "type=bind,source=/ws/kits/k,target=/ws/kits/k,readonly"]
VARIABLES = ["--env", "CUDA_VISIBLE_DEVICES", "--env", "TOKEN", "--env", "TRAINMASTER_RANK", "--env", "HOME=/tmp"]
VARIABLES += ["--env", "TRAINMASTER_CONTAINER=org/image:1"]
FIRST = ["run", "--rm", "--name", "trainmaster-r1-0", "--network", "host", "--pid", "host", "--log-driver", "none"]
FIRST += ["--shm-size", "4g"]
PLACE = ["--user", "1000:100", "--workdir", "/ws/runs/r1/code"]


def test_docker():
    words = ["/usr/bin/docker", *FIRST, *PLACE, *BIND, *VARIABLES, "org/image:1", *ARGV]
    found = command("docker")
    assert list(found.argv) == words
    assert found.env == {**ENV, "DOCKER_HOST": "unix:///s"}


def test_podman():
    own = ["--stop-timeout", "0", "--userns", "keep-id"]
    words = ["/usr/bin/podman", *FIRST, *own, *PLACE, *BIND, *VARIABLES, "org/image:1", *ARGV]
    assert list(command("podman").argv) == words
    assert "--userns" not in command("podman", user="0:0").argv


def test_apptainer():
    found = command("apptainer")
    assert list(found.argv) == [
        *("/usr/bin/apptainer", "exec", "--cleanenv", "--no-home", "--pwd", "/ws/runs/r1/code"),
        *("--bind", "/ws/runs/r1:/ws/runs/r1", "--bind", "/ws/kits/k:/ws/kits/k:ro"),
        *("docker://org/image:1", *ARGV),
    ]
    assert found.env["APPTAINERENV_TOKEN"] == "secret"
    assert found.env["APPTAINERENV_TRAINMASTER_CONTAINER"] == "org/image:1"
    assert "APPTAINERENV_PATH" not in found.env


@pytest.mark.parametrize(
    ("name", "words"),
    [("docker", ["rm", "--force"]), ("podman", ["rm", "--force", "--ignore"]), ("apptainer", None)],
)
def test_what_takes_a_container_away(name, words):
    assert list(command(name).remove) == ([f"/usr/bin/{name}", *words, "trainmaster-r1-0"] if words else [])


@pytest.mark.parametrize("name", ["docker", "podman", "apptainer"])
def test_values_are_not_on_the_command_line(name):
    assert "secret" not in " ".join(command(name).argv)


@pytest.mark.parametrize(
    ("name", "option"), [("docker", "--gpus all"), ("podman", "--device nvidia.com/gpu=all"), ("apptainer", "--nv")]
)
def test_gpus_only_where_the_process_has_some(name, option):
    assert option in " ".join(command(name, gpus=True).argv)
    assert option not in " ".join(command(name).argv)


@pytest.mark.parametrize(
    ("image", "named"),
    [("ubuntu", "docker://ubuntu"), ("oras://x/y", "oras://x/y"), ("/srv/x.sif", "/srv/x.sif"), ("x.sif", "x.sif")],
)
def test_images_of_apptainer(image, named):
    assert command("apptainer", ContainerSpec(image)).argv[-len(ARGV) - 1] == named


def test_settings_of_the_user():
    words = command("docker", ContainerSpec("i", arguments=("--cpus", "2")), passed=["HOME"]).argv
    assert words[-len(ARGV) - 3 :] == ("--cpus", "2", "i", *ARGV)
    assert "HOME=/tmp" not in words
    assert "--shm-size" not in words


def test_variables_of_engines():
    given = {"DOCKER_HOST": "a", "XDG_RUNTIME_DIR": "b", "APPTAINER_CACHEDIR": "c", "HOME": "d", "MY_DOCKER_HOST": "e"}
    assert sorted(engine_variables(given)) == ["APPTAINER_CACHEDIR", "DOCKER_HOST", "XDG_RUNTIME_DIR"]


@pytest.fixture
def programs(tmp_path):
    """Makes programs on a PATH of their own, that end with the code they are given."""

    def make(**codes):
        for name, code in codes.items():
            file = tmp_path / name
            file.write_text(f"#!/bin/sh\necho working\necho '{name} is not running' >&2\nexit {code}\n")
            file.chmod(stat.S_IRWXU)
        return {"PATH": str(tmp_path)}

    return make


@pytest.mark.parametrize(
    ("codes", "chosen", "found"),
    [
        ({"docker": 0, "podman": 0}, "", "docker"),
        ({"docker": 1, "podman": 0}, "", "podman"),
        ({"docker": 1, "podman": 1, "apptainer": 0}, "", "apptainer"),
        ({"singularity": 0}, "", "apptainer"),
        ({"docker": 0, "podman": 0}, "Podman", "podman"),
        ({"docker": 0, "podman": 1}, "podman", None),
        ({"docker": 0}, "kubernetes", None),
        ({}, "", None),
    ],
)
def test_a_client_without_its_service_does_not_count(programs, codes, chosen, found):
    engine, told = find_engine({**programs(**codes), SETTING: chosen})
    assert (engine.name if engine else None) == found
    assert bool(told) == (engine is None)


def test_what_was_found_is_told(programs):
    assert find_engine(programs(docker=1, podman=2))[1] == (
        "docker: docker is not running; podman: podman is not running; apptainer: not installed"
    )


def test_a_program_that_cannot_be_run(tmp_path):
    (tmp_path / "docker").write_bytes(b"\x7fELF")
    os.chmod(tmp_path / "docker", 0o700)
    assert "docker: Exec format error" in find_engine({"PATH": str(tmp_path)})[1]


class TestCheck:
    IMAGE = ContainerSpec("org/image:1")

    def test_without_an_image_nobody_is_asked(self):
        check(EnvironmentSpec(pip_packages=("numpy",)), {"PATH": "/nowhere"})

    def test_without_an_engine(self, programs):
        with pytest.raises(EnvironmentException) as caught:
            check(EnvironmentSpec(container=self.IMAGE), programs(docker=1))
        assert caught.value.headline == (
            "the run uses image 'org/image:1', but no container engine runs on this machine"
        )
        assert "docker: docker is not running" in caught.value.cause
        assert "pip_packages" in caught.value.hint
        assert "user_managed=True" in caught.value.hint

    def test_with_an_engine(self, programs):
        check(EnvironmentSpec(container=self.IMAGE), programs(docker=0))
        check(EnvironmentSpec(user_managed=True, container=self.IMAGE), programs(docker=0))

    def test_packages_need_a_python_that_can_be_seen_inside(self, programs, monkeypatch):
        monkeypatch.setattr(pythons, "_OF_SYSTEM", ("/",))
        spec = EnvironmentSpec(pip_packages=("numpy",), container=self.IMAGE)
        with pytest.raises(EnvironmentException, match="of this machine can be used in an image") as caught:
            check(spec, programs(docker=0))
        assert "belongs to the operating system" in caught.value.cause
        assert "uv python install" in caught.value.hint

    def test_conda_brings_its_own_python(self, programs, monkeypatch):
        monkeypatch.setattr(pythons, "_OF_SYSTEM", ("/",))
        check(EnvironmentSpec(conda_packages=("mkl",), container=self.IMAGE), programs(docker=0))


class TestPythonForAnImage:
    SPEC = EnvironmentSpec(python_version="3.12", pip_packages=("numpy",), container=ContainerSpec("org/image:1"))

    def test_one_of_uv_comes_first(self, tmp_path, monkeypatch):
        program = tmp_path / "cpython-3.12.9-linux-x86_64-gnu" / "bin" / "python3.12"
        program.parent.mkdir(parents=True)
        program.touch(0o755)
        monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(tmp_path))
        monkeypatch.setattr(pythons, "find_python", lambda version: f"/opt/python{version}")
        assert pythons.python_for(self.SPEC) == str(program)
        assert pythons.python_for(replace(self.SPEC, container=None)) == "/opt/python3.12"

    def test_newer_ones_that_an_image_can_use(self, tmp_path, monkeypatch):
        program = tmp_path / "python3.9"
        program.touch(0o755)
        found = {"3.6": "/usr/bin/python3.6", "3.8": "/usr/bin/python3.8", "3.9": str(program)}
        monkeypatch.setattr(pythons, "all_pythons", lambda: found)
        monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(tmp_path / "none"))
        wanted = replace(self.SPEC, python_version="3.7")
        assert pythons.newer_for(wanted) == ["3.9"]
        assert pythons.newer_for(replace(wanted, container=None)) == ["3.8", "3.9"]


def test_which_image_it_is_does_not_change_an_environment():
    spec = EnvironmentSpec(pip_packages=("numpy",))
    first, second = (replace(spec, container=ContainerSpec(name, "2g")) for name in ("a", "b"))
    assert digest(first) == digest(second) != digest(spec)


@pytest.mark.parametrize(
    ("settings", "is_of_image"),
    [
        ({}, True),
        ({"pip_packages": ("--pre",)}, True),
        ({"pip_packages": ("numpy",)}, False),
        ({"conda_packages": ("numpy",)}, False),
        ({"pip_packages": ("numpy",), "user_managed": True}, True),
    ],
)
def test_whose_packages_they_are(settings, is_of_image):
    assert EnvironmentSpec(container=ContainerSpec("org/image:1"), **settings).is_of_image == is_of_image
    assert not EnvironmentSpec(**settings).is_of_image


def test_the_environment_is_set_inside_only():
    container = Container(
        Engine("podman", "/usr/bin/podman"), (), "0:0", environment={"VIRTUAL_ENV": "/e"}, programs="/e/bin", path="/p"
    )
    made = inside(container, ContainerSpec("i"), "c", ARGV, ENV, "/w", PASSED)
    own = {each for each in made.argv if "=" in each}
    assert own == {"HOME=/tmp", "VIRTUAL_ENV=/e", "PATH=/e/bin:/p", "TRAINMASTER_CONTAINER=i"}
    assert made.env["PATH"] == "/bin"
    chosen = inside(container, ContainerSpec("i"), "c", ARGV, ENV, "/w", ["PATH"])
    assert not [each for each in chosen.argv if each.startswith("PATH=")]
