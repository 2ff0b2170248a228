"""CondaDependencies: v1's rules for packages, and conda files."""

from __future__ import annotations

import pytest

from trainmaster.environments import pythons
from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.environment.conda_dependencies import CondaDependencies, package_name
from trainmaster.sdk.v1 import conda_dependencies as of_v1


def test_create():
    packages = CondaDependencies.create("https://x.example", ["numpy"], ["scipy"], "3.11.4")
    assert list(packages.pip_packages) == ["numpy"]
    assert list(packages.conda_packages) == ["python=3.11.4", "scipy"]
    assert list(packages.pip_options) == ["--index-url https://x.example"]
    assert packages.get_python_version() == "3.11.4"


def test_empty_by_default():
    packages = CondaDependencies()
    assert [*packages.pip_packages, *packages.conda_packages, *packages.conda_channels] == []


def test_properties_are_iterators():
    packages = CondaDependencies.create(pip_packages=["a", "b"])
    assert next(packages.pip_packages) == "a"


def test_the_same_package_is_replaced():
    packages = CondaDependencies.create(pip_packages=["Scikit_Learn==1.0", "numpy"])
    packages.add_pip_package("scikit-learn[extra]>=1.2")
    assert list(packages.pip_packages) == ["scikit-learn[extra]>=1.2", "numpy"]


def test_remove():
    packages = CondaDependencies.create(pip_packages=["numpy==1.0"], conda_packages=["scipy=1", "pip"])
    packages.remove_pip_package("NumPy")
    packages.remove_pip_package("unknown")
    packages.remove_conda_package("scipy")
    packages.remove_conda_package("pip")
    assert (list(packages.pip_packages), list(packages.conda_packages)) == ([], ["scipy=1"])


@pytest.mark.parametrize("remove", ["remove_pip_package", "remove_conda_package", "remove_channel"])
def test_only_texts_can_be_removed(remove):
    with pytest.raises(UserErrorException, match="must be a string"):
        getattr(CondaDependencies(), remove)(None)


def test_python_is_an_entry_of_its_own():
    packages = CondaDependencies()
    packages.add_conda_package("python=3.10")
    packages.add_conda_package("conda-forge::python==3.11.2")
    packages.add_conda_package("python-dateutil")
    assert list(packages.conda_packages) == ["python=3.11.2", "python-dateutil"]
    with pytest.raises(UserErrorException, match="python cannot be removed"):
        packages.remove_conda_package("python=3.11.2")


def test_options():
    packages = CondaDependencies()
    packages.set_pip_option("--index-url https://a.example")
    packages.set_pip_option("--index-url https://b.example")
    packages.set_pip_option("--extra-index-url https://c.example")
    packages.set_pip_option("--extra-index-url https://d.example")
    packages.remove_pip_option("--index-url")
    assert list(packages.pip_options) == [f"--extra-index-url https://{x}.example" for x in "cd"]


def test_channels():
    packages = CondaDependencies()
    packages.add_channel("conda-forge")
    packages.add_channel("conda-forge")
    packages.add_channel("pytorch")
    packages.remove_channel("pytorch")
    assert list(packages.conda_channels) == ["conda-forge"]


@pytest.mark.parametrize(
    "call",
    [
        lambda: CondaDependencies("no.yml"),
        lambda: CondaDependencies(""),
        lambda: CondaDependencies.create(pip_packages="numpy"),
        lambda: CondaDependencies.create(conda_packages=3),
        lambda: CondaDependencies.create(python_version="three"),
        lambda: CondaDependencies().add_pip_package("--pre"),
        lambda: CondaDependencies().add_pip_package(None),
        lambda: CondaDependencies().add_pip_package("a\nb"),
        lambda: CondaDependencies().set_pip_option("numpy"),
    ],
)
def test_mistakes(call):
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


FILE = """\
name: mine
channels:
  - conda-forge
  - https://x.example/channel
dependencies:
  - python=3.7.4
  - numpy >=1.16
  - pip
  - pip:
    - --extra-index-url https://y.example/simple
    - azureml-defaults~=1.0
    - torch==1.4.0
variables:
  SEED: 1
  DEBUG: true
"""


@pytest.fixture
def conda_file(tmp_path):
    path = tmp_path / "conda.yml"
    path.write_text(FILE)
    return path


def test_a_conda_file_is_read(conda_file):
    packages = CondaDependencies(conda_file)
    assert packages.get_python_version() == "3.7.4"
    assert list(packages.conda_channels) == ["conda-forge", "https://x.example/channel"]
    assert list(packages.conda_packages) == ["python=3.7.4", "numpy >=1.16", "pip"]
    assert list(packages.pip_options) == ["--extra-index-url https://y.example/simple"]
    assert list(packages.pip_packages) == ["azureml-defaults~=1.0", "torch==1.4.0"]
    assert packages.variables == {"SEED": "1", "DEBUG": "true"}


def test_what_is_written_is_read_again(conda_file, tmp_path):
    first = CondaDependencies(conda_file)
    second = CondaDependencies(first.save(tmp_path / "new" / "copy.yml"))
    assert second.as_dict() == first.as_dict()
    assert second.serialize_to_string() == first.serialize_to_string()


def test_as_dict():
    packages = CondaDependencies.create(pip_packages=["a"], conda_packages=["b"], python_version="3.8")
    assert packages.as_dict() == {
        "name": "project_environment",
        "dependencies": ["python=3.8", "b", {"pip": ["a"]}],
    }


def test_the_text():
    packages = CondaDependencies.create(pip_packages=["a==1"], python_version="3.8")
    packages.add_channel("conda-forge")
    packages.set_pip_option("--pre")
    assert packages.serialize_to_string() == (
        "name: project_environment\nchannels:\n- conda-forge\n"
        "dependencies:\n- python=3.8\n- pip:\n  - --pre\n  - a==1\n"
    )


def test_saving_under_v1s_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    packages = CondaDependencies.create(pip_packages=["a"])
    assert packages.save_to_file(".", "mine.yml") == "mine.yml"
    assert packages.save_to_file(base_directory=str(tmp_path)) == "conda_dependencies.yml"
    (tmp_path / "conda_dependencies.yml").unlink()
    packages.save()
    assert (tmp_path / "conda_dependencies.yml").read_text() == (tmp_path / "mine.yml").read_text()


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UserErrorException, match="cannot be written"):
        CondaDependencies().save(tmp_path / "file" / "conda.yml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dependencies: [a\n", "not valid YAML, line 2"),
        ("name: x\n  channels: y\n", "not valid YAML, line 2"),
        ("name: !!python/object/apply:os.system [ls]\n", "not valid YAML, line 1"),
        ("\x07", "not valid YAML"),
        ("[" * 1500, "not valid YAML"),
        ("dependencies:\n- a\ndependencies:\n- b\n", "line 3: duplicate key 'dependencies'"),
        ("name: a\n---\nname: b\n", "not valid YAML, line 2"),
        ("- a\n", "not a conda environment"),
        ("just text", "not a conda environment"),
        ("dependencies: numpy\n", "'dependencies' of .* must be a list, not a text"),
        ("dependencies:\n- 3.6\n", "not a single line of text: 3.6"),
        ("dependencies:\n- npm: [a]\n", "has the unknown section npm"),
        ("dependencies:\n- pip: a\n", "'pip' of .* must be a list"),
        ("channels:\n- {a: 1}\n", "'channels' of .* not a single line of text"),
        ("packages:\n- a\nother: 1\n", "keys that conda does not know: other, packages"),
        ("variables: [a]\n", "'variables' of"),
    ],
)
def test_a_file_that_is_wrong(tmp_path, text, message):
    path = tmp_path / "conda.yml"
    path.write_text(text)
    with pytest.raises(UserErrorException, match=message) as caught:
        CondaDependencies(str(path))
    assert "conda.yml" in caught.value.headline


def test_a_file_that_is_no_text(tmp_path):
    path = tmp_path / "conda.yml"
    path.write_bytes(b"name: \xff\xfe")
    with pytest.raises(UserErrorException, match="cannot be read"):
        CondaDependencies(path)


def test_an_empty_file_is_an_empty_environment(tmp_path):
    (tmp_path / "conda.yml").write_text("# nothing\n")
    assert CondaDependencies(tmp_path / "conda.yml").as_dict() == CondaDependencies().as_dict()


@pytest.mark.parametrize("text", ["python=3.7", "python==3.7", "python 3.7", "defaults::python=3.7.*", "python = 3.7"])
def test_ways_to_write_the_python(text):
    packages = CondaDependencies()
    packages.add_conda_package(text)
    assert packages.get_python_version() == "3.7"


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (["numpy>=1.20", "pandas", "NumPy<2"], ["numpy>=1.20,<2", "pandas"]),
        (["a[x]>1", "a[y]"], ["a[x,y]>1"]),
        (["a==1", "a==1"], ["a==1"]),
        (["a; os_name == 'nt'", "a>1"], ['a; os_name == "nt"', "a>1"]),
        (["git+https://x.example/a.git", "git+https://x.example/a.git"], ["git+https://x.example/a.git"]),
        ([], []),
    ],
)
def test_merging(given, wanted):
    assert CondaDependencies.merge_requirements(given) == wanted


@pytest.mark.parametrize(
    ("core", "version", "package"),
    [
        ("cpu", None, "tensorflow"),
        ("CPU", "1.13.1", "tensorflow==1.13.1"),
        ("gpu", "1.13.1", "tensorflow-gpu==1.13.1"),
        ("gpu", "2.15.0", "tensorflow[and-cuda]==2.15.0"),
        ("gpu", None, "tensorflow[and-cuda]"),
    ],
)
def test_tensorflow_from_pip(core, version, package):
    packages = CondaDependencies.create(pip_packages=["tensorflow-gpu==1.0", "numpy"])
    packages.add_tensorflow_pip_package(core, version)
    assert list(packages.pip_packages) == ["numpy", package]


def test_tensorflow_from_conda():
    packages = CondaDependencies.create(conda_packages=["tensorflow=1.0"])
    packages.add_tensorflow_conda_package("gpu", "1.13.1")
    assert list(packages.conda_packages) == ["tensorflow-gpu=1.13.1"]
    packages.add_tensorflow_conda_package()
    assert list(packages.conda_packages) == ["tensorflow"]


@pytest.fixture
def machine(monkeypatch):
    found = {f"3.{minor}": f"/usr/bin/python3.{minor}" for minor in range(6, 14)}
    monkeypatch.setattr(pythons, "all_pythons", lambda: found)
    return found


def test_tensorflow_by_the_names_of_v1(machine):
    packages = of_v1.CondaDependencies.create(pip_packages=["numpy==1.16.0"])
    packages.add_tensorflow_pip_package()
    assert list(packages.pip_packages) == [
        "numpy==1.16.0", "tensorflow==1.13.1", "protobuf<3.21", "h5py<3", "gast<0.3"
    ]  # fmt: skip
    beside_numpy = of_v1.CondaDependencies.create(pip_packages=["numpy"])
    beside_numpy.add_tensorflow_pip_package()
    assert list(beside_numpy.pip_packages)[:2] == ["numpy<1.17", "tensorflow==1.13.1"]
    packages.add_tensorflow_pip_package("gpu")
    assert "tensorflow-gpu==1.13.1" in packages.pip_packages and "tensorflow==1.13.1" not in packages.pip_packages
    packages.add_tensorflow_conda_package()
    assert list(packages.conda_packages) == ["tensorflow=1.13.1"]
    packages.add_tensorflow_conda_package(version="2.3.0")
    assert list(packages.conda_packages) == ["tensorflow=2.3.0"]


def test_tensorflow_by_the_names_of_v1_without_a_python_for_it(machine):
    for version in ("3.6", "3.7"):
        del machine[version]
    packages = of_v1.CondaDependencies()
    with pytest.warns(UserWarning, match=r"TensorFlow 2\.21 is used instead of v1's 1\.13: .*'pyenv install 3\.7'"):
        packages.add_tensorflow_pip_package()
    assert list(packages.pip_packages) == ["tensorflow-cpu==2.21.0"]
    packages = of_v1.CondaDependencies.create(python_version="3.9")
    with pytest.warns(UserWarning, match=r"the newest TensorFlow is used.* does not run on Python 3\.9"):
        packages.add_tensorflow_conda_package()
    assert list(packages.conda_packages) == ["python=3.9", "tensorflow"]


@pytest.mark.parametrize(("core", "version"), [("tpu", None), (None, None), ("cpu", 2), ("cpu", ">=2")])
def test_tensorflow_that_cannot_be(core, version):
    with pytest.raises(UserErrorException):
        CondaDependencies().add_tensorflow_pip_package(core, version)


def test_the_rest_of_v1():
    packages = CondaDependencies()
    packages.add_cntk_package("gpu")
    assert list(packages.pip_packages) == ["cntk-gpu==2.7"]
    assert packages.get_default_number_of_packages() == (0, 0)
    assert CondaDependencies.sdk_origin_url().startswith("https://")
