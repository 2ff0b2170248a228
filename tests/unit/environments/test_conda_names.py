"""What pip is asked for in place of a conda package, as a table."""

from __future__ import annotations

import pytest

from trainmaster.environments.conda_names import KNOWN, needs_conda, stand_in, to_pip

TABLE = [
    ("numpy", "numpy"),
    ("NumPy", "numpy"),
    ("conda-forge::numpy", "numpy"),
    ("pytorch::pytorch=1.4.0", "torch==1.4.0"),
    ("pytorch", "torch"),
    ("opencv", "opencv-python-headless"),
    ("tensorflow==1.13.1", "tensorflow==1.13.1"),
    ("scikit-learn=0.20.3", "scikit-learn==0.20.3"),
    ("scikit_learn=0.20.3", "scikit-learn==0.20.3"),
    ("numpy=1.15", "numpy==1.15.*"),
    ("numpy=1", "numpy==1.*"),
    ("numpy=1.15.*", "numpy==1.15.*"),
    ("numpy 1.15.*", "numpy==1.15.*"),
    ("numpy==1.15.*", "numpy==1.15.*"),
    ("numpy 1.15", "numpy==1.15"),
    ("numpy=1.15.4=py36h1d66e8a_0", "numpy==1.15.4"),
    ("numpy 1.15.4 py36h1d66e8a_0", "numpy==1.15.4"),
    ("numpy>=1.15", "numpy>=1.15"),
    ("numpy >=1.15,<2", "numpy>=1.15,<2"),
    ("numpy >= 1.15, < 2", "numpy>=1.15,<2"),
    ("numpy>1.15,!=1.17", "numpy>1.15,!=1.17"),
    ("numpy>=1.15,!=1.17.*", "numpy>=1.15,!=1.17.*"),
    ("numpy~=1.15", "numpy~=1.15"),
    ("numpy=*", "numpy"),
    ("numpy *", "numpy"),
    ("numpy 1.15|1.16", None),
    ("numpy[version='>=1.15']", None),
    ("numpy=1.15,,", None),
    ("numpy=abc", None),
    ("cudatoolkit=10.1", None),
    ("gcc_linux-64", None),
    ("--option", None),
    ("", None),
    ("numpy; python_version<'3'", None),
    ("numpy @ https://elsewhere/x.whl", None),
]


@pytest.mark.parametrize(("package", "requirement"), TABLE)
def test_table(package, requirement):
    assert to_pip(package) == requirement


@pytest.mark.parametrize("requirement", sorted({found for _, found in TABLE if found}))
def test_what_comes_out_is_a_requirement(requirement):
    packaging = pytest.importorskip("packaging.requirements")
    packaging.Requirement(requirement)


def test_unknown_names_only_when_asked_for():
    assert to_pip("MyTool=1.2.3") is None
    assert to_pip("MyTool=1.2.3", every=True) == "mytool==1.2.3"
    assert to_pip("mytool 1|2", every=True) is None


def test_both_lists():
    assert stand_in(["tqdm", "mkl", "h5py>=2"]) == (["tqdm", "h5py>=2"], ["mkl"])
    assert stand_in([]) == ([], [])


def test_names_of_the_table_are_written_as_they_are_compared():
    assert all(name == name.lower() and "_" not in name for name in KNOWN)


@pytest.mark.parametrize(
    ("packages", "needed"),
    [
        ([], False),
        (["pip"], False),
        (["pip=20.2.4", "setuptools", "wheel"], False),
        (["pip 1|2"], True),
        (["mkl"], True),
    ],
)
def test_pip_itself_needs_no_channel(packages, needed):
    assert needs_conda(packages) is needed
