"""The releases of the frameworks, as a specification; and which Python is chosen for one."""

import pytest

from trainmaster.environments.frameworks import (
    CHAINER,
    PYTORCH,
    SKLEARN,
    TENSORFLOW,
    choose_python,
    is_named,
    is_version,
    release_in,
    release_of,
)
from trainmaster.environments.horovod.recipes import check
from trainmaster.environments.requirement import parse
from trainmaster.job.errors import EnvironmentException
from trainmaster.shared.job_spec import EnvironmentSpec

ALL = (PYTORCH, TENSORFLOW, SKLEARN, CHAINER)

# Framework, number, the packages that matter for CPU and for GPU, the best Python, Horovod.
RELEASES = [
    (PYTORCH, "1.0", ["torch==1.0.0", "torchvision==0.2.1", "pillow<7"], ["torch==1.0.0"], "3.7", "0.18.1"),
    (PYTORCH, "1.1", ["torch==1.1.0", "torchvision==0.3.0", "pillow<7"], ["torch==1.1.0"], "3.7", "0.18.1"),
    (PYTORCH, "1.2", ["torch==1.2.0", "torchvision==0.4.0", "pillow<7"], ["torch==1.2.0"], "3.7", "0.18.1"),
    (PYTORCH, "1.3", ["torch==1.3.1", "torchvision==0.4.2", "pillow<7"], ["torch==1.3.1"], "3.7", "0.18.1"),
    (PYTORCH, "1.4", ["torch==1.4.0", "torchvision==0.5.0", "tensorboard==1.14.0"], ["torch==1.4.0"], "3.7", "0.18.1"),
    (PYTORCH, "1.5", ["torch==1.5.0", "torchvision==0.6.0", "numpy<1.20"], ["torch==1.5.0"], "3.7", "0.19.1"),
    (PYTORCH, "1.6", ["torch==1.6.0", "torchvision==0.7.0", "tensorboard==1.15.0"], ["torch==1.6.0"], "3.7", "0.19.5"),
    (PYTORCH, "2.13", ["torch==2.13.0", "numpy"], ["torch==2.13.0"], "3.13", "0.28.1"),
    (TENSORFLOW, "1.10", ["tensorflow==1.10.0", "protobuf<3.21"], ["tensorflow-gpu==1.10.0"], "3.6", "0.15.2"),
    (TENSORFLOW, "1.12", ["tensorflow==1.12.0", "protobuf<3.21"], ["tensorflow-gpu==1.12.0"], "3.6", "0.15.2"),
    (TENSORFLOW, "1.13", ["tensorflow==1.13.1", "numpy<1.17"], ["tensorflow-gpu==1.13.1"], "3.7", "0.16.1"),
    (TENSORFLOW, "2.0", ["tensorflow==2.0.0", "h5py<3"], ["tensorflow-gpu==2.0.0"], "3.7", "0.18.1"),
    (TENSORFLOW, "2.1", ["tensorflow-cpu==2.1.0", "h5py<3"], ["tensorflow==2.1.0"], "3.7", "0.19.1"),
    (TENSORFLOW, "2.2", ["tensorflow-cpu==2.2.0", "h5py<3"], ["tensorflow==2.2.0"], "3.7", "0.19.5"),
    (TENSORFLOW, "2.3", ["tensorflow-cpu==2.3.0", "h5py<3"], ["tensorflow==2.3.0"], "3.7", "0.28.1"),
    (TENSORFLOW, "2.15", ["tensorflow-cpu==2.15.1"], ["tensorflow[and-cuda]==2.15.1"], "3.11", "0.28.1"),
    (TENSORFLOW, "2.21", ["tensorflow-cpu==2.21.0"], ["tensorflow[and-cuda]==2.21.0"], "3.13", "0.28.1"),
    (SKLEARN, "0.20.3", ["scikit-learn==0.20.3", "scipy==1.2.1", "joblib==0.13.2"], [], "3.7", ""),
    (SKLEARN, "1.9.1", ["scikit-learn==1.9.1", "scipy", "joblib"], [], "3.13", ""),
    (CHAINER, "5.1.0", ["chainer==5.1.0", "numpy<1.20"], [], "3.8", ""),
    (CHAINER, "7.0.0", ["chainer==7.0.0", "numpy<1.20"], [], "3.8", ""),
]


@pytest.mark.parametrize(
    ("framework", "version", "cpu", "gpu", "python", "horovod"),
    RELEASES,
    ids=[f"{row[0].name}-{row[1]}" for row in RELEASES],
)
def test_what_a_release_brings(framework, version, cpu, gpu, python, horovod):
    release = release_of(framework, version)
    assert release.tested
    assert set(cpu) <= set(release.packages(use_gpu=False))
    assert set(gpu) <= set(release.packages(use_gpu=True))
    assert (release.pythons[0], release.era.horovod) == (python, horovod)


@pytest.mark.parametrize("framework", [PYTORCH, TENSORFLOW], ids=lambda framework: framework.name)
def test_there_is_a_recipe_for_the_horovod_of_every_release(framework):
    for version in framework.versions:
        release = release_of(framework, version)
        for python in release.pythons:
            check(
                EnvironmentSpec(
                    pip_packages=release.packages(use_gpu=False), python_version=python, horovod=release.era.horovod
                )
            )


def test_the_specification_is_complete():
    listed = {(framework.name, version) for framework, version, *_ in RELEASES}
    assert listed == {(framework.name, version) for framework in ALL for version in framework.versions}


@pytest.mark.parametrize("framework", ALL, ids=lambda framework: framework.name)
def test_the_tables_are_in_order(framework):
    def order(text):
        return [int(number) for number in text.split(".")]

    for names in ([release.name for release in framework.releases], [era.since for era in framework.eras]):
        assert names == sorted(names, key=order)
    assert framework.default == framework.versions[-1]
    for release in framework.releases:
        packages = release_of(framework, release.name).packages(use_gpu=False, mpi=True)
        names = [parse(package).name for package in packages]
        assert len(names) == len(set(names)), "a package is named twice"
    for era in framework.eras:
        assert len(set(era.pythons.split())) == len(era.pythons.split())
        assert framework.name in ("SKLearn", "Chainer") or era.horovod


@pytest.mark.parametrize(
    ("framework", "version", "package", "tested"),
    [
        (PYTORCH, "1.4.0", "torch==1.4.0", True),
        (PYTORCH, "1.3", "torch==1.3.1", True),
        (PYTORCH, "1.3.0", "torch==1.3.0", False),
        (PYTORCH, "2.13.0", "torch==2.13.0", True),
        (PYTORCH, "2.13.0+cpu", "torch==2.13.0+cpu", True),
        (PYTORCH, "2.14.0rc1", "torch==2.14.0rc1", False),
        (PYTORCH, "2.14rc1", "torch==2.14rc1", False),
        (PYTORCH, "2.1", "torch==2.1.*", False),
        (PYTORCH, "2", "torch==2.*", False),
        (SKLEARN, "0.20", "scikit-learn==0.20.3", True),
        (SKLEARN, "0.2", "scikit-learn==0.2.*", False),
        (TENSORFLOW, "2.21", "tensorflow-cpu==2.21.0", True),
        (TENSORFLOW, "1.1", "tensorflow==1.1.*", False),
    ],
)
def test_numbers_may_be_whole_or_in_part(framework, version, package, tested):
    release = release_of(framework, version)
    assert (release.packages(use_gpu=False)[0], release.tested) == (package, tested)


@pytest.mark.parametrize(
    ("version", "pythons", "horovod"),
    [
        ("0.3", ("3.7", "3.6"), "0.18.1"),
        ("1.9.1", ("3.9", "3.8", "3.7", "3.6"), "0.28.1"),
        ("1.13.1", ("3.10", "3.9", "3.8", "3.7", "3.11"), "0.28.1"),
        ("2.0.1", ("3.11", "3.10", "3.9", "3.8"), "0.28.1"),
        ("3.0", ("3.13", "3.12", "3.11", "3.14"), "0.28.1"),
    ],
)
def test_other_releases_are_like_their_neighbours(version, pythons, horovod):
    release = release_of(PYTORCH, version)
    assert (release.pythons, release.era.horovod) == (pythons, horovod)


def test_what_is_a_number():
    for text in ("1", "1.4", "1.4.0", "2.13.0+cpu", "1.0.1.post2", "2.14.0rc1"):
        assert is_version(text)
    for text in ("", "newest", ">=1", "1.", "1.x", "1.4 ", "1.4; rm", "v1.4", "1.4\n"):
        assert not is_version(text)


@pytest.mark.parametrize(
    ("packages", "version"),
    [
        (["numpy", "torch==1.4.0"], "1.4.0"),
        (["Torch == 1.2.*"], "1.2"),
        (["torch==2.13.0+cpu"], "2.13.0+cpu"),
        (["torch"], None),
        (["torch>=1.4"], None),
        (["torch==1.4.0,!=1.4.1"], None),
        (["torch<2,==1.4.0"], None),
        (["torch[opt-einsum]==2.5.1; python_version > '3.8'"], "2.5.1"),
        (["ffmpeg=4", "pytorch=1.4"], "1.4"),
        (["pytorch::pytorch=1.4=py3.7_cuda10.1_0"], "1.4"),
        (["pytorch=1.4.*"], "1.4"),
        (["pytorch==1.4.0 py37_0"], "1.4.0"),
        (["pytorch"], None),
        (["pytorch>=1.4"], None),
        (["torchvision==0.5.0"], None),
        (["torch @ https://example.org/torch-1.4.0-cp37-none-linux_x86_64.whl"], None),
        (["--pre"], None),
    ],
)
def test_the_release_in_requirements(packages, version):
    release = release_in(PYTORCH, packages)
    assert (release and release.name) == version


def test_names_of_pip_and_conda():
    assert is_named(PYTORCH, ["PyTorch=1.4"])
    assert is_named(SKLEARN, ["conda-forge::scikit-learn"])
    assert not is_named(PYTORCH, ["torchvision", "pytorch-lightning"])


CHOICES = [
    ("1.4", "3.11", ["3.6", "3.7", "3.8", "3.11"], "3.7"),
    ("1.4", "3.8", ["3.6", "3.7", "3.8"], "3.8"),
    ("1.4", "3.11", ["3.8", "3.11"], "3.8"),
    ("2.13", "3.11", ["3.11", "3.13"], "3.11"),
    ("2.13", "3.9", ["3.9", "3.12", "3.13"], "3.13"),
]


@pytest.mark.parametrize(("version", "running", "found", "chosen"), CHOICES)
def test_which_python(version, running, found, chosen):
    assert choose_python(release_of(PYTORCH, version), running, found) == chosen


def test_no_python_that_fits():
    with pytest.raises(EnvironmentException) as refused:
        choose_python(release_of(TENSORFLOW, "1.12"), "3.11", ["3.11", "3.9"])
    assert refused.value.headline == "TensorFlow 1.12 needs Python 3.6, which this machine does not have"
    assert refused.value.cause == "Found: 3.9, 3.11."
    assert "uv python install 3.6" in refused.value.hint and "1.13" in refused.value.hint
