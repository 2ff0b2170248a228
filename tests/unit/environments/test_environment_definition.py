"""Environment: what it says, where it comes from, and what becomes of it."""

from __future__ import annotations

import json
import os
import sys

import pytest

from trainmaster.environments import pythons
from trainmaster.job.errors import EnvironmentException, UserErrorException
from trainmaster.sdk.environment.conda_dependencies import CondaDependencies
from trainmaster.sdk.environment.definition import ContainerRegistry, Environment
from trainmaster.sdk.environment.definition_file import describe
from trainmaster.sdk.v1 import curated_environments
from trainmaster.shared.job_spec import ContainerSpec, EnvironmentSpec, JobSpec


class TestEnvironment:
    def test_packages(self):
        environment = Environment("mine")
        environment.python.conda_dependencies = CondaDependencies.create(
            "https://x.example", ["numpy"], ["scipy"], "3.12"
        )
        assert environment.to_spec() == EnvironmentSpec(
            python_version="3.12",
            pip_packages=("--index-url https://x.example", "numpy"),
            conda_packages=("scipy",),
        )

    @pytest.mark.parametrize(
        ("path", "interpreter"),
        [("python", sys.executable), ("/opt/p/bin/python", "/opt/p/bin/python"), ("python3.9", "python3.9")],
    )
    def test_user_managed(self, path, interpreter):
        environment = Environment("mine")
        environment.python.user_managed_dependencies = True
        environment.python.interpreter_path = path
        assert environment.to_spec() == EnvironmentSpec(user_managed=True, interpreter=interpreter)

    def test_a_relative_interpreter_becomes_absolute(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        environment = Environment("mine")
        environment.python.user_managed_dependencies = True
        environment.python.interpreter_path = ".venv/bin/python"
        assert environment.to_spec().interpreter == f"{tmp_path}/.venv/bin/python"

    @pytest.mark.parametrize("path", ["", None, "a\nb"])
    def test_an_interpreter_that_is_no_path(self, path):
        environment = Environment("mine")
        environment.python.user_managed_dependencies = True
        environment.python.interpreter_path = path
        with pytest.raises(UserErrorException, match="interpreter_path"):
            environment.to_spec()

    def test_packages_of_another_type(self):
        environment = Environment("mine")
        environment.python.conda_dependencies = ["numpy"]
        with pytest.raises(UserErrorException, match="must be a CondaDependencies"):
            environment.to_spec()

    @pytest.mark.parametrize("name", ["", None, "a\nb"])
    def test_names(self, name):
        with pytest.raises(UserErrorException, match="name of an Environment"):
            Environment(name)

    def test_clone_is_independent(self):
        first = Environment("first")
        second = first.clone("second")
        second.python.conda_dependencies.add_pip_package("numpy")
        assert (first.name, second.name, first.to_spec().pip_packages) == ("first", "second", ())

    def test_docker_bases_exclude_each_other(self):
        docker = Environment("mine").docker
        docker.base_image = None
        docker.base_image = "image"
        with pytest.warns(UserWarning, match="base_dockerfile replaces docker.base_image") as caught:
            docker.base_dockerfile = "FROM x"
        assert caught[0].filename == __file__
        docker.base_image = None
        assert (docker.base_image, docker.base_dockerfile, docker.build_context) == (None, "FROM x", None)

    def test_channels(self):
        environment = Environment("mine")
        environment.python.conda_dependencies.add_channel("conda-forge")
        assert environment.to_spec().conda_channels == ("conda-forge",)

    def test_packages_of_the_sdk_are_kept_and_not_built(self):
        environment = Environment("mine")
        packages = CondaDependencies.create(pip_packages=["azureml-defaults", "numpy", "AzureML_SDK[notebooks]==1.0"])
        environment.python.conda_dependencies = packages
        with pytest.warns(UserWarning, match=r"AzureML_SDK\[notebooks\]==1.0 by pandas and pyarrow") as caught:
            assert environment.to_spec().pip_packages == ("flask", "requests", "numpy", "pandas", "pyarrow")
        assert len(caught) == 1 and caught[0].filename == __file__
        assert "azureml-defaults" in packages.serialize_to_string()

    @pytest.mark.parametrize(
        ("given", "built", "words"),
        [
            (["azureml-mlflow==1.20"], ("mlflow",), "azureml-mlflow==1.20 by mlflow;"),
            (["azureml-mlflow", "mlflow-skinny"], ("mlflow-skinny",), "azureml-mlflow by mlflow;"),
            (["azureml-mlflow", "mlflow<2"], ("mlflow<2",), "azureml-mlflow by mlflow;"),
            (["azureml-dataset-runtime[pandas,fuse]"], ("pandas", "pyarrow"), "by pandas and pyarrow;"),
            (
                ["azureml-dataprep[pandas]~=1.1", "azureml-dataset-runtime"],
                ("pandas", "pyarrow"),
                "~=1.1 by pandas and",
            ),
            (["azureml-defaults"], ("flask", "numpy", "requests"), "azureml-defaults by flask, numpy and requests;"),
            (["azureml-train-automl", "six"], ("six",), "^not installed: azureml-train-automl;"),
            (
                ["azureml-mlflow; python_version < '4'"],
                ("mlflow; python_version < '4'",),
                "replaced by their dependencies: azureml-mlflow",
            ),
            (["azureml-tensorboard", "azureml-core"], ("tensorboard", "python-dateutil", "pytz", "requests"), "by"),
        ],
    )
    def test_packages_of_the_sdk_are_replaced_by_what_they_brought(self, tmp_path, given, built, words):
        conda_file = tmp_path / "myenv.yml"
        lines = "".join(f'    - "{package}"\n' for package in given)
        conda_file.write_text(f"dependencies:\n- pip\n- pip:\n{lines}")
        environment = Environment("mine")
        environment.python.conda_dependencies = CondaDependencies.create(pip_packages=given)
        of_file = Environment.from_conda_specification("mine", conda_file)
        for each in (environment, of_file):
            with pytest.warns(UserWarning, match=words):
                assert {package.replace('"', "'") for package in each.to_spec().pip_packages} == set(built)

    @pytest.mark.parametrize("package", ["./local", "a.whl", "x @ file:a"])
    def test_packages_that_are_not_elsewhere(self, package):
        environment = Environment("mine")
        environment.python.conda_dependencies.set_pip_requirements([package])
        with pytest.raises(UserErrorException, match="local path"):
            environment.to_spec()

    def test_options_that_are_not_elsewhere(self):
        environment = Environment("mine")
        environment.python.conda_dependencies.set_pip_requirements(["-r other.txt"])
        with pytest.raises(UserErrorException, match="another file"):
            environment.to_spec()

    def test_a_range_of_pythons(self, monkeypatch):
        monkeypatch.setattr(pythons, "all_pythons", lambda: {"3.6": "/a", "3.7": "/b", "3.11": "/c"})
        environment = Environment("mine")
        packages = CondaDependencies.create(conda_packages=["python>=3.6", "numpy"])
        environment.python.conda_dependencies = packages
        assert environment.to_spec() == EnvironmentSpec(conda_packages=("numpy",))
        environment.python.conda_dependencies = CondaDependencies.create(conda_packages=["python >=3.6,<3.9"])
        assert environment.to_spec() == EnvironmentSpec(python_version="3.7")
        environment.python.conda_dependencies = CondaDependencies.create(conda_packages=["python<3"])
        assert environment.to_spec() == EnvironmentSpec(conda_packages=("python<3",))
        environment.python.conda_dependencies = CondaDependencies.create(conda_packages=["python=3"])
        assert environment.to_spec() == EnvironmentSpec()

    def test_the_way_back(self):
        spec = EnvironmentSpec(
            python_version="3.9",
            pip_packages=("--pre", "torch", "numpy; os_name == 'nt'", "numpy>1"),
            conda_packages=("scipy",),
            conda_channels=("conda-forge",),
            accelerator="cpu",
            horovod="0.28.1",
            open_mpi=True,
            exclude_newer="2026-01-01",
        )
        environment = Environment("again")
        environment.python.take(spec)
        assert environment.to_spec() == spec

    def test_the_environment_of_a_job_in_a_container(self):
        container = ContainerSpec("image:1", "4g", ("--init",))
        spec = EnvironmentSpec(user_managed=True, interpreter="python", container=container)
        environment = Environment.from_job(JobSpec(".", "local", script="a.py", environment=spec), "of a run")
        docker = environment.docker
        assert (environment.name, docker.enabled, docker.base_image) == ("of a run", True, "image:1")
        assert (docker.shm_size, docker.arguments, environment.python.interpreter_path) == ("4g", ["--init"], "python")

    def test_repr_is_readable(self):
        environment = Environment("mine")
        environment.python.conda_dependencies = CondaDependencies.create(pip_packages=["numpy"], python_version="3.9")
        environment.version = "2"
        assert repr(environment) == (
            "Environment(name='mine', version='2', packages=CondaDependencies(python=3.9, pip: numpy))"
        )
        environment.python.user_managed_dependencies = True
        assert "interpreter='python'" in repr(environment)


class TestSources:
    def test_conda_file(self, tmp_path):
        (tmp_path / "conda.yml").write_text("dependencies: [python=3.8, {pip: [numpy]}]\nvariables: {A: 1, B: 2}\n")
        environment = Environment.from_conda_specification("mine", tmp_path / "conda.yml")
        assert environment.to_spec() == EnvironmentSpec(python_version="3.8", pip_packages=("numpy",))
        environment.environment_variables["B"] = "3"
        assert environment.job_variables() == {"A": "1", "B": "3"}

    def test_conda_file_of_the_section(self, tmp_path):
        (tmp_path / "conda.yml").write_text("dependencies: [{pip: [numpy]}]\nvariables: {A: 1}\n")
        environment = Environment("mine")
        environment.python.conda_dependencies_file = "conda.yml"
        assert environment.to_spec(str(tmp_path)).pip_packages == ("numpy",)
        assert environment.job_variables(str(tmp_path)) == {"A": "1"}
        with pytest.raises(UserErrorException, match=r"conda\.yml"):
            environment.to_spec(str(tmp_path / "elsewhere"))
        environment.python.conda_dependencies_file = 3
        with pytest.raises(UserErrorException, match="must be the path of a file"):
            environment.to_spec()

    def test_requirements(self, tmp_path):
        (tmp_path / "r.txt").write_text("--pre\nnumpy  # fast\n\nscipy>=1\n")
        environment = Environment.from_pip_requirements("mine", str(tmp_path / "r.txt"), pip_version="20.3")
        assert environment.to_spec().pip_packages == ("--pre", "numpy", "scipy>=1", "pip==20.3")

    @pytest.mark.parametrize("text", ["-r other.txt", "./folder", None])
    def test_requirements_that_cannot_be(self, tmp_path, text):
        if text is not None:
            (tmp_path / "r.txt").write_text(text)
        with pytest.raises(UserErrorException, match=r"r\.txt"):
            Environment.from_pip_requirements("mine", tmp_path / "r.txt")

    def test_docker(self, tmp_path):
        registry = ContainerRegistry()
        of_image = Environment.from_docker_image("a", "image:1", registry)
        assert of_image.docker.base_image == "image:1" and of_image.docker.base_image_registry is registry
        assert of_image.python.user_managed_dependencies
        (tmp_path / "Dockerfile").write_text("FROM x")
        (tmp_path / "r.txt").write_text("numpy")
        of_file = Environment.from_dockerfile("b", tmp_path / "Dockerfile", pip_requirements=tmp_path / "r.txt")
        assert of_file.docker.base_dockerfile == "FROM x" and of_file.to_spec().pip_packages == ("numpy",)
        assert Environment.from_dockerfile("c", "FROM x\nRUN y").docker.base_dockerfile == "FROM x\nRUN y"
        assert Environment.from_docker_build_context("d", "./folder").docker.build_context == "./folder"
        with pytest.raises(UserErrorException, match="together"):
            Environment.from_docker_image("e", "image", None, "a.yml", "r.txt")
        with pytest.raises(UserErrorException, match="has no image"):
            of_image.get_image_details(None)

    @pytest.mark.parametrize(
        ("name", "package"),
        [
            ("AzureML-PyTorch-2.13-CPU", "torch==2.13.0"),
            ("AzureML-TensorFlow-2.21-GPU", "tensorflow"),
            ("AzureML-Scikit-learn-1.9.1", "scikit-learn==1.9.1"),
            ("AzureML-sklearn-1.9-ubuntu18.04-py37-cpu", "scikit-learn==1.9"),
        ],
    )
    def test_curated_environments(self, name, package):
        with pytest.warns(UserWarning, match="it is replaced by"):
            environment = Environment.get(None, name)
        packages = list(environment.python.conda_dependencies.pip_packages)
        assert environment.name == name and packages[0].startswith(package)
        with pytest.raises(UserErrorException, match="cannot be registered"):
            Environment(name).register(None)

    def test_the_empty_curated_environment(self):
        assert not list(Environment.get(None, "AzureML-Minimal").python.conda_dependencies.pip_packages)

    @pytest.mark.parametrize(
        ("name", "python", "packages"),
        [
            ("AzureML-Scikit-learn-0.20.3", "3.7", ["scikit-learn==0.20.3", "scipy==1.2.1", "numpy<1.20", "pandas<1"]),
            ("AzureML-sklearn-0.24-ubuntu18.04-py37-cpu", "3.7", ["scikit-learn==0.24.*", "numpy<1.24", "pandas<1.4"]),
            ("azureml-sklearn-1.5", "3.10", ["scikit-learn==1.5.*", "numpy<2", "pandas<2.3", "scipy<1.14"]),
            ("AzureML-PyTorch-1.6-CPU", "3.7", ["torch==1.6.0", "torchvision==0.7.0", "pandas<1.2", "scipy<1.6"]),
            ("AzureML-TensorFlow-1.13-CPU", "3.7", ["tensorflow==1.13.1", "numpy<1.17", "pandas<1", "scipy<1.4"]),
            ("AzureML-tensorflow-2.7-ubuntu20.04-py38-cuda11-gpu", "3.8", ["tensorflow-cpu==2.7.*", "pandas<1.4"]),
            ("AzureML-lightgbm-3.2-ubuntu18.04-py37-cpu", "3.7", ["lightgbm==3.2.*", "pandas<1.4", "scikit-learn"]),
            ("AzureML-Tutorial", "3.7", ["scikit-learn<0.23", "matplotlib<3.3", "pandas<1.2", "tqdm"]),
            ("AzureML-minimal-ubuntu18.04-py37-cpu-inference", "3.7", []),
        ],
    )
    @pytest.mark.filterwarnings("ignore:.*it is replaced by")
    def test_curated_environments_have_the_companions_of_their_time(self, monkeypatch, name, python, packages):
        monkeypatch.setattr(pythons, "all_pythons", lambda: dict.fromkeys(("3.6", "3.7", "3.8", "3.10", "3.11"), ""))
        monkeypatch.setattr(pythons, "running_version", lambda: "3.11")
        spec = Environment.get(None, name).to_spec()
        assert spec.python_version == python
        assert set(packages) <= set(spec.pip_packages)
        # Without a Python of that time the environment still asks for it: the nearest newer one is taken at the build.
        monkeypatch.setattr(pythons, "all_pythons", lambda: {"3.14": ""})
        assert Environment.get(None, name).to_spec().python_version == python

    def test_every_known_curated_name_stands_for_something(self, recwarn):
        for name in curated_environments.NAMES:
            assert curated_environments.is_curated(name)
            stand_in = curated_environments.stand_in(name)
            assert stand_in.packages or name == "AzureML-Minimal"

    @pytest.mark.parametrize("name", ["AzureML-AutoML", "AzureML-PyTorch", "microsoft-anything"])
    def test_curated_environments_that_are_not_known(self, name):
        with pytest.raises(UserErrorException, match="curated environment of Azure") as caught:
            Environment.get(None, name)
        assert "CondaDependencies.create" in caught.value.hint


def program(folder, text):
    path = folder / "conda"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


class TestExistingConda:
    @pytest.fixture(autouse=True)
    def only_this_conda(self, tmp_path, monkeypatch):
        monkeypatch.delenv("CONDA_EXE", raising=False)
        monkeypatch.setenv("PATH", str(tmp_path))

    def test_by_name(self, tmp_path):
        program(tmp_path, 'echo "name: $5"; echo "dependencies: [python=3.8.1, numpy=1.2]"; echo "prefix: /x"')
        environment = Environment.from_existing_conda_environment("mine", "theirs")
        assert environment.to_spec() == EnvironmentSpec(python_version="3.8", conda_packages=("numpy=1.2",))
        assert environment.python.conda_dependencies.as_dict()["name"] == "theirs"

    def test_by_folder(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        program(tmp_path, 'echo "name: $4$5"')
        environment = Environment.from_existing_conda_environment("mine", "./env")
        assert environment.python.conda_dependencies.as_dict()["name"] == f"--prefix{tmp_path}/env"

    def test_conda_says_no(self, tmp_path):
        program(tmp_path, "echo EnvironmentLocationNotFound >&2; exit 1")
        with pytest.raises(EnvironmentException, match="EnvironmentLocationNotFound"):
            Environment.from_existing_conda_environment("mine", "theirs")

    def test_the_conda_of_the_shell(self, tmp_path, monkeypatch):
        program(tmp_path, "echo 'name: x'")
        monkeypatch.setenv("PATH", "/nowhere")
        monkeypatch.setenv("CONDA_EXE", str(tmp_path / "conda"))
        assert Environment.from_existing_conda_environment("mine", "x").name == "mine"

    def test_no_conda(self):
        with pytest.raises(EnvironmentException, match=r"conda, .* is not installed on this machine") as caught:
            Environment.from_existing_conda_environment("mine", "theirs")
        assert "from_conda_specification" in caught.value.hint

    @pytest.mark.parametrize("name", ["", None, "--help"])
    def test_no_name(self, name):
        with pytest.raises(UserErrorException):
            Environment.from_existing_conda_environment("mine", name)


def full():
    environment = Environment("mine")
    environment.python.conda_dependencies = CondaDependencies.create(
        "https://x.example", ["numpy", "azureml-defaults"], ["scipy"], "3.8"
    )
    environment.python.conda_dependencies.add_channel("conda-forge")
    environment.environment_variables = {"A": "1"}
    environment.inferencing_stack_version = "latest"
    environment.docker.base_image = "image"
    environment.docker.arguments = ["--init"]
    environment.docker.base_image_registry.address = "registry.example"
    environment.docker.base_image_registry.password = "secret"
    return environment


class TestFolders:
    def test_variables_that_are_none(self, tmp_path):
        environment = Environment("mine")
        environment.environment_variables = ["A"]
        with pytest.raises(UserErrorException, match="environment_variables must be a dict"):
            environment.save_to_directory(tmp_path)
        assert os.listdir(tmp_path) == []

    def test_there_and_back(self, tmp_path):
        full().save_to_directory(tmp_path / "saved")
        assert sorted(os.listdir(tmp_path / "saved")) == ["azureml_environment.json", "conda_dependencies.yml"]
        assert "secret" not in (tmp_path / "saved" / "azureml_environment.json").read_text()
        loaded = Environment.load_from_directory(str(tmp_path / "saved"))
        assert describe(loaded) == describe(full())

    def test_nothing_is_overwritten_by_surprise(self, tmp_path):
        full().save_to_directory(tmp_path)
        with pytest.raises(UserErrorException, match="already"):
            Environment("other").save_to_directory(tmp_path)
        assert Environment.load_from_directory(tmp_path).name == "mine"
        Environment("other").save_to_directory(tmp_path, overwrite=True)
        assert Environment.load_from_directory(tmp_path).name == "other"

    def test_the_conda_file_counts(self, tmp_path):
        full().save_to_directory(tmp_path)
        (tmp_path / "conda_dependencies.yml").write_text("dependencies: [{pip: [pandas]}]")
        assert Environment.load_from_directory(tmp_path).to_spec().pip_packages == ("pandas",)

    def test_a_folder_of_v1(self, tmp_path):
        conda = {"name": "x", "channels": ["conda-forge"], "dependencies": ["python=3.6.2"]}
        python = {"userManagedDependencies": False, "baseCondaEnvironment": None, "condaDependencies": conda}
        text = {"name": "old", "version": "7", "spark": {"packages": []}, "databricks": {}, "python": python}
        (tmp_path / "azureml_environment.json").write_text(json.dumps(text))
        loaded = Environment.load_from_directory(tmp_path)
        assert (loaded.name, loaded.version, loaded.to_spec().python_version) == ("old", "7", "3.6")

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (None, "there is no environment in"),
            ("{", "cannot be read"),
            ("[]", "must be an object"),
            ('{"name": 3}', "name of .* must be str"),
            ("{}", "name of an Environment"),
            ('{"name": "a", "python": []}', "python of .* must be dict"),
            (
                '{"name": "a", "python": {"userManagedDependencies": "no"}}',
                "userManagedDependencies of .* must be bool",
            ),
            ('{"name": "a", "python": {"condaDependencies": {"x": 1}}}', "keys that conda does not know"),
            ('{"name": "a", "python": {"recipe": {"x": 1}}}', "cannot be used"),
        ],
    )
    def test_a_folder_that_is_wrong(self, tmp_path, text, message):
        if text is not None:
            (tmp_path / "azureml_environment.json").write_text(text)
        with pytest.raises(UserErrorException, match=message):
            Environment.load_from_directory(tmp_path)
