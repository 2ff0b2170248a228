"""From an estimator to a JobSpec: command line, distribution, data, environment."""

import dataclasses
import json
import sys

import pytest
from estimator_doubles import Path, Reference, Store, Target

from trainmaster.job.errors import ExperimentExecutionException, TrainingException, UserErrorException
from trainmaster.sdk.datastores import DataPath, DataReference
from trainmaster.sdk.environment.definition import ContainerRegistry, Environment
from trainmaster.sdk.estimators.distributed_job import MpiConfiguration, PyTorchConfiguration, TensorflowConfiguration
from trainmaster.sdk.estimators.distributed_training import Gloo, Mpi, Nccl, ParameterServer
from trainmaster.sdk.estimators.estimator import Estimator
from trainmaster.sdk.estimators.pytorch import PyTorch
from trainmaster.sdk.estimators.tensorflow import TensorFlow
from trainmaster.shared.job_spec import ContainerSpec, DataBinding, Distribution, dump_spec, load_spec

ARGUMENTS = [
    ({}, []),
    (None, []),
    ({"--lr": 0.1, "--epochs": 10}, ["--lr", "0.1", "--epochs", "10"]),
    ({"--verbose": "", "--quiet": None}, ["--verbose", "--quiet"]),
    ({"--seed": 0, "--flag": False}, ["--seed", "0", "--flag", "False"]),
    ({"--layers": [64, 32], "--size": (1, 2)}, ["--layers", "64", "32", "--size", "1", "2"]),
    ({"--mixed": [1, None, "", "x"]}, ["--mixed", "1", "x"]),
    ({"--nested": [[1, 2], (3,)]}, ["--nested", "[1, 2]", "(3,)"]),
    ({"--map": {"a": 1}}, ["--map", "{'a': 1}"]),
    ({"": "positional"}, ["positional"]),
    ({"--rank": "$AZ_BATCHAI_TASK_INDEX"}, ["--rank", "$AZ_BATCHAI_TASK_INDEX"]),
    ({"--text": "two words"}, ["--text", "two words"]),
    ({"--data": Reference("d")}, ["--data", "$AZUREML_DATAREFERENCE_d"]),
    ({"--data": Store("blob")}, ["--data", "$AZUREML_DATAREFERENCE_blob"]),
    ({"--both": [Reference("a"), Reference("b")]}, ["--both", "$AZUREML_DATAREFERENCE_a", "$AZUREML_DATAREFERENCE_b"]),
]


@pytest.mark.parametrize(("params", "words"), ARGUMENTS)
def test_script_params_become_words(make, params, words):
    assert make(Estimator, script_params=params).compile({}).arguments == tuple(words)


def test_a_nul_character_is_refused(make):
    with pytest.raises(UserErrorException, match="NUL"):
        make(Estimator, script_params={"--x": "a\0b"})


RECORDED = [
    (Estimator, {}, "Python", "None", Distribution()),
    (
        Estimator,
        {"distributed_backend": "mpi", "process_count_per_node": 2},
        "Python",
        "IntelMpi",
        Distribution(kind="mpi", process_count_per_node=2),
    ),
    (
        TensorFlow,
        {"distributed_backend": "ps", "worker_count": 2, "parameter_server_count": 1},
        "TensorFlow",
        "ParameterServer",
        Distribution(kind="parameter_server", worker_count=2),
    ),
    (PyTorch, {"distributed_backend": "Gloo"}, "pytorch", "Gloo", Distribution(kind="torch", backend="gloo")),
    (PyTorch, {"distributed_backend": "NCCL"}, "pytorch", "Nccl", Distribution(kind="torch", backend="nccl")),
    (
        PyTorch,
        {"distributed_backend": "nccl", "process_count_per_node": 4},
        "pytorch",
        "Nccl",
        Distribution(kind="torch", backend="nccl", process_count=8),
    ),
    (
        Estimator,
        {"distributed_training": Mpi(3)},
        "python",
        "Mpi",
        Distribution(kind="mpi", process_count_per_node=3),
    ),
    (
        Estimator,
        {"distributed_training": MpiConfiguration(3)},
        "python",
        "Mpi",
        Distribution(kind="mpi", process_count_per_node=3),
    ),
    (
        Estimator,
        {"distributed_training": ParameterServer(2, 2)},
        "TensorFlow",
        "ParameterServer",
        Distribution(kind="parameter_server", worker_count=2, parameter_server_count=2),
    ),
    (
        TensorFlow,
        {"distributed_training": TensorflowConfiguration(3, 1)},
        "TensorFlow",
        "ParameterServer",
        Distribution(kind="parameter_server", worker_count=3),
    ),
    (
        TensorFlow,
        {"distributed_training": ParameterServer(2, 0)},
        "TensorFlow",
        "ParameterServer",
        Distribution(kind="parameter_server", worker_count=2, parameter_server_count=0),
    ),
    (PyTorch, {"distributed_training": Gloo()}, "pytorch", "Gloo", Distribution(kind="torch", backend="gloo")),
    (PyTorch, {"distributed_training": Nccl()}, "pytorch", "Nccl", Distribution(kind="torch", backend="nccl")),
    (
        PyTorch,
        {"distributed_training": PyTorchConfiguration("gloo", process_count=4)},
        "PyTorch",
        "Gloo",
        Distribution(kind="torch", backend="gloo", process_count=4),
    ),
]


@pytest.mark.parametrize(("kind", "settings", "framework", "communicator", "distribution"), RECORDED)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_distribution(make, kind, settings, framework, communicator, distribution):
    nodes = 2 if settings else 1
    spec = make(kind, node_count=nodes, **settings).compile({})
    assert (spec.framework, spec.communicator, spec.distribution) == (framework, communicator, distribution)
    assert spec.node_count == nodes


def test_the_whole_specification_survives_json(make, project, monkeypatch):
    monkeypatch.setattr("os.environ", {"PATH": "/bin", "SECRET": "s"})
    spec = make(
        Estimator,
        compute_target=Target(),
        script_params={"--data": Reference("d")},
        inputs=[Reference("d"), Reference("e").as_download()],
        node_count=2,
        distributed_training=Mpi(2),
        pip_packages=["numpy"],
        environment_variables={"A": "1"},
        max_run_duration_seconds=60,
        max_retries=2,
        hang_seconds=90,
        priority=-5,
        use_gpu=True,
    ).compile({})
    assert load_spec(dump_spec(spec)) == spec
    json.dumps(dataclasses.asdict(spec))
    assert (spec.source_directory, spec.script, spec.target) == (str(project), "train.py", "cluster")
    assert (spec.inherited_variables, spec.environment_variables) == ({"PATH": "/bin"}, {"A": "1"})
    assert (spec.max_run_duration_seconds, spec.use_gpu) == (60, True)
    assert (spec.max_retries, spec.hang_seconds, spec.priority) == (2, 90.0, -5)
    assert [(one.name, one.mode) for one in spec.data] == [("d", "mount"), ("e", "download")]


def test_a_relative_source_directory_becomes_absolute(project, monkeypatch):
    monkeypatch.chdir(project.parent)
    estimator = Estimator("./project", entry_script="./train.py", compute_target="local")
    assert estimator.source_directory == "./project"
    assert (estimator.compile({}).source_directory, estimator.compile({}).script) == (str(project), "train.py")


def test_two_different_references_of_one_name_are_refused(make):
    estimator = make(Estimator, inputs=[Reference("d", path="a"), Reference("d", path="b")])
    with pytest.raises(UserErrorException, match="two different data references or datasets are called 'd'"):
        estimator.compile({})


def test_resume_from(make):
    spec = make(Estimator, script_params={"--lr": 1}, resume_from=Path("runs/1")).compile({})
    assert spec.arguments == ("--lr", "1", "--resume-from", "$AZUREML_DATAREFERENCE_MODEL_LOCATION")
    assert spec.data == (DataBinding("MODEL_LOCATION", "workspaceblobstore", "runs/1"),)


class TestAtSubmit:
    """What is only looked at when a run is submitted."""

    def refused(self, estimator, message):
        with pytest.raises(TrainingException, match=message) as caught:
            estimator.compile({})
        assert type(caught.value) is TrainingException
        return caught.value

    def test_missing_folder(self, tmp_path):
        estimator = Estimator(tmp_path / "none", entry_script="train.py", compute_target="local")
        error = self.refused(estimator, "source_directory .* does not exist")
        assert isinstance(error.inner_exception, ExperimentExecutionException)

    def test_folder_that_is_a_file(self, project):
        estimator = Estimator(project / "train.py", entry_script="train.py", compute_target="local")
        self.refused(estimator, "is not a folder")

    def test_missing_script(self, make):
        error = self.refused(make(Estimator, entry_script="no.py"), "entry_script 'no.py' does not exist")
        assert isinstance(error.inner_exception, ExperimentExecutionException)
        assert "inside source_directory" in error.hint

    @pytest.mark.parametrize(
        ("given", "meant"), [("trian.py", "train.py"), ("train", "train.py"), ("score.py", "below/score.py")]
    )
    def test_a_script_with_a_slip_of_the_pen(self, make, project, given, meant):
        (project / "below").mkdir()
        (project / "below" / "score.py").touch()
        error = self.refused(make(Estimator, entry_script=given), f"entry_script '{given}' does not exist")
        assert error.hint == f"Did you mean '{meant}'?"

    @pytest.mark.parametrize(
        ("name", "text", "program"),
        [
            ("run.sh", "python train.py\n", ("bash",)),
            ("run.sh", "#!/bin/sh -e\n", ("/bin/sh", "-e")),
            ("run", "#!/usr/bin/env bash\n", ("bash",)),
            ("run", "#!/usr/bin/env -S Rscript --vanilla\n", ("Rscript", "--vanilla")),
        ],
    )
    def test_script_of_another_language(self, make, project, name, text, program):
        (project / name).write_text(text)
        spec = make(Estimator, entry_script=name).compile({})
        assert (spec.script, spec.entry, spec.program) == (name, "program", program)

    @pytest.mark.parametrize("first", ["", "#!/usr/bin/env python3\n", "#!/opt/pypy/bin/pypy3 -u\n"])
    def test_a_python_script_may_have_any_name(self, make, project, first):
        (project / "train.sh" if first else project / "train").write_text(f"{first}print(1)\n")
        assert make(Estimator, entry_script="train.sh" if first else "train").compile({}).script.startswith("train")

    def test_no_script(self, make):
        self.refused(make(Estimator, entry_script=None), "entry_script is missing")

    def test_script_that_is_a_folder(self, make, project):
        (project / "sub").mkdir()
        self.refused(make(Estimator, entry_script="sub"), "is not a file")

    def test_notebook(self, make, project):
        (project / "a.ipynb").write_text("{}")
        spec = make(Estimator, entry_script="a.ipynb", pip_packages=["numpy", "ipykernel==6.29"]).compile({})
        assert (spec.script, spec.entry) == ("a.ipynb", "notebook")
        assert spec.environment.pip_packages == ("numpy", "ipykernel==6.29", "nbclient")
        assert make(Estimator, entry_script="a.ipynb", user_managed=True).compile({}).environment.pip_packages == ()

    def test_module(self, make, project):
        (project / "package").mkdir()
        (project / "package" / "train.py").touch()
        spec = make(Estimator, entry_script=None, entry_module="package.train").compile({})
        assert (spec.script, spec.entry) == ("package.train", "module")
        # A module of an installed package is not looked for.
        assert make(Estimator, entry_script=None, entry_module="pytest").compile({}).script == "pytest"

    @pytest.mark.parametrize(
        ("given", "message", "hint"),
        [
            ("package.trian", "entry_module 'package.trian' does not exist", "Did you mean 'package.train'?"),
            ("package.below", "entry_module 'package.below' does not exist", ""),
            ("package/train.py", "is not the name of a module", "without '.py'"),
        ],
    )
    def test_wrong_module(self, make, project, given, message, hint):
        (project / "package" / "below").mkdir(parents=True)
        (project / "package" / "train.py").touch()
        assert hint in self.refused(make(Estimator, entry_script=None, entry_module=given), message).hint

    def test_one_program(self, make):
        both = make(Estimator, entry_module="package.train")
        with pytest.raises(UserErrorException, match="entry_script cannot be given together with entry_module"):
            both.compile({})

    def test_command(self, make):
        estimator = make(Estimator, entry_script=None)
        estimator.run_config.command = "python a.py && python b.py"
        assert estimator.compile({}).command == ("python a.py && python b.py",)

    def test_script_set_outside_afterwards(self, make):
        estimator = make(Estimator)
        estimator.run_config.script = "../x.py"
        self.refused(estimator, "inside source_directory")


class TestOverrides:
    def test_script_params_replace_by_name_and_last_for_one_submit(self, make):
        estimator = make(Estimator, script_params={"--lr": 1, "--seed": 2})
        overridden = estimator.compile({"script_params": {"--lr": 5, "--new": ""}})
        assert overridden.arguments == ("--lr", "5", "--seed", "2", "--new")
        assert estimator.compile({}).arguments == ("--lr", "1", "--seed", "2")

    def test_inputs_replace_by_name(self, make):
        estimator = make(Estimator, inputs=[Reference("a"), Reference("b")])
        data = estimator.compile({"inputs": [Reference("a", path="other"), Store("c")]}).data
        assert {one.name: one.path for one in data} == {"a": "other", "c": "", "b": "mnist"}
        assert [one.name for one in estimator.compile({}).data] == ["a", "b"]

    def test_data_store_is_accepted(self, make):
        estimator = make(Estimator)
        assert estimator.compile({"source_directory_data_store": Store()}) == estimator.compile({})

    @pytest.mark.parametrize("overrides", [{"node_count": 2}, {"script_params": {}, "tags": {}}])
    def test_others_are_refused(self, make, overrides):
        with pytest.raises(TrainingException, match="cannot be overridden at submit"):
            make(Estimator).compile(overrides)

    @pytest.mark.parametrize("overrides", [{"script_params": ["--lr"]}, {"inputs": ["x"]}])
    def test_wrong_values_are_refused(self, make, overrides):
        with pytest.raises(UserErrorException):
            make(Estimator).compile(overrides)


class TestLiveView:
    """Notebooks edit an estimator before they submit it."""

    def test_packages(self, make):
        estimator = make(Estimator, pip_packages=["numpy==1.0", "pandas"])
        estimator.conda_dependencies.add_pip_package("onnx")
        estimator.conda_dependencies.add_pip_package("numpy==2.0")
        estimator.conda_dependencies.remove_pip_package("pandas")
        assert estimator.compile({}).environment.pip_packages == ("numpy==2.0", "onnx")

    def test_run_config(self, make):
        estimator = make(Estimator)
        config = estimator.run_config
        config.target = Target()
        config.node_count = 2
        config.communicator = "OpenMpi"
        config.mpi.process_count_per_node = 4
        config.environment_variables["A"] = "1"
        config.environment.environment_variables = {"B": "2", "A": "0"}
        config.environment.python.user_managed_dependencies = True
        config.arguments += ["--more", 1]
        spec = estimator.compile({})
        assert (spec.target, spec.node_count) == ("cluster", 2)
        assert spec.distribution == Distribution(kind="mpi", process_count_per_node=4)
        assert spec.environment_variables == {"A": "1", "B": "2"}
        assert spec.environment.user_managed
        assert spec.arguments == ("--more", "1")

    def test_the_given_environment_is_the_one_shown(self, make):
        environment = Environment("mine")
        estimator = make(Estimator, environment_definition=environment)
        environment.python.conda_dependencies.add_pip_package("numpy")
        assert estimator.run_config.environment is environment
        assert estimator.compile({}).environment.pip_packages == ("numpy",)

    def test_a_broken_edit_is_one_clear_error(self, make):
        estimator = make(Estimator)
        estimator.run_config.environment = "mine"
        with pytest.raises(UserErrorException, match="environment must be an Environment"):
            estimator.compile({})


class TestEnvironment:
    def test_user_managed_is_this_python(self, make):
        environment = make(Estimator, user_managed=True).compile({}).environment
        assert (environment.user_managed, environment.interpreter) == (True, sys.executable)

    def test_packages_and_file_are_merged(self, make):
        estimator = make(Estimator, pip_packages=["Numpy==1.9"], pip_requirements_file="requirements.txt")
        assert estimator.compile({}).environment.pip_packages == ("Numpy==1.9", "pandas>=2 ,<3")

    def test_conda_packages_and_python(self, make):
        environment = make(Estimator, conda_packages=["python=3.12.1", "scipy"]).compile({}).environment
        assert (environment.python_version, environment.conda_packages) == ("3.12", ("scipy",))

    def test_packages_added_to_a_user_managed_environment_are_ignored_with_a_word(self, make):
        estimator = make(Estimator, user_managed=True)
        estimator.conda_dependencies.add_pip_package("numpy")
        with pytest.warns(UserWarning, match="ignored, because the environment is user managed"):
            assert estimator.compile({}).environment.pip_packages == ()

    @pytest.mark.parametrize("settings", [{"use_docker": True}, {"use_docker": True, "shm_size": "4g"}, {}])
    def test_containers_without_an_image_are_no_word_worth(self, make, settings):
        assert make(Estimator, **settings).compile({}).environment.container is None

    def test_an_image(self, make):
        registry = ContainerRegistry()
        registry.address = "registry.example"
        settings = {"custom_docker_image": "org/image:1", "shm_size": "4g", "image_registry_details": registry}
        environment = make(Estimator, **settings).compile({}).environment
        assert environment.container == ContainerSpec("registry.example/org/image:1", shm_size="4g")

    def test_a_password_for_the_registry_is_said_not_to_be_used(self, make):
        registry = ContainerRegistry()
        registry.username, registry.password = "me", "secret"
        with pytest.warns(UserWarning, match="image_pull_secrets of a target on Kubernetes") as caught:
            make(Estimator, custom_docker_image="org/image:1", image_registry_details=registry).compile({})
        assert [one.filename for one in caught] == [__file__]

    def test_the_python_of_an_image_is_not_the_one_that_submits(self, make):
        environment = make(Estimator, custom_docker_image="image", user_managed=True).compile({}).environment
        assert (environment.user_managed, environment.interpreter) == (True, "python")

    def test_an_image_that_is_not_enabled_is_told(self, make):
        mine = Environment("mine")
        mine.docker.base_image = "image"
        with pytest.warns(UserWarning, match="'image' is not used, because docker.enabled is not set") as caught:
            assert make(Estimator, environment_definition=mine).compile({}).environment.container is None
        assert [one.filename for one in caught] == [__file__]

    @pytest.mark.parametrize(("name", "value"), [("base_dockerfile", "FROM x"), ("build_context", object())])
    def test_images_are_not_built(self, make, name, value):
        mine = Environment("mine")
        mine.docker.enabled = True
        setattr(mine.docker, name, value)
        with pytest.raises(TrainingException, match="does not build images"):
            make(Estimator, environment_definition=mine).compile({})

    @pytest.mark.parametrize("image", ["--privileged", "two words"])
    def test_what_is_no_image(self, make, image):
        with pytest.raises(UserErrorException, match="must be the name of an image"):
            make(Estimator, custom_docker_image=image).compile({})

    def test_reserved_variables_are_told(self, make):
        estimator = make(Estimator, environment_variables={"AZUREML_RUN_ID": "x", "MINE": "y"})
        with pytest.warns(UserWarning, match="AZUREML_RUN_ID itself"):
            estimator.compile({})

    def test_the_option_for_users_is_not(self, make):
        estimator = make(Estimator, environment_variables={"TRAINMASTER_TF_CHIEF": "chief"})
        assert estimator.compile({}).environment_variables == {"TRAINMASTER_TF_CHIEF": "chief"}


def test_with_the_real_data_classes(make):
    store = Store("blob")
    reference = DataReference(store, "images", "mnist/train").as_download("data")
    spec = make(
        Estimator, script_params={"--data": reference}, inputs=[reference], resume_from=DataPath(store, "runs/1")
    ).compile({})
    assert spec.arguments[:2] == ("--data", "$AZUREML_DATAREFERENCE_images")
    assert spec.data == (
        DataBinding("images", "blob", "mnist/train", "download", "data"),
        DataBinding("MODEL_LOCATION", "blob", "runs/1"),
    )
    with pytest.raises(UserErrorException, match="DataPath, which does not say how"):
        make(Estimator, script_params={"--data": DataPath(store, "x")})
