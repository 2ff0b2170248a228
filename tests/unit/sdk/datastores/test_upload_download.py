import builtins
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trainmaster.job.errors import DatastoreException, UserErrorException
from trainmaster.job.script.store_folder import FolderStorage
from trainmaster.sdk.datastores import Datastore

FILES = {"a.txt": b"a", "sub/b.bin": b"\0" * 3000, "sub/deep/c": b""}


@pytest.fixture(params=["folder", "memory", "distant"])
def any_store(request, store):
    return store if request.param == "folder" else request.getfixturevalue(request.param)


def test_there_and_back(any_store, tree, tmp_path, contents, capsys):
    reference = any_store.upload(tree(FILES), target_path="data/set")
    assert reference.path_on_datastore == "data/set"
    assert reference.mode == "mount"
    assert "Uploaded 3 files (3.0 KB) to datastore" in capsys.readouterr().out
    assert any_store.download(tmp_path / "back", prefix="data") == 3
    assert contents(tmp_path / "back" / "data" / "set") == FILES
    assert "Downloaded sub" not in capsys.readouterr().err


def test_what_is_there_stays_unless_overwrite(any_store, tree, tmp_path, contents, capsys):
    any_store.upload(tree({"a": b"old", "b": b"old"}))
    capsys.readouterr()
    newer = tree({"a": b"new", "c": b"new"}, "newer")
    any_store.upload(newer)
    said = capsys.readouterr().out
    assert "Skipped a: it already exists" in said
    assert "Uploaded 1 file (3 bytes)" in said
    assert any_store.download(tmp_path / "back", show_progress=False) == 3
    assert contents(tmp_path / "back") == {"a": b"old", "b": b"old", "c": b"new"}
    any_store.upload(newer, overwrite=True)
    assert any_store.download(tmp_path / "back", show_progress=False) == 0
    assert any_store.download(tmp_path / "back", overwrite=True) == 3
    assert contents(tmp_path / "back")["a"] == b"new"


def test_silence(any_store, tree, tmp_path, capfd):
    any_store.upload(tree(FILES), show_progress=False)
    any_store.upload(tree(FILES), show_progress=False)
    any_store.download(tmp_path / "back", show_progress=False)
    assert capfd.readouterr() == ("", "")


def test_many_files_are_summed_up(any_store, tree, capsys):
    any_store.upload(tree({f"{n:03}": b"x" for n in range(200)}))
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == f"Uploaded 200 files (200 bytes) to datastore {any_store.name!r}"
    assert 2 < len(lines) < 15


def test_prefix_is_a_folder_a_file_or_a_beginning(any_store, tree, tmp_path, contents):
    any_store.upload(tree({"data/a": b"", "data2/a": b"", "data.txt": b"", "log-1": b"", "log-2": b""}))

    def names(prefix, to):
        any_store.download(tmp_path / to, prefix=prefix)
        return set(contents(tmp_path / to)) if (tmp_path / to).exists() else set()

    assert names("data", "1") == {"data/a"}
    assert names("/data.txt", "2") == {"data.txt"}
    assert names("log-", "3") == {"log-1", "log-2"}
    assert names("nothing", "4") == set()
    assert names("nothing/here", "5") == set()
    with pytest.raises(UserErrorException, match="leaves"):
        names("../x", "6")


def test_upload_files_by_their_common_folder(any_store, tree, tmp_path, contents):
    root = tree(FILES)
    any_store.upload_files([str(root / "a.txt")], target_path="one")
    any_store.upload_files([root / "a.txt", root / "sub" / "b.bin"], target_path="two")
    any_store.upload_files([root / "sub" / "b.bin"], relative_root=root, target_path="three")
    any_store.download(tmp_path / "back")
    assert set(contents(tmp_path / "back")) == {"one/a.txt", "two/a.txt", "two/sub/b.bin", "three/sub/b.bin"}


def test_upload_files_relative_to_the_current_folder(store, folder, tree, contents, monkeypatch):
    monkeypatch.chdir(tree(FILES))
    store.upload_files(["./a.txt", "sub/../a.txt"], relative_root=".")
    assert contents(folder) == {"a.txt": b"a"}


def test_upload_files_refuses_before_it_copies(store, folder, tree, contents):
    root = tree(FILES)
    with pytest.raises(UserErrorException, match=r"Nothing was uploaded.*missing"):
        store.upload_files([root / "a.txt", root / "missing"])
    with pytest.raises(UserErrorException, match="Nothing was uploaded"):
        store.upload_files([root / "sub"])
    with pytest.raises(UserErrorException, match="takes a list"):
        store.upload_files(str(root / "a.txt"))
    with pytest.raises(UserErrorException, match="is not below"):
        store.upload_files([root / "a.txt"], relative_root=root / "sub")
    assert contents(folder) == {}
    assert store.upload_files([]).path_on_datastore == ""


def test_wrong_source_and_target(store, tree, tmp_path):
    root = tree(FILES)
    with pytest.raises(UserErrorException, match="does not exist"):
        store.upload(tmp_path / "missing")
    with pytest.raises(UserErrorException, match="is not a folder"):
        store.upload(root / "a.txt")
    with pytest.raises(UserErrorException, match="leaves the datastore"):
        store.upload(root, target_path="../../elsewhere")
    with pytest.raises(UserErrorException, match="is not a folder"):
        store.download(root / "a.txt")


def test_links_and_pipes_in_the_source(store, folder, tree, tmp_path, contents, capsys):
    root = tree({"real/a": b"a"})
    (tmp_path / "secret").write_bytes(b"secret")
    (tmp_path / "outside").mkdir()
    (root / "inside").symlink_to("real/a")
    (root / "to_secret").symlink_to(tmp_path / "secret")
    (root / "to_folder").symlink_to(tmp_path / "outside")
    (root / "loop").symlink_to(".")
    (root / "nowhere").symlink_to("gone")
    (root / "self").symlink_to("self")
    os.mkfifo(root / "pipe")
    store.upload(root)
    assert contents(folder) == {"real/a": b"a", "inside": b"a"}
    assert not (folder / "inside").is_symlink()
    said = capsys.readouterr().out
    assert sum(line.startswith("Left out ") for line in said.splitlines()) == 6
    assert "to_secret: a link out of the folder" in said
    assert "pipe: not a regular file" in said


def test_an_unreadable_file_is_named(store, tree, monkeypatch):
    root = tree({"a": b"", "b": b""})
    real_open = builtins.open

    def refuse(path, *args, **kwargs):  # Root may read everything, so a mode of 0 would not do.
        if path == str(root / "b"):
            raise PermissionError(13, "Permission denied", path)
        return real_open(path, *args, **kwargs)

    monkeypatch.setattr(builtins, "open", refuse)
    with pytest.raises(DatastoreException, match=r"only 1 of 2 files.*b cannot be read") as caught:
        store.upload(root)
    assert caught.value.cause == "Permission denied"


def test_an_error_midway_says_what_was_done(store, folder, tree, contents):
    (folder / "b").mkdir()
    root = tree({"a": b"1", "b": b"2", "c": b"3"})
    with pytest.raises(DatastoreException) as caught:
        store.upload(root)
    assert "Uploaded only 1 of 3 files to datastore 'workspaceblobstore'" in caught.value.headline
    assert f"{folder / 'b'} cannot be written" in caught.value.headline
    assert "the same call continues" in caught.value.hint
    assert contents(folder) == {"a": b"1"}  # Nothing half-made is left either.


UPLOAD = """
import signal, sys, time
from trainmaster.job.script.store_folder import FolderStorage
from trainmaster.job.script.store_sources import Source, Sources
from trainmaster.job.script.store_transfer import upload

signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(3))
sources = Sources(tuple(Source(sys.argv[1], str(number)) for number in range(10_000)))
print("ready", flush=True)
upload(FolderStorage(sys.argv[2]), sources, "", True, print, "")
"""


def test_an_upload_told_to_stop_at_any_moment_ends(tmp_path):
    """The moments in which its threads start are the dangerous ones."""
    (tmp_path / "file").write_bytes(b"x")
    for number in range(12):
        target = tmp_path / f"{number}"
        target.mkdir()
        command = [sys.executable, "-c", UPLOAD, str(tmp_path / "file"), str(target)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as program:
            program.stdout.readline()
            time.sleep(0.01 * number)
            program.send_signal(signal.SIGTERM)
            assert program.wait(60) == 3
        assert len(list(target.iterdir())) < 9_000


def test_a_full_error_from_a_remote_store(memory, tree, monkeypatch):
    from fsspec.implementations.memory import MemoryFileSystem

    def refuse(self, *args, **kwargs):
        raise RuntimeError("403 Forbidden for key topsecret1")

    store = Datastore.register(memory.workspace, "m2", "memory://x", options={"key": "topsecret1"})
    monkeypatch.setattr(MemoryFileSystem, "put_file", refuse)
    with pytest.raises(DatastoreException) as caught:
        store.upload(tree({str(n): b"" for n in range(40)}))
    assert "only 0 of 40 files" in caught.value.message
    assert "topsecret1" not in caught.value.message
    assert "credentials" in caught.value.hint


def test_the_store_inside_the_source_is_left_out(store, folder, tmp_path, contents):
    (tmp_path / "train.py").write_bytes(b"x")
    (tmp_path / "other").symlink_to(tmp_path)
    store.upload(tmp_path)
    store.upload(tmp_path / "other", target_path="again")
    assert contents(folder) == {"train.py": b"x", "again/train.py": b"x"}


def test_upload_of_the_store_to_itself(store, folder, contents):
    (folder / "a").write_bytes(b"a")
    store.upload(folder, overwrite=True)
    store.upload(folder, target_path="copy")
    assert contents(folder) == {"a": b"a", "copy/a": b"a"}


def test_a_symlink_loop_in_a_store_ends(folder, store, tmp_path, contents):
    (folder / "a").write_bytes(b"a")
    (folder / "loop").symlink_to(".")
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "b").write_bytes(b"b")
    (folder / "linked").symlink_to(tmp_path / "set")
    assert [file.path for file in FolderStorage(folder).list("")] == ["a", "linked/b"]
    assert store.download(tmp_path / "back") == 2


def test_half_written_files_are_not_given_out(folder):
    (folder / ".trainmaster-0123.part").write_bytes(b"half")
    assert FolderStorage(folder).list("") == []


def test_names_of_any_bytes(store, folder, tree, tmp_path, contents, capsys):
    names = [
        "new\nline",
        "back\\slash",
        " ",
        "-rf",
        "é",
        os.fsdecode(b"\xff\xfe"),
        "n" * 255,
        "a:b",
        "%2e%2e",
        "*",
    ]
    files = {name: name.encode(errors="surrogateescape") for name in names}
    store.upload(tree(files), target_path="odd")
    assert store.download(tmp_path / "back") == len(names)
    assert contents(tmp_path / "back" / "odd") == files
    assert "new\\nline" in capsys.readouterr().out


def test_two_uploads_at_once(any_store, tree, tmp_path, contents):
    first, second = ({str(n): letter * 100_000 for n in range(20)} for letter in (b"1", b"2"))
    sources = [tree(first, "first"), tree(second, "second")]
    errors = []

    def run(source):
        try:
            any_store.upload(source, target_path="x", overwrite=True, show_progress=False)
        except DatastoreException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(source,)) for source in sources]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    any_store.download(tmp_path / "back", show_progress=False)
    for name, content in contents(tmp_path / "back" / "x").items():
        assert content in (first[name], second[name])


_name = st.text(alphabet="ab.é -_$~", min_size=1, max_size=6).filter(lambda name: name not in (".", ".."))
_trees = st.dictionaries(
    st.lists(_name, min_size=1, max_size=3).map("/".join), st.binary(max_size=50), max_size=8
).filter(lambda files: not any(b.startswith(a + "/") for a in files for b in files))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(files=_trees)
def test_random_trees_come_back_as_they_were(any_store, tmp_path_factory, contents, files):
    base = tmp_path_factory.mktemp("tree")
    for path, content in files.items():
        (base / "in" / path).parent.mkdir(parents=True, exist_ok=True)
        (base / "in" / path).write_bytes(content)
    (base / "in").mkdir(exist_ok=True)
    reference = any_store.upload(base / "in", target_path=base.name, show_progress=False)
    count = any_store.download(base / "out", prefix=reference.path_on_datastore, show_progress=False)
    assert count == len(files)
    assert contents(base / "out" / base.name if files else base / "in") == files
