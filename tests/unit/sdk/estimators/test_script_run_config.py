"""ScriptRunConfig and RunConfiguration."""

import pytest
from estimator_doubles import Path, Reference, Target

from trainmaster.job.errors import (
    ExperimentExecutionException,
    RunConfigurationException,
    TrainingException,
    UserErrorException,
)
from trainmaster.sdk.datastores import DataReferenceConfiguration
from trainmaster.sdk.environment.conda_dependencies import CondaDependencies
from trainmaster.sdk.environment.definition import Environment
from trainmaster.sdk.estimators.distributed_job import MpiConfiguration, PyTorchConfiguration, TensorflowConfiguration
from trainmaster.sdk.estimators.docker import DockerConfiguration
from trainmaster.sdk.estimators.run_configuration import RunConfiguration
from trainmaster.sdk.estimators.script_run_config import ScriptRunConfig
from trainmaster.shared.job_spec import ContainerSpec, Distribution, dump_spec, load_spec


def test_defaults(project):
    spec = ScriptRunConfig(project, "train.py").compile({})
    assert load_spec(dump_spec(spec)) == spec
    assert (spec.target, spec.script, spec.arguments, spec.command) == ("local", "train.py", (), ())
    assert (spec.framework, spec.communicator, spec.distribution) == ("Python", "None", Distribution())
    assert (spec.max_run_duration_seconds, spec.node_count, spec.use_gpu) == (2592000, 1, False)
    assert (spec.max_retries, spec.hang_seconds, spec.priority) == (0, None, 0)


def test_arguments_stand_as_given(project):
    arguments = ["--lr", 0.1, "", None, [1, 2], Reference("d")]
    spec = ScriptRunConfig(project, "train.py", arguments=arguments).compile({})
    assert spec.arguments == ("--lr", "0.1", "", "[1, 2]", "$AZUREML_DATAREFERENCE_d")
    assert [one.name for one in spec.data] == ["d"]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("echo hello && python train.py", ("echo hello && python train.py",)),
        (
            ["python", "train.py", "--n", 3, Reference("d")],
            ("python", "train.py", "--n", "3", "$AZUREML_DATAREFERENCE_d"),
        ),
    ],
)
def test_a_command_stands_for_itself(project, command, words):
    spec = ScriptRunConfig(project, command=command).compile({})
    assert (spec.script, spec.command, spec.arguments) == ("", words, ())


@pytest.mark.parametrize(
    ("job", "nodes", "framework", "communicator", "distribution"),
    [
        (MpiConfiguration(2, 3), 3, "python", "Mpi", Distribution(kind="mpi", process_count_per_node=2)),
        (
            TensorflowConfiguration(4, 2),
            4,
            "TensorFlow",
            "ParameterServer",
            Distribution(kind="parameter_server", worker_count=4, parameter_server_count=2),
        ),
        (
            PyTorchConfiguration("NCCL", 4, 2),
            2,
            "PyTorch",
            "Nccl",
            Distribution(kind="torch", backend="nccl", process_count=4),
        ),
        (PyTorchConfiguration(), 1, "PyTorch", "Nccl", Distribution(kind="torch", backend="nccl")),
    ],
)
def test_distributed_job_config(project, job, nodes, framework, communicator, distribution):
    spec = ScriptRunConfig(project, "train.py", distributed_job_config=job).compile({})
    assert (spec.node_count, spec.framework, spec.communicator) == (nodes, framework, communicator)
    assert spec.distribution == distribution


def test_settings(project):
    environment = Environment("mine")
    environment.python.conda_dependencies = CondaDependencies.create(pip_packages=["numpy"])
    config = ScriptRunConfig(
        project,
        "train.py",
        compute_target=Target(),
        environment=environment,
        max_run_duration_seconds=None,
        docker_runtime_config=DockerConfiguration(use_docker=True),
        resume_from=Path("runs/1"),
    )
    spec = config.compile({})
    assert spec.environment.container is None
    environment.docker.base_image, environment.docker.arguments = "image", ["--cpus", "2"]
    assert config.compile({}).environment.container == ContainerSpec("image", "2g", ("--cpus", "2"))
    assert (spec.target, spec.environment.pip_packages) == ("cluster", ("numpy",))
    assert spec.max_run_duration_seconds is None
    assert spec.arguments == ("--resume-from", "$AZUREML_DATAREFERENCE_MODEL_LOCATION")


class TestGivenRunConfig:
    def test_its_settings_count(self, project):
        run_config = RunConfiguration(script="train.py", arguments=["--a", 1])
        run_config.target = Target()
        config = ScriptRunConfig(project, run_config=run_config)
        run_config.max_run_duration_seconds = 5
        config.run_config.environment_variables = {"A": "1"}
        spec = config.compile({})
        assert (spec.script, spec.arguments, spec.target) == ("train.py", ("--a", "1"), "cluster")
        assert (spec.max_run_duration_seconds, spec.environment_variables) == (5, {"A": "1"})

    def test_the_others_are_ignored_with_a_word(self, project):
        with pytest.warns(UserWarning, match="compute_target, max_run_duration_seconds.*ignored"):
            config = ScriptRunConfig(
                project, "train.py", run_config=RunConfiguration(), compute_target="x", max_run_duration_seconds=3
            )
        assert config.compile({}).target == "local"

    def test_retries_of_the_script_run_config_are_ignored_with_a_word(self, project):
        with pytest.warns(UserWarning, match="max_retries, hang_seconds.*ignored"):
            config = ScriptRunConfig(
                project, "train.py", run_config=RunConfiguration(), max_retries=2, hang_seconds=9.5
            )
        assert config.compile({}).max_retries == 0
        config.run_config.max_retries, config.run_config.hang_seconds = 3, 60
        config.run_config.priority = 7
        spec = config.compile({})
        assert (spec.max_retries, spec.hang_seconds, spec.priority) == (3, 60.0, 7)

    def test_script_of_the_script_run_config_goes_first(self, project):
        run_config = RunConfiguration(script="other.py", arguments=["--a"])
        spec = ScriptRunConfig(project, "train.py", ["--b"], run_config).compile({})
        assert (spec.script, spec.arguments) == ("train.py", ("--b",))


REFUSED = [
    ({"script": "train.py", "command": "ls"}, UserErrorException, "command cannot be given together with script"),
    ({"arguments": ["a"], "command": "ls"}, UserErrorException, "together with arguments"),
    ({}, ExperimentExecutionException, "script or command is missing"),
    ({"script": "no.py"}, ExperimentExecutionException, "script 'no.py' does not exist"),
    ({"script": "/train.py"}, UserErrorException, "script must be inside"),
    ({"script": "train.py", "arguments": "--a b"}, UserErrorException, "arguments must be a list"),
    ({"command": 5}, UserErrorException, "command must be a list"),
    ({"script": "train.py", "run_config": "x"}, UserErrorException, "must be a RunConfiguration"),
    ({"script": "train.py", "environment": "x"}, UserErrorException, "must be an Environment"),
    ({"script": "train.py", "distributed_job_config": "mpi"}, UserErrorException, "cannot be a str"),
    ({"script": "train.py", "docker_runtime_config": True}, UserErrorException, "DockerConfiguration"),
    ({"script": "train.py", "max_run_duration_seconds": -1}, UserErrorException, "positive"),
    ({"script": "train.py", "max_retries": -1}, UserErrorException, "max_retries must be 0 or more"),
    ({"script": "train.py", "hang_seconds": -1}, UserErrorException, "hang_seconds must be a positive"),
    ({"script": "train.py", "resume_from": "x"}, UserErrorException, "must be a DataPath"),
    ({"script": "train.py", "compute_target": 3}, UserErrorException, "compute_target"),
]


@pytest.mark.parametrize(("settings", "error", "message"), REFUSED)
def test_what_is_refused(project, settings, error, message):
    with pytest.raises(error, match=message):
        ScriptRunConfig(project, **settings).compile({})


def test_show_output_is_taken_and_changes_nothing(project):
    config = ScriptRunConfig(str(project), "train.py")
    assert config.compile({"show_output": True}) == config.compile({})


def test_overrides_are_refused(project):
    with pytest.raises(TrainingException, match="takes no overrides at submit: script_params"):
        ScriptRunConfig(project, "train.py").compile({"script_params": {}})


def run_with(project, **fields):
    config = RunConfiguration(script="train.py")
    for name, value in fields.items():
        setattr(config, name, value)
    return ScriptRunConfig(project, run_config=config).compile({})


class TestRunConfiguration:
    def test_defaults(self):
        config = RunConfiguration()
        assert (config.target, config.framework, config.communicator) == ("local", "Python", "None")
        assert (config.node_count, config.environment.name) == (1, "default-environment")
        assert (config.history.output_collection, config.history.directories_to_watch) == (True, ["logs"])
        assert (config.data_references, config.data, config.output_data) == ({}, {}, {})
        assert (config.amlcompute.vm_size, config.credential_passthrough) == (None, False)

    def test_old_attributes_can_be_set(self, project):
        config = RunConfiguration(script="train.py")
        config.auto_prepare_environment = False
        config.prepare_environment = True
        config.container_instance.region = "eastus2"
        config.environment.docker.gpu_support = True
        config.batchai.node_count = 2
        config.communicator = "IntelMpi"
        spec = ScriptRunConfig(project, run_config=config).compile({})
        assert (config.auto_prepare_environment, spec.node_count, spec.use_gpu) == (True, 2, True)

    def test_a_container_instance_is_this_machine(self, project):
        config = RunConfiguration(script="train.py")
        config.target = "containerinstance"
        config.container_instance.region = "eastus2"
        with pytest.warns(UserWarning, match="the run is on 'local'"):
            assert ScriptRunConfig(project, run_config=config).compile({}).target == "local"

    def test_conda_dependencies(self, project):
        packages = CondaDependencies.create(pip_packages=["numpy"])
        config = RunConfiguration("train.py", conda_dependencies=packages)
        assert ScriptRunConfig(project, run_config=config).compile({}).environment.pip_packages == ("numpy",)

    def test_data_references(self, project):
        references = {
            "images": DataReferenceConfiguration("blob", mode="download", path_on_datastore="/img", overwrite=True),
            "labels": Reference("other", path="lab"),
        }
        data = run_with(project, data_references=references).data
        assert [(one.name, one.path, one.mode, one.overwrite) for one in data] == [
            ("images", "img", "download", True),
            ("labels", "lab", "mount", False),
        ]

    @pytest.mark.parametrize(
        ("fields", "error", "message"),
        [
            ({"framework": "PySpark"}, TrainingException, "no Spark"),
            ({"communicator": "pigeon"}, RunConfigurationException, "communicator 'pigeon' is not supported"),
            ({"node_count": 2}, RunConfigurationException, "need a communicator"),
            ({"node_count": 0}, TrainingException, "at least 1"),
            ({"communicator": None}, UserErrorException, "communicator must be a string"),
            ({"framework": 3}, UserErrorException, "framework must be a string"),
            ({"mpi": 4}, RunConfigurationException, "mpi of the run configuration has no process_count_per_node"),
            ({"communicator": "Gloo", "pytorch": {}}, RunConfigurationException, "pytorch .* has no process_count"),
            ({"communicator": "ParameterServer", "tensorflow": None}, RunConfigurationException, "tensorflow of"),
            ({"data": {"x": 1}}, UserErrorException, "data contains a int"),
            ({"data_references": {"x": 1}}, UserErrorException, "must name a datastore"),
            ({"data_references": {"x": DataReferenceConfiguration()}}, UserErrorException, "must name a datastore"),
            ({"data_references": {"a b": DataReferenceConfiguration("s")}}, UserErrorException, "name of a variable"),
            ({"environment_variables": {"A": 1}}, UserErrorException, "must be a string"),
            ({"max_run_duration_seconds": 0}, UserErrorException, "positive"),
            ({"max_retries": "2"}, UserErrorException, "max_retries must be a whole number"),
            ({"hang_seconds": True}, UserErrorException, "hang_seconds must be a number"),
            ({"arguments": "--a"}, UserErrorException, "arguments must be a list"),
        ],
    )
    def test_what_is_refused_at_submit(self, project, fields, error, message):
        with pytest.raises(error, match=message):
            run_with(project, **fields)

    def test_target_must_be_a_target(self):
        with pytest.raises(UserErrorException, match="target must be"):
            RunConfiguration().target = 3

    @pytest.mark.filterwarnings("ignore:.*it is replaced by")
    @pytest.mark.parametrize(("job", "horovod"), [(MpiConfiguration(), "0.28.1"), (None, "")])
    def test_a_curated_environment_has_horovod_under_mpi(self, project, job, horovod):
        environment = Environment.get(None, "AzureML-PyTorch-2.13-CPU")
        config = ScriptRunConfig(project, "train.py", environment=environment, distributed_job_config=job)
        spec = config.compile({})
        assert spec.environment.horovod == horovod and spec.environment.pip_packages[0] == "torch==2.13.0"

    def test_processes_must_be_shared_equally(self, project):
        job = PyTorchConfiguration(process_count=3, node_count=2)
        with pytest.raises(RunConfigurationException, match="Use a multiple of 2"):
            ScriptRunConfig(project, "train.py", distributed_job_config=job).compile({})

    def test_backend_must_be_known(self):
        with pytest.raises(UserErrorException, match="'Nccl' or 'Gloo', not 'mpi'"):
            PyTorchConfiguration("mpi")
