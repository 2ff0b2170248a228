"""What a snapshot holds, what it leaves out, and how it fails."""

import errno
import os
import socket
import stat

import pytest
from snapshot_folders import contents, fill, laid_out, taken
from tests.conftest import overwrite

from trainmaster.job.errors import SnapshotException
from trainmaster.snapshots import take_snapshot, tree, verify_snapshot


def test_files_folders_links_and_x_bits_come_back(source, workspace):
    fill(source, {"train.py": "print(1)", "pkg/mod.py": "x = 1", "run.sh": "#!/bin/sh"})
    (source / "run.sh").chmod(0o755)
    (source / "empty/inner").mkdir(parents=True)
    (source / "to-file").symlink_to("train.py")
    (source / "to-folder").symlink_to("pkg")
    (source / "dangling").symlink_to("/nowhere/at/all")
    (source / "pkg/loop").symlink_to("..")
    snapshot = take_snapshot(source, workspace)
    out = laid_out(workspace, snapshot)
    assert contents(out) == contents(source)
    assert os.access(out / "run.sh", os.X_OK)
    assert not os.access(out / "train.py", os.X_OK)
    assert (out / "train.py").stat().st_mode & stat.S_IWUSR
    assert (snapshot.file_count, snapshot.warnings) == (7, ())
    assert snapshot.byte_count == len("print(1)x = 1#!/bin/sh")
    verify_snapshot(workspace, snapshot.id)


def test_the_id_is_of_the_content_alone(source, workspace, tmp_path):
    fill(source, {"b.py": "2", "a.py": "1", "c/d": "3"})
    twin, other_workspace = tmp_path / "twin", tmp_path / "other"
    fill(twin, {"c/d": "3", "a.py": "1", "b.py": "2"})
    assert take_snapshot(source, workspace).id == take_snapshot(twin, other_workspace).id
    (twin / "a.py").write_text("one")
    assert take_snapshot(source, workspace).id != take_snapshot(twin, other_workspace).id


def test_an_empty_folder_is_a_snapshot(source, workspace):
    assert taken(source, workspace) == {}


def test_blobs_are_kept_once_and_read_only(source, workspace):
    fill(source, {"a": "same", "b": "same", "sub/c": "same"})
    take_snapshot(source, workspace)
    blobs = list((workspace / "blobs").glob("??/*"))
    assert len(blobs) == 1
    assert stat.S_IMODE(blobs[0].stat().st_mode) & 0o222 == 0
    assert list((workspace / "blobs/.partial").iterdir()) == []


def test_a_blob_of_the_wrong_size_is_written_again(source, workspace):
    fill(source, {"a": "content"})
    snapshot = take_snapshot(source, workspace)
    (blob,) = (workspace / "blobs").glob("??/*")
    blob.chmod(0o644)
    blob.write_text("con")
    with pytest.raises(SnapshotException, match="a is missing or wrong"):
        verify_snapshot(workspace, snapshot.id)
    (source / "twin").write_text("content")
    verify_snapshot(workspace, take_snapshot(source, workspace).id)


def test_large_files_are_copied_in_pieces(source, workspace):
    content = os.urandom(9 << 20)
    (source / "large").write_bytes(content)
    snapshot = take_snapshot(source, workspace)
    assert (laid_out(workspace, snapshot) / "large").read_bytes() == content
    os.utime(source / "large")
    assert take_snapshot(source, workspace).id == snapshot.id


def test_amlignore_rules_alone(source, workspace):
    fill(source, {".amlignore": "*.csv\n!keep.csv\n", ".gitignore": "*.py\n", "sub/.gitignore": "*\n"})
    fill(source, {"a.csv": "", "keep.csv": "", "a.py": "", "sub/b.py": "", "sub/c.csv": ""})
    assert set(taken(source, workspace)) == {
        ".amlignore", ".gitignore", "keep.csv", "a.py", "sub/b.py", "sub/.gitignore",
    }  # fmt: skip


def test_gitignore_rules_in_every_folder_without_amlignore(source, workspace):
    fill(source, {".gitignore": "*.csv\n", "sub/.gitignore": "!b.csv\n/local\n"})
    fill(source, {"a.csv": "", "b.csv": "", "sub/b.csv": "", "sub/local": "", "local": "", "sub/x/local": ""})
    assert set(taken(source, workspace)) == {
        ".gitignore", "local", "sub/.gitignore", "sub/b.csv", "sub/x/local",
    }  # fmt: skip


def test_environments_caches_and_repositories_are_left_out(source, workspace):
    fill(source, {"train.py": "", ".git/HEAD": "", "my-env/pyvenv.cfg": "", "my-env/bin/python": ""})
    fill(source, {"conda/conda-meta/history": "", "a/__pycache__/m.pyc": "", "a/m.py": "", "outputs/model": ""})
    fill(source, {"a/outputs/kept": "", "node_modules/x.js": ""})
    assert set(taken(source, workspace)) == {"train.py", "a/m.py", "a/outputs/kept"}


def test_an_environment_can_be_brought_back_by_name(source, workspace):
    fill(source, {".amlignore": "!my-env/\n!/outputs\n", "my-env/pyvenv.cfg": "", "outputs/model": "", "logs/x": ""})
    assert set(taken(source, workspace)) == {".amlignore", "my-env/pyvenv.cfg", "outputs/model"}


def test_a_source_that_is_itself_an_environment_is_taken(source, workspace):
    fill(source, {"pyvenv.cfg": "", "train.py": ""})
    assert set(taken(source, workspace)) == {"pyvenv.cfg", "train.py"}


def test_the_workspace_inside_the_source_is_left_out(source):
    fill(source, {"train.py": "", "work/space/workspace.json": "{}", "work/notes": ""})
    workspace = source / "work/space"
    first = take_snapshot(source, workspace)
    assert first.file_count == 2
    assert take_snapshot(source, workspace).id == first.id


def test_the_workspace_itself_is_refused(workspace):
    with pytest.raises(SnapshotException, match="is the workspace itself"):
        take_snapshot(workspace, workspace)


def test_sockets_and_pipes_are_left_out_with_a_word(source, workspace, monkeypatch):
    fill(source, {"train.py": ""})
    os.mkfifo(source / "pipe")
    monkeypatch.chdir(source)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("listener.sock")
        for _ in range(2):
            snapshot = take_snapshot(source, workspace)
            assert snapshot.file_count == 1
            assert [warning.split()[0] for warning in snapshot.warnings] == ["listener.sock", "pipe"]


def test_names_that_are_no_utf8_survive(source, workspace):
    (source / os.fsdecode(b"caf\xe9")).mkdir()
    (source / os.fsdecode(b"caf\xe9/na\xefve.py")).write_text("x")
    (source / "línk").symlink_to(os.fsdecode(b"caf\xe9"))
    (source / "a\nb\"c'").write_text("odd")
    snapshot = take_snapshot(source, workspace)
    assert contents(laid_out(workspace, snapshot)) == contents(source)
    assert take_snapshot(source, workspace) == snapshot


@pytest.mark.parametrize("path", ["secret", "sub", ".gitignore"])
def test_what_cannot_be_read_is_named(source, workspace, monkeypatch, path):
    fill(source, {"secret": "", "sub/file": "", ".gitignore": ""})
    # By way of the system call, since root may read everything.
    refuse(monkeypatch, os.fsencode(source / path))
    with pytest.raises(SnapshotException, match=rf"Cannot read .*/{path}\nPermission denied\n.*amlignore"):
        take_snapshot(source, workspace)
    assert list((workspace / "snapshots").glob("*.json")) == []


def refuse(monkeypatch, refused):
    real_open = os.open
    real_builtin = open

    def refusing(path, *arguments, **options):
        if path == refused:
            raise PermissionError(errno.EACCES, "Permission denied", path)
        opener = real_builtin if arguments[:1] == ("rb",) else real_open
        return opener(path, *arguments, **options)

    monkeypatch.setattr(os, "open", refusing)
    monkeypatch.setattr(tree, "open", refusing, raising=False)


def test_a_source_that_is_none_is_named(source, workspace):
    with pytest.raises(SnapshotException, match="does not exist"):
        take_snapshot(source / "missing", workspace)
    (source / "file").write_text("")
    with pytest.raises(SnapshotException, match="is not a folder"):
        take_snapshot(source / "file", workspace)


def test_a_linked_source_is_followed(source, workspace, tmp_path):
    fill(source, {"train.py": ""})
    (tmp_path / "link").symlink_to(source)
    assert take_snapshot(tmp_path / "link", workspace) == take_snapshot(source, workspace)


def assert_nothing_was_copied(workspace):
    assert list(workspace.rglob("*")) == []


def test_too_large_names_the_largest_before_anything_is_copied(source, workspace):
    fill(source, {f"data/{n:02}.bin": "x" * 1000 * (n + 1) for n in range(15)})
    fill(source, {"train.py": "x"})
    with pytest.raises(SnapshotException) as caught:
        take_snapshot(source, workspace, max_bytes=50_000)
    assert "the limit is" in caught.value.headline
    assert len(caught.value.cause.splitlines()) == 11
    assert "/data/14.bin" in caught.value.cause.splitlines()[1]
    assert "TRAINMASTER_SNAPSHOT_MAX_MB=1" in caught.value.hint
    assert ".amlignore" in caught.value.hint
    assert_nothing_was_copied(workspace)


def test_too_many_names_the_fullest_folders(source, workspace):
    fill(source, {f"a/deep/{n}": "" for n in range(40)} | {f"b/{n}": "" for n in range(5)})
    with pytest.raises(SnapshotException) as caught:
        take_snapshot(source, workspace, max_files=20)
    assert "has 45 files; the limit is 20" in caught.value.headline
    shown = [line.split()[-1] for line in caught.value.cause.splitlines()[1:]]
    assert shown == ["/a/deep/", "/b/"]
    assert_nothing_was_copied(workspace)


def test_many_small_files_too_large_together_are_shown_by_folder(source, workspace):
    fill(source, {f"images/{n}": "x" * 100 for n in range(100)})
    with pytest.raises(SnapshotException) as caught:
        take_snapshot(source, workspace, max_bytes=5000)
    assert caught.value.cause.splitlines()[1].endswith("100 files  /images/")


def test_the_line_in_the_hint_helps(source, workspace):
    fill(source, {f"images/{n}": "x" * 100 for n in range(100)} | {"train.py": ""})
    with pytest.raises(SnapshotException) as caught:
        take_snapshot(source, workspace, max_bytes=5000)
    line = caught.value.hint.splitlines()[0].rpartition(" ")[2]
    (source / ".amlignore").write_text(line)
    assert take_snapshot(source, workspace, max_bytes=5000).file_count == 2


def test_the_environment_has_the_last_word_on_limits(source, workspace, monkeypatch):
    fill(source, {str(n): "x" * 10 for n in range(5)})
    monkeypatch.setenv("AML_SNAPSHOT_NO_FILE_LIMIT", "1")
    assert take_snapshot(source, workspace, max_files=2).file_count == 5
    monkeypatch.delenv("AML_SNAPSHOT_NO_FILE_LIMIT")
    with pytest.raises(SnapshotException):
        take_snapshot(source, workspace, max_files=2)
    monkeypatch.setenv("TRAINMASTER_SNAPSHOT_MAX_FILES", "5")
    assert take_snapshot(source, workspace, max_files=2).file_count == 5
    monkeypatch.setenv("TRAINMASTER_SNAPSHOT_MAX_MB", "0.00001")
    with pytest.raises(SnapshotException):
        take_snapshot(source, workspace)
    monkeypatch.setenv("TRAINMASTER_SNAPSHOT_MAX_MB", "much")
    with pytest.raises(SnapshotException, match="TRAINMASTER_SNAPSHOT_MAX_MB must be a number"):
        take_snapshot(source, workspace)


def test_over_25_mb_is_worth_a_word(source, workspace):
    with open(source / "large", "wb") as file:
        file.truncate(26 << 20)
    (warning,) = take_snapshot(source, workspace).warnings
    assert "26.0 MB" in warning
    assert take_snapshot(source, workspace).warnings == (warning,)


def test_verify_names_what_is_missing(source, workspace):
    fill(source, {"train.py": "x"})
    snapshot = take_snapshot(source, workspace)
    with pytest.raises(SnapshotException, match="is not in this workspace"):
        verify_snapshot(workspace, "0" * 64)
    manifest = workspace / "snapshots" / f"{snapshot.id}.json"
    overwrite(manifest, manifest.read_bytes().replace(b"train.py", b"other.py"))
    with pytest.raises(SnapshotException, match=r"manifest .* is damaged"):
        verify_snapshot(workspace, snapshot.id)
