"""Snapshots as zip files."""

import os
import stat
import zipfile

import pytest
from snapshot_folders import fill

from trainmaster.job.errors import SnapshotException
from trainmaster.snapshots import take_snapshot, write_archive


def test_everything_is_in_the_archive(source, workspace, tmp_path):
    fill(source, {"train.py": "print(1)", "run.sh": "#!/bin/sh", "pkg/é.py": "x"})
    (source / "run.sh").chmod(0o755)
    (source / "empty").mkdir()
    (source / "link").symlink_to("pkg")
    (source / os.fsdecode(b"b\xff")).write_text("odd")
    snapshot = take_snapshot(source, workspace)
    path = write_archive(workspace, snapshot.id, tmp_path / "new/folder")
    assert path == tmp_path / "new/folder" / f"{snapshot.id}.zip"
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        modes = {info.filename: info.external_attr >> 16 for info in archive.infolist()}
        assert archive.read("pkg/é.py") == b"x"
        assert archive.read("link") == b"pkg"
    assert set(modes) == {"train.py", "run.sh", "pkg/é.py", "empty/", "link", "b\\xff"}
    assert stat.S_ISLNK(modes["link"])
    assert modes["run.sh"] & 0o111
    assert not modes["train.py"] & 0o111
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_a_name_that_ends_with_zip_is_the_archive(source, workspace, tmp_path):
    fill(source, {"a": "1"})
    snapshot = take_snapshot(source, workspace)
    for _ in range(2):
        assert write_archive(workspace, snapshot.id, tmp_path / "mine.zip") == tmp_path / "mine.zip"
    assert zipfile.ZipFile(tmp_path / "mine.zip").namelist() == ["a"]


@pytest.mark.parametrize("damage", ["missing", "other content"])
def test_a_damaged_snapshot_leaves_no_archive(source, workspace, tmp_path, damage):
    fill(source, {"a": "1"})
    snapshot = take_snapshot(source, workspace)
    (blob,) = (workspace / "blobs").glob("??/*")
    blob.unlink()
    if damage == "other content":
        blob.write_text("2")
    with pytest.raises(SnapshotException, match="content of a is missing or wrong"):
        write_archive(workspace, snapshot.id, tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_a_place_that_cannot_be_written_is_named(source, workspace, tmp_path):
    fill(source, {"a": "1"})
    snapshot = take_snapshot(source, workspace)
    (tmp_path / "file").write_text("")
    with pytest.raises(SnapshotException, match="Cannot write"):
        write_archive(workspace, snapshot.id, tmp_path / "file")
    with pytest.raises(SnapshotException, match="is not in this workspace"):
        write_archive(workspace, "0" * 64, tmp_path)
