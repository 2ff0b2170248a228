"""Contents of models: kept once, whole or not at all, and every change is noticed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path

import pytest

from trainmaster.job.errors import ModelPathNotFoundException, WebserviceException
from trainmaster.job.script.model_files import fingerprint
from trainmaster.snapshots.model_contents import Contents, check_contents, copy_file
from trainmaster.snapshots.model_sources import files_at


@pytest.fixture
def contents(tmp_path: Path) -> Contents:
    return Contents(tmp_path / "models")


@pytest.fixture
def net(tmp_path: Path) -> Path:
    """A model that is a folder."""
    folder = tmp_path / "net"
    (folder / "deep").mkdir(parents=True)
    (folder / "weights.bin").write_bytes(b"w" * 3_000_000)
    (folder / "deep" / "graph.json").write_text("{}")
    (folder / "deep" / "again.json").write_text("{}")
    return folder


def keep(contents: Contents, path: Path):
    sources = files_at(path)
    return contents.keep(sources.entry, sources.files)


def blobs(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "models" / ".blobs").glob("??/*"))


def spoil(path: Path, text: bytes) -> None:
    path.chmod(0o644)
    path.write_bytes(text)


def test_every_content_is_kept_once_under_its_sha256(contents, net, tmp_path):
    first = keep(contents, net)
    assert {file.path: file.size for file in first.manifest.files} == {
        "net/deep/again.json": 2,
        "net/deep/graph.json": 2,
        "net/weights.bin": 3_000_000,
    }
    assert [path.name for path in blobs(tmp_path)] == sorted(
        [sha256(b"{}").hexdigest(), sha256(b"w" * 3_000_000).hexdigest()]
    )
    before = {path: path.stat().st_ino for path in blobs(tmp_path)}
    assert keep(contents, net) == first
    assert {path: path.stat().st_ino for path in blobs(tmp_path)} == before


def test_the_list_names_itself(contents, net):
    kept = keep(contents, net)
    text = contents.list_path(kept.digest).read_bytes()
    assert sha256(text).hexdigest() == kept.digest
    assert json.loads(text)["entry"] == "net"
    assert contents.manifest(kept.digest) == kept.manifest


def test_a_folder_is_made_of_read_only_links(contents, net, tmp_path):
    kept = keep(contents, net)
    place = contents.materialise("mnist", 3, kept.digest)
    assert place == tmp_path / "models" / "mnist" / "3"
    assert os.listdir(place) == ["net"]
    file = place / "net" / "weights.bin"
    assert file.stat().st_mode & 0o777 == 0o444
    assert file.stat().st_ino == blobs(tmp_path)[0].stat().st_ino or file.stat().st_nlink > 1
    assert contents.materialise("mnist", 3, kept.digest) == place
    assert check_contents(place, kept.manifest) == []
    assert not list((tmp_path / "models" / ".making").iterdir())


def test_programs_to_execute_stay_so_and_share_no_mode(contents, tmp_path):
    program, text = tmp_path / "tool", tmp_path / "text"
    for path in (program, text):
        path.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    made = contents.materialise("tool", 1, keep(contents, program).digest) / "tool"
    assert made.stat().st_mode & 0o777 == 0o555
    plain = contents.materialise("text", 1, keep(contents, text).digest) / "text"
    assert plain.stat().st_mode & 0o777 == 0o444


def test_copies_can_be_written_to(contents, net, tmp_path):
    kept = keep(contents, net)
    contents.copy_to(tmp_path / "out", kept.manifest, copy_file)
    file = tmp_path / "out" / "net" / "deep" / "graph.json"
    file.write_text("other")
    assert contents.damages(kept.digest) == []
    assert not [name for _, _, names in os.walk(tmp_path / "out") for name in names if name.startswith(".partial-")]


def test_links_are_followed_and_special_files_left_out(contents, tmp_path):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "blob").write_text("content")
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "weights").symlink_to(tmp_path / "cache" / "blob")
    (folder / "nowhere").symlink_to(tmp_path / "missing")
    (folder / "loop").symlink_to(folder)
    os.mkfifo(folder / "pipe")
    kept = keep(contents, folder)
    assert [file.path for file in kept.manifest.files] == ["model/weights"]
    place = contents.materialise("m", 1, kept.digest)
    assert (place / "model" / "weights").read_text() == "content"
    assert not (place / "model" / "weights").is_symlink()


def test_names_that_are_no_utf8_survive(contents, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    odd = os.fsencode(folder) + b"/\xff\n name"
    with open(odd, "w") as file:
        file.write("x")
    kept = keep(contents, folder)
    place = contents.materialise("m", 1, kept.digest)
    assert os.listdir(os.fsencode(place / "model")) == [b"\xff\n name"]
    assert contents.damages(kept.digest, place) == []


@pytest.mark.parametrize("same_size", [True, False])
def test_a_changed_file_is_noticed(contents, net, tmp_path, same_size):
    kept = keep(contents, net)
    place = contents.materialise("mnist", 1, kept.digest)
    assert contents.damages(kept.digest, place) == []
    before = fingerprint(place, [vars(file) for file in kept.manifest.files])
    # A link to the content: the content is what was changed.
    spoil(place / "net" / "deep" / "graph.json", b"[]" if same_size else b"[1]")
    found = contents.damages(kept.digest, place)
    assert found == [
        "the content of net/deep/again.json is missing or damaged",
        "the content of net/deep/graph.json is missing or damaged",
    ]
    assert check_contents(place, kept.manifest) == [
        f"net/deep/{name} {'differs from what was registered' if same_size else 'has 3 bytes instead of 2'}"
        for name in ("again.json", "graph.json")
    ]
    assert fingerprint(place, [vars(file) for file in kept.manifest.files]) != before


def test_a_file_that_took_the_place_of_one_is_noticed(contents, net):
    kept = keep(contents, net)
    place = contents.materialise("mnist", 1, kept.digest)
    (place / "net" / "deep" / "graph.json").unlink()
    (place / "net" / "deep" / "graph.json").write_text("[]")
    assert contents.damages(kept.digest, place) == [f"{place}: net/deep/graph.json differs from what was registered"]


def test_registering_again_puts_damaged_contents_right(contents, net, tmp_path):
    kept = keep(contents, net)
    spoil(blobs(tmp_path)[0], b"x" * blobs(tmp_path)[0].stat().st_size)
    assert contents.damages(kept.digest) != []
    assert keep(contents, net).digest == kept.digest
    assert contents.damages(kept.digest) == []


def test_a_folder_from_which_somebody_took_a_file_is_made_again(contents, net):
    kept = keep(contents, net)
    place = contents.materialise("mnist", 1, kept.digest)
    (place / "net" / "weights.bin").unlink()
    assert contents.materialise("mnist", 1, kept.digest) == place
    assert contents.damages(kept.digest, place) == []


def test_what_was_changed_in_a_folder_is_put_right_and_never_what_was_changed_in_contents(contents, net):
    kept = keep(contents, net)
    place = contents.sound("mnist", 1, kept.digest)
    graph = place / "net" / "deep" / "graph.json"
    graph.unlink()
    graph.write_text("[]")
    assert contents.sound("mnist", 1, kept.digest) == place
    assert graph.read_text() == "{}" and contents.damages(kept.digest, place) == []
    spoil(graph, b"[]")
    with pytest.raises(WebserviceException, match=r"(?s)model mnist:1 is damaged.*deep/graph\.json"):
        contents.sound("mnist", 1, kept.digest)


def test_of_two_that_make_a_folder_the_second_takes_nothing_away(contents, net, monkeypatch):
    kept = keep(contents, net)
    copy, first = Contents.copy_to, []

    def copy_slowly(self, *args):
        copy(self, *args)
        monkeypatch.setattr(Contents, "copy_to", copy)
        # Another process is faster, and its caller has the path already.
        first.append(contents.materialise("mnist", 1, kept.digest).stat().st_ino)

    monkeypatch.setattr(Contents, "copy_to", copy_slowly)
    assert [contents.materialise("mnist", 1, kept.digest).stat().st_ino] == first


def test_a_damaged_content_is_not_copied(contents, net, tmp_path):
    kept = keep(contents, net)
    spoil(blobs(tmp_path)[0], b"x" * blobs(tmp_path)[0].stat().st_size)
    with pytest.raises(OSError, match="not what was registered"):
        contents.copy_to(tmp_path / "out", kept.manifest, copy_file)
    assert not [name for _, _, names in os.walk(tmp_path / "out") for name in names if name.startswith(".partial-")]


def test_a_lost_or_damaged_list_is_one_clear_error(contents, net):
    kept = keep(contents, net)
    assert contents.is_there(kept.digest)
    path = contents.list_path(kept.digest)
    spoil(path, path.read_bytes() + b" ")
    assert not contents.is_there(kept.digest)
    with pytest.raises(WebserviceException, match="is not what was written"):
        contents.materialise("mnist", 1, kept.digest)
    path.unlink()
    with pytest.raises(WebserviceException, match="No such file"):
        contents.manifest(kept.digest)


def test_lost_contents_are_one_clear_error(contents, net, tmp_path):
    kept = keep(contents, net)
    for path in blobs(tmp_path):
        path.unlink()
    assert not contents.is_there(kept.digest)
    with pytest.raises(WebserviceException, match=r"the files of model mnist:1 cannot be had"):
        contents.materialise("mnist", 1, kept.digest)
    assert not (tmp_path / "models" / "mnist").exists()


def test_drop_leaves_what_others_have(contents, net, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "config.json").write_text("{}")
    (other / "own").write_text("own")
    first, second = keep(contents, net), keep(contents, other)
    contents.materialise("net", 1, first.digest)
    contents.drop("net", 1, first.digest, {second.digest})
    assert not (tmp_path / "models" / "net").exists()
    assert not contents.list_path(first.digest).exists()
    assert contents.damages(second.digest) == []
    assert len(blobs(tmp_path)) == 2
    # Another version with the same contents.
    contents.drop("other", 1, second.digest, {second.digest})
    assert contents.is_there(second.digest)


def test_drop_removes_what_killed_registrations_left(contents, net, tmp_path):
    for name in ("old", "young", "kept"):
        (tmp_path / name).write_text(name)
    old, young, kept = (keep(contents, tmp_path / name) for name in ("old", "young", "kept"))
    long_ago = time.time() - 7200
    for path in (contents.list_path(old.digest), *blobs(tmp_path)):
        if path.name != young.manifest.files[0].digest:
            os.utime(path, (long_ago, long_ago))
    contents.drop("net", 1, keep(contents, net).digest, {kept.digest})
    assert not contents.is_there(old.digest) and contents.is_there(young.digest) and contents.is_there(kept.digest)
    assert {path.name for path in blobs(tmp_path)} == {each.manifest.files[0].digest for each in (young, kept)}


def test_a_list_that_cannot_be_read_makes_nobody_lose_contents(contents, net, tmp_path):
    first = keep(contents, net)
    (tmp_path / "b").write_text("b")
    second = keep(contents, tmp_path / "b")
    spoil(contents.list_path(second.digest), b"broken")
    count = len(blobs(tmp_path))
    contents.drop("net", 1, first.digest, {second.digest})
    assert len(blobs(tmp_path)) == count


def test_a_file_that_cannot_be_read_leaves_nothing(contents, net, tmp_path):
    # Nobody can read its first byte, not even root.
    (net / "zz").symlink_to("/proc/self/mem")
    with pytest.raises(WebserviceException, match=r"cannot be kept.*\n.*zz|mem.*Input/output error") as raised:
        keep(contents, net)
    assert "amlignore" not in str(raised.value)
    assert not (tmp_path / "models" / ".lists").exists()
    assert not list((tmp_path / "models" / ".blobs" / ".partial").iterdir())


def test_a_file_that_goes_away_is_told(contents, tmp_path):
    with pytest.raises(ModelPathNotFoundException, match="went away"):
        contents.keep("gone", {"gone": tmp_path / "gone"})


def test_a_full_disk_is_told_and_leaves_nothing(net, tmp_path):
    """As of a disk that is full: no file may grow beyond a megabyte, and the weights have three."""
    script = (
        "import resource, sys; from pathlib import Path\n"
        "from trainmaster.snapshots.model_contents import Contents\n"
        "from trainmaster.snapshots.model_sources import files_at\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, 2**20))\n"
        "sources = files_at(sys.argv[1])\n"
        "Contents(Path(sys.argv[2])).keep(sources.entry, sources.files)\n"
    )
    command = [sys.executable, "-c", script, str(net), str(tmp_path / "models")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert "the model cannot be stored in the workspace" in done.stderr and "File too large" in done.stderr, done.stderr
    assert not (tmp_path / "models" / ".lists").exists()
    assert not list((tmp_path / "models" / ".blobs" / ".partial").iterdir())
