"""Framework estimators bring their framework; what the user says counts before it."""

import sys

import pytest

from trainmaster.environments import compiled, pythons
from trainmaster.job.errors import EnvironmentException
from trainmaster.sdk.environment.conda_dependencies import CondaDependencies
from trainmaster.sdk.environment.definition import Environment
from trainmaster.sdk.estimators.chainer import Chainer
from trainmaster.sdk.estimators.distributed_job import MpiConfiguration
from trainmaster.sdk.estimators.distributed_training import Gloo, Mpi
from trainmaster.sdk.estimators.estimator import Estimator
from trainmaster.sdk.estimators.pytorch import PyTorch
from trainmaster.sdk.estimators.script_run_config import ScriptRunConfig
from trainmaster.sdk.estimators.sklearn import SKLearn
from trainmaster.sdk.estimators.tensorflow import TensorFlow
from trainmaster.sdk.v1 import estimators as of_v1

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"


@pytest.fixture(autouse=True)
def found(monkeypatch):
    """The Pythons of a machine that has them all."""
    machine = {f"3.{minor}": f"/usr/bin/python3.{minor}" for minor in range(6, 15)}
    monkeypatch.setattr(pythons, "all_pythons", lambda: machine)
    return machine


@pytest.fixture
def built(make):
    """The environment an estimator compiles to."""
    return lambda kind, **settings: make(kind, **settings).compile({}).environment


CONSTRUCTED = [
    (PyTorch, {}, ("torch==2.13.0", "numpy"), "", "cpu"),
    (PyTorch, {"use_gpu": True}, ("torch==2.13.0", "numpy"), "", "cuda"),
    (PyTorch, {"framework_version": "2.13.0"}, ("torch==2.13.0", "numpy"), "", "cpu"),
    (
        PyTorch,
        {"framework_version": "1.4"},
        ("torch==1.4.0", "torchvision==0.5.0", "tensorboard==1.14.0", "future", "protobuf<3.21", "numpy<1.20"),
        "3.7",
        "cpu",
    ),
    (TensorFlow, {}, ("tensorflow-cpu==2.21.0",), "", "cpu"),
    (TensorFlow, {"framework_version": "2.21", "use_gpu": True}, ("tensorflow[and-cuda]==2.21.0",), "", "cuda"),
    (
        TensorFlow,
        {"framework_version": "1.13"},
        ("tensorflow==1.13.1", "protobuf<3.21", "numpy<1.17", "h5py<3", "gast<0.3"),
        "3.7",
        "cpu",
    ),
    (
        TensorFlow,
        {"framework_version": "1.12", "use_gpu": True},
        ("tensorflow-gpu==1.12.0", "protobuf<3.21", "numpy<1.17", "h5py<3", "gast<0.3"),
        "3.6",
        "cuda",
    ),
    (SKLearn, {}, ("scikit-learn==1.9.1", "scipy", "joblib"), "", "cpu"),
    (
        SKLearn,
        {"framework_version": "0.20.3"},
        ("scikit-learn==0.20.3", "scipy==1.2.1", "joblib==0.13.2", "numpy<1.20"),
        "3.7",
        "cpu",
    ),
    (Chainer, {}, ("chainer==7.0.0", "numpy<1.20", "setuptools<60"), "3.8", "cpu"),
    (
        Chainer,
        {"distributed_training": Mpi()},
        ("chainer==7.0.0", "numpy<1.20", "setuptools<60", "mpi4py"),
        "3.8",
        "cpu",
    ),
]


@pytest.mark.parametrize(("kind", "settings", "packages", "python", "accelerator"), CONSTRUCTED)
def test_the_constructor_is_enough(make, kind, settings, packages, python, accelerator):
    estimator = make(kind, **settings)
    assert tuple(estimator.conda_dependencies.pip_packages) == packages
    environment = estimator.compile({}).environment
    assert environment.pip_packages == packages
    assert (environment.python_version, environment.accelerator) == ("" if python == HERE else python, accelerator)


def test_a_generic_estimator_takes_what_the_sources_give(built):
    environment = built(Estimator, pip_packages=["torch"], use_gpu=True)
    assert (environment.accelerator, environment.pip_packages) == ("any", ("torch",))


def test_packages_of_the_user_join(built):
    assert built(PyTorch, pip_packages=["pandas"]).pip_packages == ("pandas", "torch==2.13.0", "numpy")


REPLACED = [
    (PyTorch, {"pip_packages": ["numpy==2.0"]}, ("numpy==2.0", "torch==2.13.0"), "'numpy==2.0' .* 'numpy'"),
    (PyTorch, {"pip_packages": ["Torch"]}, ("Torch", "numpy"), "'Torch' .* 'torch==2.13.0' of PyTorch 2.13"),
    (TensorFlow, {"pip_packages": ["tf-nightly"]}, ("tf-nightly",), "'tf-nightly' .* 'tensorflow-cpu==2.21.0'"),
    (PyTorch, {"conda_packages": ["pytorch"]}, (), "'pytorch' .* 'torch==2.13.0'"),
    (PyTorch, {"conda_packages": ["numpy=2.4"]}, ("torch==2.13.0",), "'numpy=2.4' .* 'numpy'"),
    (
        SKLearn,
        {"framework_version": "1.9.1", "pip_packages": ["scikit-learn==1.9.0"]},
        ("scikit-learn==1.9.0", "scipy", "joblib"),
        "'scikit-learn==1.9.0' .* 'scikit-learn==1.9.1'",
    ),
]


@pytest.mark.parametrize(("kind", "settings", "packages", "message"), REPLACED)
def test_packages_of_the_user_win(built, kind, settings, packages, message):
    with pytest.warns(UserWarning, match=f"{message}") as told:
        assert built(kind, **settings).pip_packages == packages
    assert len(told) == 1


def test_a_name_without_a_version_keeps_the_limit_of_the_release(make):
    """Notebooks name numpy beside Chainer; its 1.24 has no `np.float` any more, and Chainer needs one below 1.20."""
    assert list(make(Chainer, pip_packages=["NumPy", "pytest"]).conda_dependencies.pip_packages) == [
        "numpy<1.20",
        "pytest",
        "chainer==7.0.0",
        "setuptools<60",
    ]
    packages = make(PyTorch, framework_version="1.4", conda_packages=["numpy"]).conda_dependencies
    assert list(packages.conda_packages) == ["numpy<1.20"] and "torchvision==0.5.0" in packages.pip_packages
    assert not [each for each in packages.pip_packages if each.startswith("numpy")]


def test_a_requirements_file_counts_as_the_user(built, project):
    (project / "requirements.txt").write_text("torch==2.13.0\nnumpy\n")
    assert built(PyTorch, pip_requirements_file="requirements.txt").pip_packages == ("torch==2.13.0", "numpy")


def test_the_framework_as_a_pin_of_the_user_is_that_release(make):
    estimator = make(PyTorch, pip_packages=["torch==1.2.0", "torchvision==0.4.0"])
    environment = estimator.compile({}).environment
    assert estimator.framework_version == "1.2.0"
    assert environment.python_version == "3.7"
    assert environment.pip_packages[:2] == ("torch==1.2.0", "torchvision==0.4.0")
    assert {"pillow<7", "numpy<1.20"} < set(environment.pip_packages)


def test_the_framework_of_conda_is_that_release_too(make):
    with pytest.warns(UserWarning, match="'pytorch::pytorch=1.4' .* replaces 'torch==1.4.0'"):
        estimator = make(PyTorch, conda_packages=["pytorch::pytorch=1.4", "ffmpeg"])
    environment = estimator.compile({}).environment
    assert (environment.pip_packages, environment.python_version) == ((), "3.7")


def test_a_conda_file_says_it_all(built, project):
    (project / "conda.yml").write_text("dependencies:\n- pip:\n  - pandas\n")
    with pytest.warns(UserWarning, match="not those of PyTorch"):
        assert built(PyTorch, conda_dependencies_file="conda.yml").pip_packages == ("pandas",)


def test_edits_of_conda_dependencies_count(make):
    estimator = make(PyTorch)
    estimator.conda_dependencies.add_pip_package("torch==1.4.0")
    estimator.conda_dependencies.remove_pip_package("numpy")
    environment = estimator.compile({}).environment
    assert (environment.pip_packages, environment.python_version) == (("torch==1.4.0",), "3.7")
    estimator.conda_dependencies.remove_pip_package("torch")
    environment = estimator.compile({}).environment
    assert (environment.pip_packages, environment.python_version) == ((), "")


def test_the_python_of_the_user_counts(make):
    estimator = make(PyTorch, framework_version="1.4")
    estimator.conda_dependencies.set_python_version("3.6.2")
    assert estimator.compile({}).environment.python_version == "3.6"
    assert make(PyTorch, framework_version="1.4", conda_packages=["python=3.8"]).compile({}).environment.python_version


@pytest.mark.parametrize("kind", [PyTorch, TensorFlow, SKLearn, Chainer])
def test_an_environment_of_the_users_own_stays_as_it_is(make, built, kind):
    mine = Environment("mine")
    mine.python.conda_dependencies = CondaDependencies.create(pip_packages=["pandas"])
    assert built(kind, environment_definition=mine).pip_packages == ("pandas",)
    assert built(kind, environment_definition=mine).accelerator == "any"
    assert built(kind, user_managed=True).user_managed
    assert tuple(make(kind, user_managed=True).conda_dependencies.pip_packages) == ()
    in_image = built(kind, custom_docker_image="org/image:1")
    assert (in_image.container.image, in_image.pip_packages, in_image.python_version) == ("org/image:1", (), "")
    beside = built(kind, custom_docker_image="org/image:1", pip_packages=["six"])
    assert beside.container == in_image.container
    assert beside.pip_packages == built(kind, pip_packages=["six"]).pip_packages
    with pytest.warns(UserWarning, match="framework_version is ignored"):
        make(kind, framework_version="1.4", environment_definition=mine)


@pytest.mark.parametrize(
    ("kind", "version", "package", "python"),
    [
        (PyTorch, "1.7", "torch==1.7.*", "3.8"),
        (PyTorch, "1.7.1", "torch==1.7.1", "3.8"),
        (PyTorch, "0.4.1", "torch==0.4.1", "3.7"),
        (TensorFlow, "1.15.5", "tensorflow==1.15.5", "3.7"),
        (TensorFlow, "9.9", "tensorflow-cpu==9.9.*", "3.13"),
        (SKLearn, "1.0", "scikit-learn==1.0.*", "3.9"),
        (Chainer, "4", "chainer==4.*", "3.8"),
    ],
)
def test_any_other_release_is_tried(make, kind, version, package, python):
    with pytest.warns(UserWarning, match=rf"framework_version '{version}' of {kind.FRAMEWORK_NAME} is untested"):
        estimator = make(kind, framework_version=version)
    assert estimator.framework_version == version
    environment = estimator.compile({}).environment
    assert environment.pip_packages[0] == package
    assert environment.python_version in ("", python)


def test_no_python_for_a_release_is_told_at_submit(make, found):
    for version in ("3.6", "3.7", "3.8"):
        del found[version]
    estimator = make(PyTorch, framework_version="1.4")
    with pytest.raises(EnvironmentException) as refused:
        estimator.compile({})
    assert refused.value.headline == "PyTorch 1.4.0 needs Python 3.6, 3.7 or 3.8, which this machine does not have"
    assert refused.value.cause == "Found: 3.9, 3.10, 3.11, 3.12, 3.13, 3.14."
    assert "uv python install 3.7" in refused.value.hint
    # Conda brings its own.
    with_conda = make(PyTorch, framework_version="1.4", conda_packages=["ffmpeg"])
    assert with_conda.compile({}).environment.python_version == "3.7"


MPI = [
    (PyTorch, {}, "0.28.1"),
    (PyTorch, {"framework_version": "1.4"}, "0.18.1"),
    (PyTorch, {"pip_packages": ["horovod==0.27.0"]}, "0.27.0"),
    (PyTorch, {"pip_packages": ["horovod[pytorch]"], "framework_version": "1.6"}, "0.19.5"),
    (TensorFlow, {}, "0.28.1"),
    (TensorFlow, {"framework_version": "1.13"}, "0.16.1"),
    (TensorFlow, {"framework_version": "1.12"}, "0.15.2"),
    (Chainer, {}, ""),
    (Estimator, {}, ""),
    (Estimator, {"pip_packages": ["torch", "horovod"]}, "0.28.1"),
    (Estimator, {"pip_packages": ["torch==1.4.0", "horovod"]}, "0.18.1"),
]


@pytest.mark.parametrize(("kind", "settings", "horovod"), MPI)
def test_mpi_brings_open_mpi_and_horovod(built, kind, settings, horovod):
    environment = built(kind, distributed_training=Mpi(2), **settings)
    assert (environment.open_mpi, environment.horovod) == (True, horovod)
    assert not [package for package in environment.pip_packages if package.startswith("horovod")]


def test_without_mpi_there_is_neither(built):
    for settings in ({}, {"distributed_training": Gloo()}):
        environment = built(PyTorch, **settings)
        assert (environment.open_mpi, environment.horovod) == (False, "")
    managed = built(PyTorch, user_managed=True, distributed_training=Mpi())
    assert (managed.open_mpi, managed.horovod) == (False, "")


def test_a_script_run_config_gets_open_mpi_too(project):
    environment = Environment("mine")
    environment.python.conda_dependencies = CondaDependencies.create(
        pip_packages=["tensorflow==1.13.1", "horovod==0.16.1"]
    )
    config = ScriptRunConfig(
        project, script="train.py", environment=environment, distributed_job_config=MpiConfiguration(node_count=2)
    )
    compiled = config.compile({}).environment
    assert (compiled.open_mpi, compiled.horovod, compiled.pip_packages) == (True, "0.16.1", ("tensorflow==1.13.1",))


# By the names of v1

TORCH_1_4 = ("torch==1.4.0", "torchvision==0.5.0", "tensorboard==1.14.0", "future", "protobuf<3.21", "numpy<1.20")


@pytest.mark.parametrize(
    ("kind", "settings", "version", "first", "python"),
    [
        (of_v1.PyTorch, {}, "1.4", "torch==1.4.0", "3.7"),
        (of_v1.PyTorch, {"use_gpu": True}, "1.4", "torch==1.4.0", "3.7"),
        (of_v1.TensorFlow, {}, "1.13", "tensorflow==1.13.1", "3.7"),
        (of_v1.TensorFlow, {"use_gpu": True}, "1.13", "tensorflow-gpu==1.13.1", "3.7"),
        (of_v1.SKLearn, {}, "0.20.3", "scikit-learn==0.20.3", "3.7"),
        (of_v1.Chainer, {}, "5.1.0", "chainer==5.1.0", "3.8"),
        (of_v1.PyTorch, {"framework_version": "1.6"}, "1.6", "torch==1.6.0", "3.7"),
        (of_v1.PyTorch, {"conda_packages": ["python=3.6.2"]}, "1.4", "torch==1.4.0", "3.6"),
    ],
)
def test_by_the_names_of_v1_it_is_the_release_of_v1(make, kind, settings, version, first, python):
    estimator = make(kind, **settings)
    environment = estimator.compile({}).environment
    assert estimator.framework_version == version
    assert (environment.pip_packages[0], environment.python_version) == (first, python)


def test_the_same_environment_as_with_the_release_named(built):
    assert built(of_v1.PyTorch) == built(PyTorch, framework_version="1.4")
    assert built(of_v1.PyTorch, pip_packages=["torch==2.13.0"]).pip_packages == ("torch==2.13.0", "numpy")
    assert built(of_v1.PyTorch, user_managed=True) == built(PyTorch, user_managed=True)


def test_without_a_python_of_that_time_it_is_the_release_of_today(make, monkeypatch):
    monkeypatch.setattr(pythons, "all_pythons", lambda: {HERE: "/usr/bin/python3"})
    told = r"PyTorch 2\.13 is used instead of v1's 1\.4: PyTorch 1\.4 needs Python .* have\. 'pyenv install 3\.7'"
    with pytest.warns(UserWarning, match=told):
        estimator = make(of_v1.PyTorch)
    assert estimator.framework_version == "2.13"
    assert estimator.compile({}).environment == make(PyTorch).compile({}).environment
    with pytest.warns(UserWarning, match=r"SKLearn 1\.9\.1 is used"):
        make(of_v1.SKLearn)
    # Who names the release means it.
    with pytest.raises(EnvironmentException, match=r"PyTorch 1\.4\.0 needs Python"):
        make(of_v1.PyTorch, framework_version="1.4").compile({})


def test_a_python_of_the_user_that_cannot_run_v1s_release(make):
    with pytest.warns(UserWarning, match=r"1\.13: TensorFlow 1\.13 does not run on Python 3\.12"):
        estimator = make(of_v1.TensorFlow, conda_packages=["python=3.12"])
    assert estimator.compile({}).environment.pip_packages == ("tensorflow-cpu==2.21.0",)


def test_conda_brings_a_python_for_v1s_release(make, monkeypatch):
    monkeypatch.setattr(pythons, "all_pythons", lambda: {HERE: "/usr/bin/python3"})
    estimator = make(of_v1.PyTorch, conda_packages=["scipy"])
    assert (estimator.framework_version, estimator.compile({}).environment.python_version) == ("1.4", "3.7")


def test_horovod_of_that_time_comes_with_it(built):
    environment = built(of_v1.PyTorch, distributed_training=Mpi())
    assert (environment.horovod, environment.pip_packages[:6]) == ("0.18.1", TORCH_1_4)
    assert built(of_v1.TensorFlow, distributed_training=Mpi(), node_count=2).horovod == "0.16.1"


def test_horovod_that_cannot_be_built_for_v1s_release(make, monkeypatch):
    def without_recipes_of_that_time(spec, environ):
        if spec.horovod != "0.28.1":
            raise EnvironmentException(f"Horovod {spec.horovod} does not build here", hint="Use another machine.")

    monkeypatch.setattr(compiled, "check", without_recipes_of_that_time)
    with pytest.warns(UserWarning, match=r"1\.4: Horovod 0\.18\.1 does not build here\. Use another machine"):
        estimator = make(of_v1.PyTorch, distributed_training=Mpi())
    environment = estimator.compile({}).environment
    assert (environment.horovod, environment.pip_packages) == ("0.28.1", ("torch==2.13.0", "numpy"))
    # Without MPI nothing has to be built.
    assert make(of_v1.PyTorch).framework_version == "1.4"


@pytest.mark.parametrize(
    ("settings", "python", "packages"),
    [
        ({"conda_packages": ["scikit-learn"]}, "3.8", ("scikit-learn<0.23", "numpy<1.20", "scipy<1.6")),
        (
            {"pip_packages": ["azureml-sdk", "tqdm"]},
            "3.8",
            ("pandas<1.2", "pyarrow", "tqdm", "numpy<1.20", "scipy<1.6"),
        ),
        # Whoever names a release or a Python means it.
        ({"pip_packages": ["numpy", "scikit-learn==1.5"]}, "", ("numpy", "scikit-learn==1.5")),
        ({"conda_packages": ["python=3.10", "numpy"]}, "3.10", ("numpy",)),
        ({"pip_packages": ["numpy", "torch"]}, "", ("numpy", "torch")),
        ({"pip_packages": ["tqdm"]}, "", ("tqdm",)),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_packages_without_a_version_by_the_names_of_v1(make, settings, python, packages):
    environment = make(of_v1.Estimator, **settings).compile({}).environment
    assert environment.python_version == python
    assert (*environment.pip_packages, *environment.conda_packages) == packages


def test_what_is_said_of_packages_without_a_version(make, built, monkeypatch):
    with pytest.warns(
        UserWarning, match=r"releases of v1's time: numpy<1\.20, scipy<1\.6 on Python 3\.8\. To use other releases"
    ):
        make(of_v1.Estimator, pip_packages=["numpy"]).compile({})
    assert built(Estimator, pip_packages=["numpy"]).pip_packages == ("numpy",)
    monkeypatch.setattr(pythons, "all_pythons", lambda: {HERE: "/usr/bin/python3"})
    with pytest.warns(UserWarning, match=r"today's releases .*, which need Python .* 'pyenv install 3\.8'"):
        environment = make(of_v1.Estimator, pip_packages=["numpy"]).compile({}).environment
    assert (environment.pip_packages, environment.python_version) == (("numpy",), "")


@pytest.mark.parametrize(
    ("settings", "optional"),
    [
        ({}, ("torchvision",)),
        ({"use_gpu": True}, ("torchvision",)),
        ({"pip_packages": ["torchvision==0.28.0"]}, ()),
        # It is among the packages of this release.
        ({"framework_version": "1.4"}, ()),
        ({"conda_packages": ["pytorch::pytorch=1.4"]}, ()),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_torchvision_comes_along_where_it_can(make, settings, optional):
    environment = make(PyTorch, **settings).compile({}).environment
    assert environment.optional_packages == optional
    assert make(TensorFlow).compile({}).environment.optional_packages == ()


def test_torchvision_is_not_brought_back_once_it_was_removed(make):
    estimator = make(PyTorch, framework_version="1.4")
    estimator.conda_dependencies.remove_pip_package("torchvision")
    environment = estimator.compile({}).environment
    assert environment.optional_packages == ()
    assert not [each for each in environment.pip_packages if each.startswith("torchvision")]
