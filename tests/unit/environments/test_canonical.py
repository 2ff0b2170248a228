"""What means the same has one digest, and what does not has not."""

from __future__ import annotations

import sys

import pytest

from trainmaster.environments.canonical import canonical
from trainmaster.environments.prefix import digest
from trainmaster.shared.job_spec import EnvironmentSpec

THIS = f"{sys.version_info.major}.{sys.version_info.minor}"

SAME_PIP = [
    (["b", "a"], ["a", "b"]),
    (["a", "a"], ["a"]),
    (["Scikit_Learn"], ["scikit-learn"]),
    (["a == 1.0"], ["a==1.0"]),
    (["a>=1,<2"], ["a <2, >= 1"]),
    (["a (>=1)"], ["a>=1"]),
    (["a[Y,x]"], ["a[x, y]"]),
    (["a ; python_version < '3.9'"], ['a;python_version   < "3.9"']),
    (["A @ https://x.example/a.whl"], ["a@https://x.example/a.whl"]),
    (["--index-url https://x.example", "a"], ["a", "--index-url=https://x.example"]),
    (["-i https://x.example"], ["--index-url  https://x.example"]),
    (["-f https://x.example"], ["-fhttps://x.example"]),
    (["--pre", "a", "--pre"], ["--pre", "a"]),
]
DIFFERENT_PIP = [
    (["a==1.0"], ["a==1.0.1"]),
    (["a"], ["a[x]"]),
    (["a>=1"], ["a>1"]),
    (["a; python_version<'3'"], ["a"]),
    (
        ["--extra-index-url https://x.example", "--extra-index-url https://y.example"],
        ["--extra-index-url https://y.example", "--extra-index-url https://x.example"],
    ),
    (["git+https://x.example/A.git"], ["git+https://x.example/a.git"]),
    (["a==1 --hash=sha256:aa"], ["a==1 --hash=sha256:bb"]),
    (["a @ https://x.example/1.whl"], ["a @ https://x.example/2.whl"]),
]
SAME_CONDA = [
    (["b", "a"], ["a", "b", "a"]),
    (["Numpy"], ["numpy"]),
    (["numpy >=1.0, <2"], ["numpy>=1.0,<2"]),
    (["numpy  1.8   py36_0"], ["numpy 1.8 py36_0"]),
    (["conda-forge::numpy = 1.8"], ["conda-forge::numpy=1.8"]),
]
DIFFERENT_CONDA = [
    (["numpy=1.8"], ["numpy==1.8"]),
    (["numpy 1.8"], ["numpy1.8"]),
    (["numpy=1.8"], ["numpy=1.8=py36_0"]),
    (["conda-forge::numpy"], ["numpy"]),
]


@pytest.mark.parametrize(("one", "other"), SAME_PIP)
def test_the_same_pip_packages(one, other):
    first, second = (EnvironmentSpec(pip_packages=tuple(each)) for each in (one, other))
    assert canonical(first) == canonical(second)
    assert digest(first) == digest(second)


@pytest.mark.parametrize(("one", "other"), DIFFERENT_PIP)
def test_other_pip_packages(one, other):
    first, second = (EnvironmentSpec(pip_packages=tuple(each)) for each in (one, other))
    assert digest(first) != digest(second)


@pytest.mark.parametrize(("one", "other"), SAME_CONDA)
def test_the_same_conda_packages(one, other):
    first, second = (EnvironmentSpec(conda_packages=tuple(each)) for each in (one, other))
    assert canonical(first) == canonical(second)


@pytest.mark.parametrize(("one", "other"), DIFFERENT_CONDA)
def test_other_conda_packages(one, other):
    first, second = (EnvironmentSpec(conda_packages=tuple(each)) for each in (one, other))
    assert digest(first) != digest(second)


def test_the_canonical_form_is_its_own():
    spec = EnvironmentSpec(
        pip_packages=("b [y,x] >= 1", "-i https://x.example", "a @ https://x.example/a.whl ; os_name == 'posix'"),
        conda_packages=("Numpy >= 1", "scipy"),
        conda_channels=("https://x.example/c/", "conda-forge", "https://x.example/c"),
    )
    once = canonical(spec)
    assert canonical(once) == once
    assert once.pip_packages == (
        "--index-url https://x.example",
        'a @ https://x.example/a.whl ; os_name == "posix"',
        "b[x,y]>=1",
    )
    assert once.conda_channels == ("https://x.example/c", "conda-forge")


def test_the_order_of_channels_counts():
    assert digest(EnvironmentSpec(conda_channels=("a", "b"))) != digest(EnvironmentSpec(conda_channels=("b", "a")))


def test_asking_for_the_python_that_is_there_changes_nothing():
    assert digest(EnvironmentSpec(python_version=THIS)) == digest(EnvironmentSpec())
    assert digest(EnvironmentSpec(python_version="3.6")) != digest(EnvironmentSpec())


@pytest.mark.parametrize(
    "change",
    [{"accelerator": "cpu"}, {"horovod": "0.28.1"}, {"open_mpi": True}, {"exclude_newer": "2026-01-01"}],
)
def test_everything_else_counts(change):
    assert digest(EnvironmentSpec(**change)) != digest(EnvironmentSpec())


def test_packages_mean_nothing_beside_ones_own_python():
    spec = EnvironmentSpec(user_managed=True, interpreter="/opt/python", pip_packages=("a",))
    assert canonical(spec) == EnvironmentSpec(user_managed=True, interpreter="/opt/python")
