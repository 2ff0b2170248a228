"""Run configurations as files, of our own making and as v1 wrote them."""

import pytest
import yaml

from trainmaster.job.errors import RunConfigurationException, UserErrorException
from trainmaster.sdk.datastores import DataReferenceConfiguration
from trainmaster.sdk.environment.conda_dependencies import CondaDependencies
from trainmaster.sdk.estimators.distributed_job import MpiConfiguration
from trainmaster.sdk.estimators.run_configuration import RunConfiguration
from trainmaster.sdk.estimators.script_run_config import ScriptRunConfig

V1_FILE = """
# The arguments to the script file.
script: train.py
arguments:
- --epochs
- 3
target: cpu-cluster
framework: Python
communicator: OpenMpi
maxRunDurationSeconds: 600
nodeCount: 2
environment:
  name: mine
  version:
  environmentVariables:
    EXAMPLE_ENV_VAR: EXAMPLE_VALUE
  python:
    userManagedDependencies: false
    interpreterPath: python
    condaDependenciesFile: aml_config/conda_dependencies.yml
    baseCondaEnvironment:
  docker:
    enabled: true
    baseImage:
    sharedVolumes: true
    gpuSupport: false
    shmSize: 1g
    arguments: []
    baseImageRegistry:
      address:
      username:
      password:
  spark:
    repositories: []
    precachePackages: true
  databricks:
    mavenLibraries: []
history:
  outputCollection: true
  snapshotProject: true
  directoriesToWatch:
  - logs
spark:
  configuration:
    spark.app.name: Azure ML Experiment
hdi:
  yarnDeployMode: cluster
tensorflow:
  workerCount: 1
  parameterServerCount: 1
mpi:
  processCountPerNode: 2
dataReferences:
  images:
    dataStoreName: store
    mode: download
    pathOnDataStore: img
    pathOnCompute:
    overwrite: true
sourceDirectoryDataStore:
amlcompute:
  vmSize:
  vmPriority:
  retainCluster: false
"""


def edited():
    config = RunConfiguration(
        script="train.py",
        arguments=["--lr", 0.5, "--name", "ü"],
        communicator="OpenMpi",
        conda_dependencies=CondaDependencies.create(pip_packages=["numpy==2.0"], python_version="3.11"),
    )
    config.target = "box"
    config.node_count = 2
    config.mpi = MpiConfiguration(process_count_per_node=3)
    config.max_run_duration_seconds = 60
    config.max_retries = 2
    config.environment_variables = {"A": "1"}
    config.environment.name = "mine"
    config.environment.environment_variables = {"B": "2"}
    config.environment.docker.shm_size = "4g"
    config.history.output_collection = False
    config.amlcompute.vm_size = "STANDARD_D2"
    config.data_references = {"x": DataReferenceConfiguration("store", "download", "in/x", "here", True)}
    return config


def compiled(config, folder):
    (folder / "train.py").write_text("")
    return ScriptRunConfig(folder, run_config=config).compile({})


@pytest.mark.parametrize("separate", [False, True])
def test_what_is_saved_is_loaded(tmp_path, separate):
    config = edited()
    config.save(str(tmp_path), "gpu", separate_environment_yaml=separate)
    assert (tmp_path / ".azureml" / "gpu.runconfig").is_file()
    assert (tmp_path / ".azureml" / "conda_dependencies.yml").is_file()
    loaded = RunConfiguration.load(str(tmp_path), "gpu")
    assert compiled(loaded, tmp_path) == compiled(config, tmp_path)
    assert loaded.history.output_collection is False and loaded.amlcompute.vm_size == "STANDARD_D2"
    assert list(loaded.environment.python.conda_dependencies.pip_packages) == ["numpy==2.0"]


def test_keys_are_those_of_v1(tmp_path):
    edited().save(tmp_path, "gpu")
    data = yaml.safe_load((tmp_path / ".azureml" / "gpu.runconfig").read_text())
    assert data["nodeCount"] == 2 and data["mpi"]["processCountPerNode"] == 3
    assert data["dataReferences"]["x"]["pathOnDataStore"] == "in/x"
    assert data["environment"]["python"]["condaDependenciesFile"] == ".azureml/conda_dependencies.yml"


def test_a_file_of_v1(tmp_path):
    folder = tmp_path / "aml_config"
    folder.mkdir()
    (folder / "cluster.runconfig").write_text(V1_FILE)
    (folder / "conda_dependencies.yml").write_text("dependencies:\n- python=3.11\n- pip:\n  - six\n")
    config = RunConfiguration.load(tmp_path, "cluster")
    spec = compiled(config, tmp_path)
    assert (spec.target, spec.node_count, spec.distribution.process_count_per_node) == ("cpu-cluster", 2, 2)
    assert (spec.arguments, spec.max_run_duration_seconds) == (("--epochs", "3"), 600)
    assert spec.environment_variables == {"EXAMPLE_ENV_VAR": "EXAMPLE_VALUE"}
    assert [(each.name, each.datastore, each.path, each.mode) for each in spec.data] == [
        ("images", "store", "img", "download")
    ]
    assert spec.environment.pip_packages == ("six",)
    assert config.environment.docker.shm_size == "1g"
    assert RunConfiguration.load(folder / "cluster.runconfig").target == "cpu-cluster"


def test_two_configurations_keep_their_packages(tmp_path):
    for name, package in (("one", "six"), ("two", "attrs")):
        packages = CondaDependencies.create(pip_packages=[package])
        RunConfiguration(conda_dependencies=packages).save(tmp_path, name)
    for name, package in (("one", "six"), ("two", "attrs")):
        found = RunConfiguration.load(tmp_path, name).environment.python.conda_dependencies
        assert list(found.pip_packages) == [package]


def test_to_a_file_by_its_path(tmp_path):
    edited().save(tmp_path / "deep" / "mine.yml")
    loaded = RunConfiguration.load(tmp_path / "deep" / "mine.yml")
    assert compiled(loaded, tmp_path) == compiled(edited(), tmp_path)


def test_deleting(tmp_path):
    RunConfiguration().save(tmp_path, "one")
    RunConfiguration().save(tmp_path, "two")
    RunConfiguration.delete(tmp_path, "one")
    with pytest.raises(UserErrorException, match=r"no run configuration one[\s\S]*Found: two"):
        RunConfiguration.load(tmp_path, "one")
    with pytest.raises(UserErrorException, match="no run configuration one"):
        RunConfiguration.delete(tmp_path, "one")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1", "cannot be read"),
        ("- 1", "is not a run configuration"),
        ("mpi: 3", "mpi of .* must be a section"),
        ("dataReferences: [1]", "dataReferences of .* must be a section"),
        ("dataReferences: {x: 1}", "dataReferences.x of .* must be a section"),
        ("environment: [1]", "environment of .* must be a section"),
        ("environment: other.yml", "other.yml cannot be read"),
    ],
)
def test_broken_files(tmp_path, text, message):
    (tmp_path / "bad.runconfig").write_text(text)
    with pytest.raises(RunConfigurationException, match=message):
        RunConfiguration.load(tmp_path, "bad")


def test_what_cannot_be_saved(tmp_path):
    config = RunConfiguration()
    with pytest.raises(UserErrorException, match="no name is given"):
        config.save(tmp_path)
    with pytest.raises(UserErrorException, match="name must be"):
        config.save(tmp_path, "a/b")
    config.data = {"x": object()}
    with pytest.raises(RunConfigurationException, match="cannot be saved"):
        config.save(tmp_path, "x")
    config.data, config.data_references = {}, {"x": object()}
    with pytest.raises(RunConfigurationException, match=r"data_references\['x'\] is a object"):
        config.save(tmp_path, "x")
    assert not list(tmp_path.rglob("*.runconfig"))
