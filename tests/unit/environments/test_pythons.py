"""Which Pythons of a machine are found, and which are not to be trusted."""

import os
import sys

import pytest

from trainmaster.environments.pythons import all_pythons, find_python, running_version
from trainmaster.job.errors import EnvironmentException


@pytest.fixture
def machine(tmp_path):
    """Puts programs into a home of its own; says which Pythons are found there."""

    def put(*programs):
        for program in programs:
            path = tmp_path / program
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("")
            path.chmod(0o755)

    def found(**variables):
        environ = {"HOME": str(tmp_path), "PATH": "", **{k: str(tmp_path / v) for k, v in variables.items()}}
        here = str(tmp_path) + "/"
        return {v: path.removeprefix(here) for v, path in all_pythons(environ).items() if path.startswith(here)}

    return put, found


def other(*minors):
    """A minor release that is not the running one."""
    return next(minor for minor in minors if minor != sys.version_info.minor)


ONE = other(8, 9)
V = f"3.{ONE}"


def test_the_running_one_is_always_there():
    assert all_pythons({"PATH": ""})[running_version()] == os.path.realpath(sys.executable)
    assert find_python(running_version()) == os.path.realpath(sys.executable)


@pytest.mark.parametrize(
    ("program", "variables"),
    [
        (f"bin/python{V}", {"PATH": "bin"}),
        (f".pyenv/versions/{V}.4/bin/python{V}", {}),
        (f"py/versions/{V}.4/bin/python{V}", {"PYENV_ROOT": "py"}),
        (f".local/share/uv/python/cpython-{V}.9-linux-x86_64-gnu/bin/python{V}", {}),
        (f"data/uv/python/cpython-{V}.9-linux-x86_64-gnu/bin/python{V}", {"XDG_DATA_HOME": "data"}),
        (f"uv/cpython-{V}.9-linux-x86_64-gnu/bin/python{V}", {"UV_PYTHON_INSTALL_DIR": "uv"}),
        (f"miniconda3/bin/python{V}", {}),
        (f"anaconda3/envs/old/bin/python{V}", {}),
        (f"somewhere/bin/python{V}", {"CONDA_PREFIX": "somewhere"}),
    ],
)
def test_places(machine, program, variables):
    put, found = machine
    assert V not in found(**variables)
    put(program)
    assert found(**variables) == {V: program}


@pytest.mark.parametrize(
    ("program", "variables"),
    [
        (f".pyenv/shims/python{V}", {"PATH": ".pyenv/shims"}),
        (f".asdf/shims/python{V}", {"PATH": ".asdf/shims"}),
        (f".pyenv/versions/{V}.0t/bin/python{V}", {}),
        (f".pyenv/versions/{V}.0rc1/bin/python{V}", {}),
        (f".pyenv/versions/pypy{V}-7.3.11/bin/python{V}", {}),
        (f".local/share/uv/python/pypy-{V}.16-linux-x86_64-gnu/bin/python{V}", {}),
        (f".local/share/uv/python/cpython-{V}.0+freethreaded-linux-x86_64-gnu/bin/python{V}", {}),
        ("bin/python3.5", {"PATH": "bin"}),
        (f"bin/python{V}-config", {"PATH": "bin"}),
        (f"bin/python{V}/file", {"PATH": "bin"}),
    ],
)
def test_what_is_no_python_of_ours(machine, program, variables):
    put, found = machine
    put(program)
    assert found(**variables) == {}


def test_a_shim_does_not_hide_what_is_behind_it(machine, tmp_path):
    put, found = machine
    put(f"shims/python{V}", f"bin/python{V}")

    assert found(PATH=f"shims:{tmp_path}/bin")[V] == f"bin/python{V}"


def test_the_newest_patch_of_pyenv(machine):
    put, found = machine
    put(f".pyenv/versions/{V}.9/bin/python{V}", f".pyenv/versions/{V}.18/bin/python{V}")
    assert found() == {V: f".pyenv/versions/{V}.18/bin/python{V}"}


def test_what_cannot_be_started_is_not_taken(machine, tmp_path):
    put, found = machine
    put(f".pyenv/versions/{V}.9/bin/python{V}")
    (tmp_path / f".pyenv/versions/{V}.9/bin/python{V}").chmod(0o644)
    assert found() == {}


def test_a_virtual_environment_on_the_path_stands_for_its_python(machine, tmp_path):
    put, found = machine
    put(f"real/python{V}")
    (tmp_path / "venv").mkdir()
    (tmp_path / "venv" / f"python{V}").symlink_to(tmp_path / f"real/python{V}")
    assert found(PATH="venv") == {V: f"real/python{V}"}


def test_a_python_that_is_not_there():
    with pytest.raises(EnvironmentException) as refused:
        find_python("3.99")
    assert refused.value.headline == "this machine has no Python 3.99"
    assert running_version() in refused.value.cause
    assert "uv python install 3.99" in refused.value.hint
