"""Which files a model is made of."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trainmaster.job.errors import ModelPathNotFoundException, WebserviceException
from trainmaster.shared.folders import RunFolder
from trainmaster.snapshots.model_sources import choose, files_at, files_of_run

NAMES = [
    "azureml-logs/70_driver_log.txt",
    "outputs/ckpt-1.data",
    "outputs/ckpt-1.index",
    "outputs/model.pkl",
    "outputs/model/graph",
    "outputs/model/variables/v",
    "top.bin",
]


@pytest.mark.parametrize("path", [None, 5])
def test_what_is_no_path_is_told(path):
    with pytest.raises(ModelPathNotFoundException, match="is no path"):
        files_at(path)


@pytest.mark.parametrize(
    ("path", "entry", "chosen"),
    [
        ("outputs/model.pkl", "model.pkl", {"model.pkl": "outputs/model.pkl"}),
        ("./outputs/model.pkl", "model.pkl", {"model.pkl": "outputs/model.pkl"}),
        ("outputs//model.pkl", "model.pkl", {"model.pkl": "outputs/model.pkl"}),
        ("top.bin", "top.bin", {"top.bin": "top.bin"}),
        (
            "outputs/model",
            "model",
            {"model/graph": "outputs/model/graph", "model/variables/v": "outputs/model/variables/v"},
        ),
        ("outputs/model/variables/", "variables", {"variables/v": "outputs/model/variables/v"}),
        (
            "outputs/ckpt-1",
            "outputs",
            {"outputs/ckpt-1.data": "outputs/ckpt-1.data", "outputs/ckpt-1.index": "outputs/ckpt-1.index"},
        ),
        ("top", "model", {"model/top.bin": "top.bin"}),
        ("azureml-logs", "azureml-logs", {"azureml-logs/70_driver_log.txt": "azureml-logs/70_driver_log.txt"}),
    ],
)
def test_files_of_a_run(path, entry, chosen):
    assert choose(NAMES, path, "r") == (entry, chosen)


@pytest.mark.parametrize("path", ["nothing", "", ".", "/", "..", "../outputs", "outputs/mod/", "/outputs/model.pkl"])
def test_a_path_that_a_run_does_not_have_is_told_with_those_it_has(path):
    with pytest.raises(ModelPathNotFoundException, match=r"outputs/model\.pkl"):
        choose(NAMES, path, "r")


def test_links_out_of_a_run_are_no_files_of_it(tmp_path):
    folder = RunFolder(tmp_path / "run")
    (folder.files / "outputs").mkdir(parents=True)
    (tmp_path / "secret").write_text("secret")
    (folder.files / "outputs" / "secret").symlink_to(tmp_path / "secret")
    with pytest.raises(ModelPathNotFoundException, match="none"):
        files_of_run(folder, "outputs/secret")


def test_a_folder_of_this_machine(tmp_path, monkeypatch):
    (tmp_path / "net" / "a").mkdir(parents=True)
    (tmp_path / "net" / "a" / "b").write_text("")
    expected = {"net/a/b": tmp_path / "net" / "a" / "b"}
    monkeypatch.chdir(tmp_path / "net" / "a")
    for path in ("..", tmp_path / "net", f"{tmp_path}/net/", "../../net/."):
        found = files_at(path)
        assert (found.entry, found.files) == ("net", expected)


def test_parts_of_a_folder(tmp_path, monkeypatch):
    for name in ("a/1", "a/2", "b", "c"):
        (tmp_path / "net" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "net" / name).write_text("")
    monkeypatch.chdir(tmp_path)
    assert sorted(files_at("net", ["a", "b"]).files) == ["net/a/1", "net/a/2", "net/b"]
    assert sorted(files_at("net", ["net/a/1"]).files) == ["net/a/1"]
    with pytest.raises(ModelPathNotFoundException, match=r"'d' is not in .*\n.*a, b, c"):
        files_at("net", ["d"])
    (tmp_path / "outside").write_text("")
    with pytest.raises(ModelPathNotFoundException, match="is not in"):
        files_at("net", ["../outside"])


def test_what_is_not_there_is_told_with_what_is(tmp_path):
    (tmp_path / "model.onnx").write_text("")
    with pytest.raises(ModelPathNotFoundException, match=r"model\.onnx"):
        files_at(tmp_path / "model.pkl")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelPathNotFoundException, match="has no files"):
        files_at(tmp_path / "empty")


@pytest.mark.parametrize("path", ["a\0b", "x" * 5000, ""])
def test_garbage_as_a_path(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelPathNotFoundException):
        files_at(path or "nothing")


def test_an_entry_has_a_name_that_can_be_stored(tmp_path):
    path = os.fsencode(tmp_path) + b"/\xff"
    with open(path, "w"):
        pass
    with pytest.raises(WebserviceException, match="cannot be stored"):
        files_at(Path(os.fsdecode(path)))
