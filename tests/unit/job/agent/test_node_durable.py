"""Files that are on the disk: what is passed over, what is an error, what a failed write leaves. Power cuts are in
`tests/chaos/test_power_cut.py`.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from trainmaster.job.agent import durable


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    place = tmp_path / "facts.json"
    durable.write(place, b"old")
    durable.write(place, b"new", mode=0o600)
    assert place.read_bytes() == b"new"
    assert place.stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == ["facts.json"]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "inside").touch()
    with pytest.raises(IsADirectoryError):
        durable.write(folder, b"new")
    assert os.listdir(tmp_path) == ["folder"]


def test_folders_are_made_with_those_above(tmp_path: Path) -> None:
    durable.make_folder(tmp_path / "a" / "b" / "c", mode=0o700)
    durable.make_folder(tmp_path / "a" / "b" / "c", mode=0o700)
    assert (tmp_path / "a" / "b" / "c").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "a" / "b").stat().st_mode & 0o077
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=r"Not a directory|File exists"):
        durable.make_folder(tmp_path / "file" / "below")


def test_what_is_asked_for_has_to_be_there(tmp_path: Path) -> None:
    (tmp_path / "there").touch()
    durable.flush([tmp_path / "there", tmp_path, str(tmp_path / "there")])
    with pytest.raises(FileNotFoundError):
        durable.flush([tmp_path / "there", tmp_path, tmp_path / "missing"])


def test_a_tree_may_hold_anything(tmp_path: Path) -> None:
    """Opening a pipe would block, a link may point anywhere, and scripts keep removing files."""
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "file").write_text("text")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "nowhere").symlink_to("/nowhere")
    (tmp_path / "loop").symlink_to(tmp_path)
    durable.flush_below(tmp_path, tmp_path / "gone")
    durable.flush_below(tmp_path / "gone")


def test_many_files_are_flushed_with_their_file_system(tmp_path: Path) -> None:
    for number in range(1100):
        (tmp_path / str(number)).touch()
    durable.flush(tmp_path.iterdir())
    durable.flush_below(tmp_path)


def test_the_first_error_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).touch()

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        durable.flush(tmp_path.iterdir())
