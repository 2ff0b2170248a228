"""Folders for one user alone, whatever the umask is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trainmaster.sdk.workspace.files import find_named_folder, make_workspace
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.private import open_private, why_not_private


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077, 0o277, 0o777])
def test_the_users_folder_is_private(home: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        if mask in (0o277, 0o777) and os.geteuid() != 0:
            pytest.skip("a workspace that its own user may not enter")
        make_workspace(WorkspaceFolder(find_named_folder("first")), {"name": "first"})
        make_workspace(WorkspaceFolder(find_named_folder("second")), {"name": "second"})
    finally:
        os.umask(before)
    assert home.stat().st_mode & 0o777 == 0o700 and why_not_private(home) == ""


def test_a_folder_that_is_there_stays_as_it_is(home: Path) -> None:
    home.mkdir()
    home.chmod(0o750)
    make_workspace(WorkspaceFolder(find_named_folder("first")), {"name": "first"})
    assert home.stat().st_mode & 0o777 == 0o750


def test_new_files_are_private(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with open(tmp_path / "new", "ab", opener=open_private) as file:
            file.write(b"x")
    finally:
        os.umask(before)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o600
