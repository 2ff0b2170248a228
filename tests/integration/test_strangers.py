"""Another user of this machine tries to get in: as the dispatcher's client, and in the dispatcher's place."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conftest import end_workspace, ended, run_folder, until
from tests.integration.conftest import Gate
from tests.strangers import NOBODY, as_stranger, listening_stranger, needs_root

from trainmaster import Estimator, Experiment, Workspace
from trainmaster.job.errors import WorkspaceException
from trainmaster.shared.folders import WorkspaceFolder


@needs_root
def test_the_dispatcher_answers_no_other_user(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace.get_default_keyvault().set_secret("word", "hush")
    folder = WorkspaceFolder(workspace.path)
    # As if its owner had opened it to others.
    folder.socket.chmod(0o666)
    folder.path.chmod(0o711)
    monkeypatch.chdir(folder.path)

    def attack() -> bytes:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(60)
            connection.connect("dispatcher.sock")
            try:
                connection.sendall(b'{"id": 1, "op": "secrets.get", "args": {"names": ["word"]}}\n')
                return b"got: " + connection.recv(1000)
            except ConnectionError:
                return b"got: "

    for _ in range(3):
        assert as_stranger(attack) == b"got: "
    assert workspace.get_default_keyvault().get_secret("word") == "hush"
    until(lambda: f"refused user {NOBODY}" in folder.log.read_text(), what="the log")
    assert folder.log.read_text().count("refused user") == 1


@needs_root
def test_no_secret_goes_to_who_made_the_folder_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    place = tmp_path / ("long" * 30) / "w"
    with tempfile.TemporaryDirectory(prefix="s", dir="/tmp") as short:
        monkeypatch.setenv("TMPDIR", short)
        monkeypatch.setattr(tempfile, "tempdir", short)
        taken = Path(short, f"trainmaster-{os.getuid()}")
        taken.mkdir(mode=0o777)
        os.chown(taken, NOBODY, NOBODY)
        with listening_stranger(WorkspaceFolder(place).socket) as heard:
            with pytest.raises(WorkspaceException, match="no safe place for the socket"):
                Workspace.create("far", path=place, show_output=False).get_default_keyvault().set_secret("word", "hush")
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(str(WorkspaceFolder(place).socket))
            assert heard() == b""
        # With a folder of one's own it works.
        runtime = Path(short, "run")
        runtime.mkdir(mode=0o700)
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
        try:
            keys = Workspace(path=place).get_default_keyvault()
            keys.set_secret("word", "hush")
            assert keys.get_secret("word") == "hush"
            assert WorkspaceFolder(place).socket.parent == runtime / "trainmaster"
        finally:
            end_workspace(place)


SECRETIVE = """\
from trainmaster import Run
run = Run.get_context()
run.log("said", run.get_secret("word"))
print("the word is", run.get_secret("word"), flush=True)
"""


def test_nobody_else_reads_what_a_run_prints(
    workspace: Workspace, project: Callable[..., Path], gate: Callable[..., Gate], monkeypatch: pytest.MonkeyPatch
) -> None:
    mask = os.umask(0)
    try:
        # The dispatcher and all it starts have this umask.
        workspace.get_default_keyvault().set_secret("word", "hush-hush")
        door = gate()
        run = Experiment(workspace, "secretive").submit(
            Estimator(
                str(project(train=SECRETIVE + door.wait)),
                entry_script="train.py",
                compute_target="local",
                user_managed=True,
            )
        )
    finally:
        os.umask(mask)
    door.await_arrival()
    folder = run_folder(run)
    log = folder.logs / "70_driver_log.txt"
    assert "hush-hush" in log.read_text()
    found = [*folder.logs.rglob("*"), *folder.journals.iterdir(), *folder.nodes.rglob("*.log")]
    modes = {str(path): oct(path.stat().st_mode & 0o777) for path in found if path.is_file()}
    assert len(modes) >= 3 and set(modes.values()) == {"0o600"}, modes
    if os.geteuid() == 0:
        monkeypatch.chdir(log.parent)
        assert as_stranger(lambda: read_or_say_why(log.name)) == b"PermissionError"
    door.open()
    assert ended(run)["status"] == "Completed"
    assert "hush-hush" not in log.read_text()
    (result,) = folder.nodes.rglob("result.json")
    assert result.stat().st_mode & 0o077 == 0


def read_or_say_why(name: str) -> bytes:
    try:
        return Path(name).read_bytes()
    except OSError as error:
        return type(error).__name__.encode()
