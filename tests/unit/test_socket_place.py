"""The socket of a workspace with a long path: where it may lie, and who may be at the other end."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.strangers import NOBODY, listening_stranger, needs_root

from trainmaster.dispatcher.socket_place import make_place
from trainmaster.job.agent import notify
from trainmaster.job.errors import ServiceException, WorkspaceException
from trainmaster.job.script.asking import ask
from trainmaster.shared.dispatcher_socket import try_line
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.private import make_private


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty temporary folder whose own path leaves room for a socket's."""
    with tempfile.TemporaryDirectory(prefix="s", dir="/tmp") as place:
        monkeypatch.setattr(tempfile, "tempdir", place)
        monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
        yield Path(place)


@pytest.fixture
def folder(tmp_path: Path) -> WorkspaceFolder:
    path = tmp_path / ("long" * 30)
    path.mkdir()
    return WorkspaceFolder(path)


def own(place: Path) -> Path:
    return place / f"trainmaster-{os.getuid()}"


def test_a_private_folder_is_made_and_found(folder: WorkspaceFolder, short: Path) -> None:
    mask = os.umask(0)
    try:
        place = make_place(folder)
    finally:
        os.umask(mask)
    assert place.parent == own(short) and stat.S_IMODE(place.parent.stat().st_mode) == 0o700
    assert folder.socket == place and Path(os.readlink(folder.socket_name)) == place


def test_the_runtime_folder_is_preferred(folder: WorkspaceFolder, short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = short / "run"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    place = make_place(folder)
    assert place.parent == runtime / "trainmaster"
    # A client or the next dispatcher without that variable: running jobs know this place.
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    assert folder.socket == place == make_place(folder)
    # It goes with the last login.
    place.parent.rmdir()
    assert make_place(folder).parent == own(short) and folder.socket.parent == own(short)


def make_open(place: Path) -> None:
    place.mkdir()
    place.chmod(0o755)


def make_link(place: Path) -> None:
    make_private(place.with_name("elsewhere"))
    place.symlink_to(place.with_name("elsewhere"))


def make_foreign(place: Path) -> None:
    place.mkdir(mode=0o700)
    os.chown(place, NOBODY, NOBODY)


@pytest.mark.parametrize("make", [make_open, make_link, pytest.param(make_foreign, marks=needs_root)])
def test_a_folder_that_is_not_ours_alone_is_refused(
    folder: WorkspaceFolder, short: Path, make: Callable[[Path], None]
) -> None:
    make(own(short))
    with pytest.raises(WorkspaceException, match="no safe place for the socket") as caught:
        make_place(folder)
    assert str(own(short)) in caught.value.cause and "XDG_RUNTIME_DIR" in caught.value.hint
    assert not os.path.lexists(folder.socket_name)
    # The link of an earlier dispatcher does not make it better.
    folder.socket_name.symlink_to(own(short) / "x.sock")
    with pytest.raises(WorkspaceException, match="no safe place for the socket"):
        make_place(folder)


@needs_root
def test_a_client_connects_to_nothing_in_a_folder_of_others(folder: WorkspaceFolder, short: Path) -> None:
    make_foreign(own(short))
    with listening_stranger(folder.socket) as heard:
        assert try_line(folder) is None
        _connect_and_leave(folder.socket)
        assert heard() == b""


@needs_root
def test_a_client_says_nothing_to_another_user(tmp_path: Path) -> None:
    folder = WorkspaceFolder(tmp_path)
    with listening_stranger(folder.socket) as heard:
        with pytest.raises(ServiceException, match="another user listens"):
            try_line(folder)
        assert heard() == b""


@needs_root
def test_a_script_says_nothing_to_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "socket"
    monkeypatch.setenv("TRAINMASTER_SOCKET", str(place))
    with listening_stranger(place) as heard:
        with pytest.raises(ServiceException, match="the socket belongs to another user"):
            ask("secrets.fetch", {"run_id": "r", "names": ["n"]}, "secrets", "")
        assert heard() == b""


@needs_root
def test_an_agent_says_nothing_to_another_user(tmp_path: Path) -> None:
    with listening_stranger(tmp_path / "socket") as heard:
        assert notify.send(str(tmp_path / "socket"), "r", 0, "ended") is False
        assert heard() == b""
    with listening_stranger(tmp_path / "other") as heard:
        assert notify.find_listener(str(tmp_path / "other")) is None
        assert heard() == b""


def _connect_and_leave(place: Path) -> None:
    import socket

    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(place))
