"""Environment and CondaDependencies, as far as scripts set them."""

import sys

import pytest

from trainmaster.environments.conda_dependencies import CondaDependencies, package_name
from trainmaster.environments.definition import Environment
from trainmaster.errors import UserErrorException
from trainmaster.job import EnvironmentSpec


class TestCondaDependencies:
    def test_create(self):
        packages = CondaDependencies.create("https://x.example", ["numpy"], ["scipy"], "3.11.4")
        assert list(packages.pip_packages) == ["numpy"]
        assert list(packages.conda_packages) == ["python=3.11.4", "scipy"]
        assert list(packages.pip_options) == ["--index-url https://x.example"]
        assert packages.get_python_version() == "3.11.4"

    def test_empty_by_default(self):
        packages = CondaDependencies()
        assert [*packages.pip_packages, *packages.conda_packages, *packages.conda_channels] == []

    def test_properties_are_iterators(self):
        packages = CondaDependencies.create(pip_packages=["a", "b"])
        assert next(packages.pip_packages) == "a"

    def test_the_same_package_is_replaced(self):
        packages = CondaDependencies.create(pip_packages=["Scikit_Learn==1.0", "numpy"])
        packages.add_pip_package("scikit-learn[extra]>=1.2")
        assert list(packages.pip_packages) == ["scikit-learn[extra]>=1.2", "numpy"]

    def test_remove(self):
        packages = CondaDependencies.create(pip_packages=["numpy==1.0"], conda_packages=["scipy=1", "pip"])
        packages.remove_pip_package("NumPy")
        packages.remove_pip_package("unknown")
        packages.remove_conda_package("scipy")
        packages.remove_conda_package("pip")
        assert (list(packages.pip_packages), list(packages.conda_packages)) == ([], ["scipy=1"])

    def test_python_is_an_entry_of_its_own(self):
        packages = CondaDependencies()
        packages.add_conda_package("python=3.10")
        packages.add_conda_package("conda-forge::python==3.11.2")
        packages.add_conda_package("python-dateutil")
        assert list(packages.conda_packages) == ["python=3.11.2", "python-dateutil"]
        with pytest.raises(UserErrorException, match="python cannot be removed"):
            packages.remove_conda_package("python=3.11.2")

    def test_options(self):
        packages = CondaDependencies()
        packages.set_pip_option("--index-url https://a.example")
        packages.set_pip_option("--index-url https://b.example")
        packages.set_pip_option("--extra-index-url https://c.example")
        packages.set_pip_option("--extra-index-url https://d.example")
        packages.remove_pip_option("--index-url")
        assert list(packages.pip_options) == [f"--extra-index-url https://{x}.example" for x in "cd"]

    def test_channels(self):
        packages = CondaDependencies()
        packages.add_channel("conda-forge")
        packages.add_channel("conda-forge")
        packages.add_channel("pytorch")
        packages.remove_channel("pytorch")
        assert list(packages.conda_channels) == ["conda-forge"]

    @pytest.mark.parametrize(
        "call",
        [
            lambda: CondaDependencies("conda.yml"),
            lambda: CondaDependencies.create(pip_packages="numpy"),
            lambda: CondaDependencies.create(conda_packages=3),
            lambda: CondaDependencies.create(python_version="three"),
            lambda: CondaDependencies().add_pip_package("--pre"),
            lambda: CondaDependencies().add_pip_package(None),
            lambda: CondaDependencies().add_pip_package("a\nb"),
            lambda: CondaDependencies().set_pip_option("numpy"),
        ],
    )
    def test_mistakes(self, call):
        with pytest.raises(UserErrorException):
            call()


@pytest.mark.parametrize(
    ("requirement", "name"),
    [
        ("numpy", "numpy"),
        (" Foo.Bar_baz[x,y] >= 1 ; python_version < '3'", "foo-bar-baz"),
        ("x @ https://y.example/z.whl", "x"),
        ("git+https://y.example/z.git#egg=Zed", "zed"),
        ("https://y.example/z.whl", "https://y.example/z.whl"),
    ],
)
def test_package_name(requirement, name):
    assert package_name(requirement) == name


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
