"""The ways to say the environment of a run all end in one specification."""

from __future__ import annotations

import warnings

import pytest

from trainmaster.environments.prefix import digest
from trainmaster.job.errors import TrainingException, UserErrorException
from trainmaster.sdk.environment.conda_dependencies import CondaDependencies
from trainmaster.sdk.environment.definition import Environment
from trainmaster.sdk.estimators.estimator import Estimator
from trainmaster.sdk.estimators.pytorch import PyTorch
from trainmaster.sdk.estimators.run_configuration import RunConfiguration
from trainmaster.sdk.estimators.script_run_config import ScriptRunConfig
from trainmaster.shared.job_spec import EnvironmentSpec

CONDA = """\
channels: [conda-forge]
dependencies:
- python=3.8.1
- scipy=1.5
- pip:
  - numpy==1.19
variables: {A: file, B: file}
"""


@pytest.fixture
def with_conda(project):
    (project / "conda.yml").write_text(CONDA)
    return project


def test_a_conda_file_of_the_project(make, with_conda):
    spec = make(Estimator, conda_dependencies_file="conda.yml", environment_variables={"B": "mine"}).compile({})
    assert spec.environment == EnvironmentSpec(
        python_version="3.8",
        pip_packages=("numpy==1.19",),
        conda_packages=("scipy=1.5",),
        conda_channels=("conda-forge",),
    )
    assert spec.environment_variables == {"A": "file", "B": "mine"}


def test_the_old_name_of_the_parameter(make, with_conda):
    with pytest.warns(DeprecationWarning, match="use conda_dependencies_file instead"):
        estimator = make(Estimator, conda_dependencies_file_path="conda.yml")
    assert estimator.compile({}).environment.pip_packages == ("numpy==1.19",)


def test_a_conda_file_brings_no_framework(make, with_conda):
    with pytest.warns(UserWarning, match="only the packages of the file, not those of PyTorch"):
        estimator = make(PyTorch, conda_dependencies_file="conda.yml")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert estimator.compile({}).environment.pip_packages == ("numpy==1.19",)


def test_a_conda_file_may_be_edited_until_submit(make, with_conda):
    estimator = make(Estimator, conda_dependencies_file="conda.yml")
    estimator.conda_dependencies.add_pip_package("pandas")
    assert estimator.compile({}).environment.pip_packages == ("numpy==1.19", "pandas")


def test_a_conda_file_that_is_wrong(make, with_conda):
    (with_conda / "conda.yml").write_text("dependencies: [a\n")
    with pytest.raises(UserErrorException, match=r"conda_dependencies_file 'conda\.yml' is not valid YAML, line 2"):
        make(Estimator, conda_dependencies_file="conda.yml")


def test_a_conda_file_in_the_section_is_one_of_the_project(with_conda):
    environment = Environment("mine")
    environment.python.conda_dependencies_file = "conda.yml"
    config = ScriptRunConfig(with_conda, script="train.py", environment=environment)
    spec = config.compile({})
    assert spec.environment.pip_packages == ("numpy==1.19",)
    assert spec.environment_variables == {"A": "file", "B": "file"}


def ways(project):
    packages = CondaDependencies.create(pip_packages=["numpy", "pandas>=2,<3"])
    environment = Environment("mine")
    environment.python.conda_dependencies = packages
    (project / "r.txt").write_text("pandas >=2, <3\nNumPy\n")
    (project / "c.yml").write_text(packages.serialize_to_string())
    common = {"entry_script": "train.py", "compute_target": "local"}
    config = RunConfiguration(conda_dependencies=packages)
    return {
        "pip_packages": Estimator(project, pip_packages=["pandas<3,>=2", "numpy"], **common),
        "pip_requirements_file": Estimator(project, pip_requirements_file="r.txt", **common),
        "conda_dependencies_file": Estimator(project, conda_dependencies_file="c.yml", **common),
        "environment_definition": Estimator(project, environment_definition=environment, **common),
        "environment": ScriptRunConfig(project, "train.py", environment=environment),
        "run_config": ScriptRunConfig(project, "train.py", run_config=config),
        "from_pip_requirements": ScriptRunConfig(
            project, "train.py", environment=Environment.from_pip_requirements("other", project / "r.txt")
        ),
    }


def test_all_ways_have_one_digest(project):
    found = {name: digest(way.compile({}).environment) for name, way in ways(project).items()}
    assert len(set(found.values())) == 1, found


def test_the_variables_of_an_environment_and_of_a_run_are_merged(make, project):
    environment = Environment("mine")
    environment.environment_variables = {"A": "environment", "B": "environment"}
    spec = make(Estimator, environment_definition=environment).compile({})
    assert spec.environment_variables == {"A": "environment", "B": "environment"}
    config = ScriptRunConfig(project, "train.py", environment=environment)
    config.run_config.environment_variables = {"B": "run"}
    assert config.compile({}).environment_variables == {"A": "environment", "B": "run"}


def test_a_name_goes_along_and_a_version_only_if_it_is_true(make):
    environment = Environment("mine")
    environment.version = "7"
    estimator = make(Estimator, environment_definition=environment)
    spec = estimator.compile({})
    assert (spec.environment_name, spec.environment_version) == ("mine", "")


def test_packages_of_the_sdk(make):
    estimator = make(Estimator, pip_packages=["azureml-sdk", "numpy"])
    with pytest.warns(UserWarning, match="azureml-sdk by pandas and pyarrow") as caught:
        assert estimator.compile({}).environment.pip_packages == ("pandas", "pyarrow", "numpy")
    assert [each.filename for each in caught] == [__file__]


def test_a_conda_file_is_no_excuse_for_other_packages(make, with_conda):
    with pytest.raises(TrainingException, match="conda_dependencies_file cannot be given together with pip_packages"):
        make(Estimator, conda_dependencies_file="conda.yml", pip_packages=["numpy"])
