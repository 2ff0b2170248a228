"""Datasets as inputs and outputs of runs: names, modes, bindings; files of this machine."""

import os

import pytest

from trainmaster.job.errors import UserErrorException
from trainmaster.job.script.datasets import Dataset as JobDatasets
from trainmaster.job.script.datasets import FileDataset as JobFileDataset
from trainmaster.sdk.datasets import Dataset, DatasetConsumptionConfig, OutputFileDatasetConfig
from trainmaster.sdk.estimators.estimator import Estimator


@pytest.fixture
def dataset(tmp_path):
    (tmp_path / "set/deep").mkdir(parents=True)
    (tmp_path / "set/a.txt").write_text("a")
    (tmp_path / "set/deep/b.txt").write_text("b")
    return Dataset.File.from_files(str(tmp_path / "set"))


def test_words_and_bindings(dataset, tmp_path):
    (tmp_path / "train.py").write_text("")
    out = OutputFileDatasetConfig("out")
    table = Dataset.Tabular.from_delimited_files(str(tmp_path / "set/a.txt"))
    estimator = Estimator(
        str(tmp_path),
        entry_script="train.py",
        compute_target="local",
        user_managed=True,
        script_params={"--d": dataset.as_named_input("d").as_mount(), "--t": table.as_named_input("t"), "--o": out},
    )
    spec = estimator.compile({})
    assert spec.arguments == (
        "--d", "$AZUREML_DATAREFERENCE_d", "--t", "$TRAINMASTER_DATASET_t", "--o", "$AZUREML_DATAREFERENCE_out"
    )  # fmt: skip
    assert [(each.name, each.mode) for each in spec.dataset_inputs] == [("d", "mount"), ("t", "direct")]
    assert spec.dataset_inputs[0].dataset_id == dataset.id
    assert (spec.dataset_outputs[0].path, spec.dataset_outputs[0].mode) == ("dataset/{run-id}/{output-name}", "mount")


def test_the_same_dataset_has_the_same_id(dataset, tmp_path):
    assert dataset.id == Dataset.File.from_files(str(tmp_path / "set")).id
    assert dataset.id != dataset.take(1).id
    assert (dataset.name, dataset.version) == (None, None)


@pytest.mark.parametrize("name", ["", "with space", "1st", "a-b", None, 7])
def test_names_that_no_variable_can_have(dataset, name):
    with pytest.raises(UserErrorException, match="cannot be the name of a dataset input"):
        dataset.as_named_input(name)


def test_doubtful_names_warn(dataset):
    with pytest.warns(UserWarning, match="'path' is a doubtful name"):
        dataset.as_named_input("path")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda d: DatasetConsumptionConfig("d", d, "stream"), "unknown mode 'stream'"),
        (lambda d: DatasetConsumptionConfig("d", "no dataset"), "needs a dataset, not str"),
        (lambda d: d.as_mount("../up"), "leaves the working folder"),
        (lambda d: OutputFileDatasetConfig("o", destination="folder"), "destination must be"),
        (lambda d: OutputFileDatasetConfig("o").as_upload(source_globs=[1]), "source_globs"),
        (lambda d: Dataset.File.upload_directory("x", "y"), "target must be"),
        (lambda d: Dataset.File.from_files("/no/such/folder"), "there is nothing at /no/such/folder"),
    ],
)
def test_what_is_refused(dataset, make, message):
    with pytest.raises(UserErrorException, match=message):
        make(dataset)


def test_a_bare_dataset_does_not_say_how_it_is_used(dataset, tmp_path):
    with pytest.raises(UserErrorException, match="does not say how it is used"):
        Estimator(str(tmp_path), entry_script="x.py", compute_target="local", script_params={"--d": dataset})


def test_there_is_no_hdfs(dataset):
    with pytest.raises(NotImplementedError, match="as_mount"):
        dataset.as_hdfs()


def test_download(dataset, tmp_path):
    paths = dataset.download(tmp_path / "copy")
    assert paths == [str(tmp_path / "copy/a.txt"), str(tmp_path / "copy/deep/b.txt")]
    assert not os.path.islink(paths[0])
    with pytest.raises(UserErrorException, match=r"a\.txt already exists"):
        dataset.download(tmp_path / "copy")
    assert dataset.take(1).download(tmp_path / "copy", overwrite=True) == paths[:1]
    assert os.path.isfile(dataset.take(1).download()[0])
    with pytest.raises(UserErrorException, match="the dataset has no files"):
        dataset.skip(2).download(tmp_path / "none")
    assert dataset.skip(2).download(tmp_path / "none", ignore_not_found=True) == []


def test_mount(dataset, tmp_path):
    with dataset.mount() as mounted:
        assert os.path.realpath(f"{mounted.mount_point}/deep/b.txt") == str(tmp_path / "set/deep/b.txt")
    assert not os.path.exists(mounted.mount_point)
    (tmp_path / "point").mkdir()
    context = dataset.mount(tmp_path / "point")
    context.start()
    assert sorted(os.listdir(tmp_path / "point")) == ["a.txt", "deep"]
    context.stop()
    assert os.listdir(tmp_path / "point") == []
    assert (tmp_path / "set/a.txt").read_text() == "a"
    with pytest.raises(UserErrorException, match="not an empty folder"):
        dataset.mount(tmp_path / "set").start()


def test_what_a_job_and_a_program_see_of_a_dataset(tmp_path):
    (tmp_path / "a.txt").write_text("a")
    for factory in (Dataset.File, JobDatasets.File):
        dataset = factory.from_files(str(tmp_path)).take(1)
        assert (dataset.name, dataset.version, dataset.description, dataset.tags) == (None, None, None, None)
        assert repr(dataset).startswith("FileDataset(id=")
    facts = {"name": "n", "version": 2, "tags": {"a": "b"}, "id": "d1", "definition": dataset._describe()}
    dataset = JobFileDataset(facts)
    assert (dataset.name, dataset.version, dataset.description, dataset.tags) == ("n", 2, None, {"a": "b"})
    assert repr(dataset) == "FileDataset(name='n', version=2)"
