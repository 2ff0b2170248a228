"""The distribution of v1's names: what it loads, what it refuses, and how it gets on with the names in jobs."""

from __future__ import annotations

import inspect
import os
import pickle
import pkgutil
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import azureml
import trainmaster
from trainmaster.environments.kit import ensure_kit
from trainmaster.job import names
from trainmaster.migration.editor_files import editor_files
from trainmaster.migration.table import table

ROOT = Path(__file__).parents[2]
MODULES = sorted(each.name for each in pkgutil.walk_packages(azureml.__path__, "azureml.") if "._" not in each.name)


def python(program: str, *paths: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), **variables}
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_both_distributions_are_of_one_release():
    ours = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = tomllib.loads((ROOT / "packages" / "azureml" / "pyproject.toml").read_text())["project"]
    version = trainmaster.__version__
    assert names["version"] == version
    assert names["dependencies"] == [f"trainmaster=={version}"]
    assert ours["optional-dependencies"]["azureml"] == [f"trainmaster-azureml=={version}"]
    assert "not Microsoft's" in names["description"]


def test_editors_and_type_checkers_see_the_names_of_the_table():
    files = editor_files()
    out_of_date = [path for path, text in files.items() if not path.is_file() or path.read_text() != text]
    assert out_of_date == [], "python -m trainmaster.migration.surface"
    assert {"azureml", *MODULES} == set(names.V1_MODULES)
    # As an editor reads them: eagerly.
    for path, text in files.items():
        scope: dict[str, object] = {}
        exec(compile(text, path, "exec"), scope)


@pytest.mark.parametrize("module", MODULES)
def test_every_name_points_to_something(module):
    loaded = import_module(module)
    for name in getattr(loaded, "__all__", ()):
        assert getattr(loaded, name) is not None
        assert name in dir(loaded)
    scope: dict[str, object] = {}
    exec(f"from {module} import *", scope)


def test_the_names_are_those_of_trainmaster():
    import azureml.core
    from azureml.core import Experiment, Run, Workspace

    assert (Workspace, Experiment, Run) == (trainmaster.Workspace, trainmaster.Experiment, trainmaster.Run)
    assert azureml.core.VERSION == azureml.core.__version__ == trainmaster.__version__
    assert isinstance(Run.get_context(), azureml.core.run._OfflineRun)
    # Without an import of its own, as v1's notebooks do it.
    assert azureml.core.runconfig.EnvironmentDefinition is azureml.core.Environment


def test_names_with_defaults_of_v1_are_classes_below_those_of_trainmaster(tmp_path):
    from azureml.core.conda_dependencies import CondaDependencies
    from azureml.core.runconfig import CondaDependencies as SameDependencies
    from azureml.train.dnn import Chainer, PyTorch, TensorFlow
    from azureml.train.estimator import Estimator
    from azureml.train.sklearn import SKLearn

    assert issubclass(Estimator, trainmaster.Estimator) and Estimator is not trainmaster.Estimator
    assert inspect.signature(Estimator) == inspect.signature(trainmaster.Estimator)
    (tmp_path / "train.py").touch()
    for kind in (Chainer, PyTorch, SKLearn, TensorFlow):
        ours = getattr(trainmaster, kind.__name__)
        assert issubclass(kind, ours) and kind is not ours and kind.FRAMEWORK_NAME == ours.FRAMEWORK_NAME
        assert inspect.signature(kind) == inspect.signature(ours)
        estimator = kind(
            str(tmp_path), entry_script="train.py", compute_target="local", framework_version=ours.DEFAULT_VERSION
        )
        again = pickle.loads(pickle.dumps(estimator))
        assert type(again) is kind and again.framework_version == ours.DEFAULT_VERSION
    assert CondaDependencies is SameDependencies and issubclass(CondaDependencies, trainmaster.CondaDependencies)
    assert isinstance(trainmaster.Environment("mine").python.conda_dependencies, CondaDependencies)
    assert type(CondaDependencies.create()) is CondaDependencies


def test_importing_loads_next_to_nothing():
    done = python("import sys, azureml.core, azureml.train.dnn, azureml.widgets; print(*sorted(sys.modules))")
    assert done.returncode == 0, done.stderr
    loaded = done.stdout.split()
    assert not {"sqlalchemy", "yaml", "fsspec", "pandas", "numpy", "IPython", "asyncio"} & set(loaded)
    own = {name for name in loaded if name.startswith("trainmaster")}
    assert own == {
        "trainmaster",
        "trainmaster.errors",
        "trainmaster.job",
        "trainmaster.job.lookup",
        "trainmaster.job.names",
        "trainmaster.job.script",
        "trainmaster.job.script.v1_modules",
    }


def test_errors_are_public():
    code = "import trainmaster; from trainmaster.errors import TrainmasterError, UserErrorException as E; "
    code += "from azureml.exceptions import AzureMLException, UserErrorException as U; "
    done = python(
        code + "assert AzureMLException is TrainmasterError is trainmaster.errors.TrainmasterError and E is U"
    )
    assert done.returncode == 0, done.stderr


def test_microsofts_sdk_beside_it_is_refused(tmp_path):
    (tmp_path / "azureml_core-1.62.0.dist-info").mkdir()
    done = python("import azureml.core", tmp_path)
    assert done.returncode == 1
    assert "pip uninstall azureml-core" in done.stderr and str(tmp_path) in done.stderr


def sentence_of(name):
    return table().missing(name).sentence


@pytest.mark.parametrize("module", ["azureml.pipeline.core", "azureml.train.automl", "azureml.monitoring"])
def test_what_is_not_here_is_told(module):
    with pytest.raises(ModuleNotFoundError, match=rf"No module named 'azureml\..*: {re.escape(sentence_of(module))}"):
        import_module(module)


@pytest.mark.parametrize("name", [name for name in sorted(table().absent) if name.rpartition(".")[2][0].isupper()])
def test_a_name_that_is_not_here_is_told(name):
    """`from module import Name` says what to use instead, in the words of `trainmaster migrate`."""
    module, _, last = name.rpartition(".")
    with pytest.raises(ImportError, match=re.escape(sentence_of(name))):
        exec(f"from {module} import {last}")


@pytest.mark.parametrize("line", ["from azureml import dataprep", "from azureml.train import automl"])
def test_a_module_that_is_not_here_is_told_however_it_is_imported(line):
    _, package, _, module = line.split()
    with pytest.raises(ImportError, match=re.escape(sentence_of(f"{package}.{module}"))):
        exec(line)


def test_unknown_names():
    with pytest.raises(ModuleNotFoundError, match=r"azureml\.nonsense"):
        import_module("azureml.nonsense")
    with pytest.raises(ImportError, match="nonsense"):
        exec("from azureml.core import nonsense")
    import azureml.train

    assert not hasattr(azureml.core, "nonsense") and not hasattr(azureml.train, "automl")


IMPORTED = """
import importlib, sys
for name in sys.stdin.read().split():
    module, _, last = name.rpartition(".")
    getattr(importlib.import_module(module), last)
from azureml.core.compute_target import ComputeTargetException
import azureml.exceptions
assert ComputeTargetException is azureml.exceptions.ComputeTargetException
from azureml.core.runconfig import RunConfiguration
from azureml.core import Workspace
assert Workspace.from_config().name == Workspace.get("mine").name == Workspace("a", "b", "mine").name == "mine"
for refused in (RunConfiguration, lambda: Workspace.create("x"), lambda: Workspace.get("other")):
    try:
        refused()
    except azureml.exceptions.RunEnvironmentException as error:
        print(error.headline)
"""


def test_all_names_can_be_imported_in_a_job_with_nothing_installed(tmp_path):
    """Scripts import more than they use; what cannot be used in such a job says so then."""
    wanted = [name for name in table().names if not name.startswith("azureml.contrib")]
    done = subprocess.run(
        # Without site-packages.
        [sys.executable, "-S", "-c", IMPORTED],
        env={"PYTHONPATH": str(ensure_kit(tmp_path)), "TRAINMASTER_WORKSPACE": "mine"},
        input="\n".join(wanted),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert len(wanted) > 200
    assert done.stdout.splitlines() == [
        "azureml.core.RunConfiguration cannot be used in this job",
        "azureml.core.workspace.Workspace.create cannot be used in this job",
        "workspace 'other' cannot be opened in this job",
    ]


IN_A_JOB = """
from azureml.core import Dataset, Run, Workspace
import azureml.core.compute, azureml.core.workspace, azureml.train.dnn, azureml.data.data_reference
import trainmaster.job.script.run, trainmaster.sdk.workspace.workspace
import trainmaster.sdk.compute.clusters, trainmaster.sdk.datastores
assert azureml.__file__.startswith({kit!r}), azureml.__file__
assert Run is trainmaster.Run is trainmaster.job.script.run.Run
assert Workspace is azureml.core.workspace.Workspace is trainmaster.sdk.workspace.workspace.Workspace
assert azureml.core.compute.AmlCompute is trainmaster.sdk.compute.clusters.AmlCompute
assert azureml.data.data_reference.DataReference is trainmaster.sdk.datastores.DataReference
assert isinstance(Run.get_context(), Run)
"""


def test_in_a_job_with_the_distribution_installed(tmp_path):
    """The kit is first on the path of every job; what it lacks comes from what is installed."""
    kit = ensure_kit(tmp_path)
    (tmp_path / "runs" / "one" / "journals").mkdir(parents=True)
    variables = {"TRAINMASTER_RUN_ID": "one", "TRAINMASTER_RUN_FOLDER": str(tmp_path / "runs" / "one")}
    done = python(IN_A_JOB.format(kit=str(kit)), kit, **variables)
    assert done.returncode == 0, done.stderr
