"""Working folders from snapshots: complete or absent, and never anything outside."""

import json
import os
import subprocess
import sys

import pytest
from snapshot_folders import contents, fill
from tests.conftest import overwrite

from trainmaster.job.agent import layout
from trainmaster.job.agent.layout import lay_out
from trainmaster.job.errors import SnapshotException
from trainmaster.snapshots import take_snapshot


@pytest.fixture
def manifest(source, workspace):
    """Path of the manifest of a small snapshot."""
    fill(source, {"train.py": "print(1)", "pkg/large": "x" * 200_000})
    snapshot = take_snapshot(source, workspace)
    return workspace / "snapshots" / f"{snapshot.id}.json"


def assert_nothing_is_left(destination):
    assert [path.name for path in destination.parent.iterdir() if path.name.startswith(destination.name)] == []


@pytest.mark.parametrize("way", ["all", "no clone", "no clone and no sendfile"])
def test_contents_are_the_same_whichever_way_they_are_copied(source, manifest, workspace, tmp_path, monkeypatch, way):
    if "no clone" in way:
        monkeypatch.setattr(layout, "_clone", lambda source, copy: False)
    if "sendfile" in way:
        monkeypatch.setattr(layout, "_send", lambda source, copy, size: False)
    lay_out(str(manifest), str(workspace / "blobs"), str(tmp_path / "code"))
    assert contents(tmp_path / "code") == contents(source)
    with open(tmp_path / "code/train.py", "a") as file:
        file.write("# the user's to change")
    assert take_snapshot(source, workspace).id == manifest.stem


def test_an_empty_folder_in_its_place_is_no_hindrance(manifest, workspace, tmp_path):
    (tmp_path / "code").mkdir()
    lay_out(manifest, workspace / "blobs", tmp_path / "code")
    assert (tmp_path / "code/train.py").exists()


def test_a_folder_that_is_there_is_not_touched(manifest, workspace, tmp_path):
    fill(tmp_path, {"code/mine": "x"})
    with pytest.raises(SnapshotException, match="already exists"):
        lay_out(manifest, workspace / "blobs", tmp_path / "code")
    assert contents(tmp_path / "code") == {"mine": "x"}
    assert [path.name for path in tmp_path.iterdir() if "partial" in path.name] == []


@pytest.mark.parametrize("damage", ["missing", "shorter"])
def test_a_broken_blob_is_named(manifest, workspace, tmp_path, damage):
    digest = next(file["digest"] for file in json.loads(manifest.read_text())["files"] if file["path"] == "train.py")
    blob = workspace / "blobs" / digest[:2] / digest
    blob.unlink()
    if damage == "shorter":
        blob.write_text("print")
    with pytest.raises(SnapshotException) as caught:
        lay_out(manifest, workspace / "blobs", tmp_path / "code")
    assert "train.py" in caught.value.headline
    assert digest in caught.value.cause
    assert "submit the run again" in caught.value.hint
    assert_nothing_is_left(tmp_path / "code")


def edited(manifest, **changes):
    data = json.loads(manifest.read_text())
    data.update(changes)
    overwrite(manifest, json.dumps(data).encode())
    return data


@pytest.mark.parametrize(
    "path", ["/etc/evil", "../evil", "a/../../evil", "a//b", "", ".", "a/.", "a\0b", "pkg/../../evil", 7, None]
)
@pytest.mark.parametrize("kind", ["files", "links", "folders"])
def test_paths_that_lead_outside_are_refused(manifest, workspace, tmp_path, path, kind):
    file = json.loads(manifest.read_text())["files"][0]
    entries = {"files": {**file, "path": path}, "links": {"path": path, "target": "x"}, "folders": path}
    edited(manifest, **{kind: [entries[kind]]})
    with pytest.raises(SnapshotException, match="is damaged"):
        lay_out(manifest, workspace / "blobs", tmp_path / "code")
    assert_nothing_is_left(tmp_path / "code")
    assert not (tmp_path / "evil").exists()


def test_no_file_is_written_through_a_link(manifest, workspace, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    edited(manifest, links=[{"path": "pkg", "target": str(outside)}])
    with pytest.raises(SnapshotException):
        lay_out(manifest, workspace / "blobs", tmp_path / "code")
    assert list(outside.iterdir()) == []
    assert_nothing_is_left(tmp_path / "code")


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"files": 3, "links": [], "folders": []}', "\xe9"])
def test_a_damaged_manifest_is_named(manifest, workspace, tmp_path, text):
    overwrite(manifest, text.encode("latin-1"))
    with pytest.raises(SnapshotException, match=r"manifest .* is damaged"):
        lay_out(manifest, workspace / "blobs", tmp_path / "code")
    assert_nothing_is_left(tmp_path / "code")


def test_a_digest_that_is_a_path_is_refused(manifest, workspace, tmp_path):
    data = json.loads(manifest.read_text())
    edited(manifest, files=[{**data["files"][0], "digest": "../../etc/passwd"}])
    with pytest.raises(SnapshotException, match="damaged"):
        lay_out(manifest, workspace / "blobs", tmp_path / "code")


def test_a_missing_manifest_is_named(workspace, tmp_path):
    with pytest.raises(SnapshotException, match="cannot be read"):
        lay_out(workspace / "snapshots/none.json", workspace / "blobs", tmp_path / "code")


def test_killed_in_the_middle_leaves_no_working_folder(manifest, workspace, tmp_path):
    program = (
        "import os, sys; from trainmaster.job.agent import layout\n"
        "layout._copy_content = lambda *_: os.kill(os.getpid(), 9)\n"
        "layout.lay_out(*sys.argv[1:])"
    )
    command = [sys.executable, "-c", program, str(manifest), str(workspace / "blobs"), str(tmp_path / "code")]
    assert subprocess.run(command, check=False).returncode == -9
    assert not (tmp_path / "code").exists()
    lay_out(manifest, workspace / "blobs", tmp_path / "code")
    assert (tmp_path / "code/train.py").read_text() == "print(1)"


def test_the_users_mask_holds(source, workspace, tmp_path):
    fill(source, {"tool": "x"})
    (source / "tool").chmod(0o711)
    snapshot = take_snapshot(source, workspace)
    before = os.umask(0o027)
    try:
        lay_out(workspace / "snapshots" / f"{snapshot.id}.json", workspace / "blobs", tmp_path / "code")
    finally:
        os.umask(before)
    assert (tmp_path / "code/tool").stat().st_mode & 0o777 == 0o750
