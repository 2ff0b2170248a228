"""Secrets, with a real dispatcher and real jobs: encrypted on disk, given to jobs, hidden in what those print."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.backends import folder_of
from tests.conftest import contents, ended, files_below, stop_dispatcher, until

from trainmaster import Environment, Experiment, ScriptRunConfig
from trainmaster.environments.pythons import all_pythons
from trainmaster.job.errors import UserErrorException, WorkspaceException
from trainmaster.sdk.workspace.keyvault import Keyvault
from trainmaster.shared.folders import WorkspaceFolder

BACKENDS = ("local", "server")

VALUE = 'hunter22-öäü"x'
ASK = "from azureml.core import Run\nvalue = Run.get_context().get_secret('token')\n"


@pytest.fixture
def vault(shared):
    vault = shared.get_default_keyvault()
    vault.set_secret("token", VALUE)
    yield vault
    vault.delete_secrets(vault.list_secrets())


def oldest_and_newest() -> list[Path]:
    """Of the CPythons on this machine; one, if there is only one."""
    known = list(all_pythons().values())
    return [Path(path) for path in dict.fromkeys([known[0], known[-1]])]


def traces(place: Path, word: bytes = b"hunter22") -> list[str]:
    """The files below `place` that hold the word."""
    return [str(path) for path in files_below(place) if word in contents(path)]


@pytest.mark.local_only("the secrets of a server are write-only")
def test_kept_and_forgotten(vault, shared):
    vault.set_secrets({"b": "bbbb", "empty": ""})
    assert vault.list_secrets() == ["b", "empty", "token"]
    assert Keyvault(shared).get_secrets(["token", "b", "empty"]) == {"token": VALUE, "b": "bbbb", "empty": ""}
    vault.set_secret("b", "other", content_type="text/plain")
    assert (vault.get_secret("b"), vault.get_secret_content_type("b")) == ("other", "text/plain")
    vault.delete_secret("b")
    vault.delete_secret("b")
    with pytest.warns(UserWarning, match="no secret 'b'"):
        assert vault.get_secret("b") is None
    with pytest.warns(UserWarning, match="no secret 'b'"):
        assert vault.get_secrets(["token", "b"]) == {"token": VALUE, "b": None}


@pytest.mark.local_only("the secrets of a server are write-only")
def test_encrypted_with_a_key_outside_of_the_workspace(vault, shared):
    assert traces(folder_of(shared)) == []
    key = _key_of(shared)
    assert key.stat().st_mode & 0o777 == 0o600
    assert not key.is_relative_to(shared.path)


def _key_of(workspace) -> Path:
    """The dispatcher's home is that of the program that started it: the one of an earlier test here."""
    import sqlite3

    with sqlite3.connect(workspace.path / "trainmaster.db") as connection:
        (text,) = connection.execute("select value from facts where key = 'secrets.key'").fetchone()
    return Path(json.loads(text))


@pytest.mark.parametrize(
    ("name", "value"),
    [("", "v"), ("a b", "v"), ("-a", "v"), ("ä", "v"), ("n" * 128, "v"), (None, "v"), (3, "v"), ("n", None), ("n", 3)],
)
def test_what_cannot_be_a_secret(vault, name, value):
    with pytest.raises(UserErrorException):
        vault.set_secret(name, value)
    with pytest.raises(UserErrorException):
        vault.set_secrets({"good": "value", name: value})
    assert vault.list_secrets() == ["token"]


def test_too_long(vault):
    with pytest.raises(UserErrorException, match="longer than") as caught:
        vault.set_secret("n", "hunter22" * 10_000)
    assert "hunter22" not in str(caught.value)


@pytest.mark.parametrize("names", ["token", None, [3], {"token": 1}.items()])
def test_names_that_are_none(vault, names):
    with pytest.raises(UserErrorException, match="list of strings"):
        vault.get_secrets(names)
    with pytest.raises(UserErrorException, match="list of strings"):
        vault.delete_secrets(names)


def test_given_to_a_job_and_hidden_everywhere(vault, shared, launch, capsys, tmp_path):
    script = (
        ASK
        + "import json, os\n"
        + "print('length', len(value)); print('value', value); print(json.dumps({'k': value}))\n"
        + "assert value not in str(dict(os.environ)) and value not in open('/proc/self/cmdline').read()\n"
        + "raise RuntimeError('failed with ' + value)\n"
    )
    run = launch(script)
    details = run.wait_for_completion(show_output=True, raise_on_error=False)
    shown = capsys.readouterr().out
    assert f"length {len(VALUE)}" in shown
    assert details["error"]["message"].count("*") > 20
    assert re.match(r"RuntimeError: failed with \*+\n", details["error"]["message"])
    run.get_all_logs(destination=str(tmp_path / "logs"))
    everything = [shown, json.dumps(details), json.dumps(run.get_details_with_logs())]
    assert [text for text in everything if "hunter22" in text] == []
    assert traces(folder_of(shared)) + traces(tmp_path / "logs") == []


def test_hidden_while_the_run_goes(vault, shared, launch, gate, tmp_path):
    wait = gate("gate")
    run = launch(f"{ASK}print('begin', value, flush=True)\n{wait.wait}\n")
    wait.await_arrival()
    log = "azureml-logs/70_driver_log.txt"
    assert b"hunter22" in (WorkspaceFolder(folder_of(shared)).run(run.id).files / log).read_bytes()
    run.download_file(log, str(tmp_path / "log.txt"))
    command = [sys.executable, "-m", "trainmaster.cli", "logs", run.id, "--workspace", shared.backend.location]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    for text in (printed, (tmp_path / "log.txt").read_text(), run.get_details_with_logs()["logFiles"][log]):
        assert "begin ****" in text
        assert "hunter22" not in text
    wait.open()
    assert ended(run)["status"] == "Completed"
    assert traces(folder_of(shared)) == []


def test_changed_and_deleted_meanwhile(vault, shared, launch, gate):
    """Every value that a run was given stays hidden, also those that the workspace has not any more."""
    wait = gate("gate")
    script = f"{ASK}print('one', value, flush=True)\n{wait.wait}\n{ASK}print('two', value)\n"
    run = launch(script)
    wait.await_arrival()
    vault.set_secret("token", "second-value")
    wait.open()
    assert ended(run)["status"] == "Completed"
    vault.delete_secret("token")
    text = run.get_details_with_logs()["logFiles"]["azureml-logs/70_driver_log.txt"]
    assert text.split() == ["one", "*" * 17, "two", "*" * 12]


def test_unknown_in_a_job(vault, launch):
    run = launch(
        "import warnings\nfrom azureml.core import Run\nwith warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n    found = Run.get_context().get_secrets(['token', 'nothing'])\n"
        "    Run.get_context().get_secret('nothing')\n"
        "assert found['nothing'] is None and len(found['token']) == 14, 'wrong'\n"
        "assert ['no secret' in str(each.message) for each in caught] == [True, True], caught\n"
        "assert [each.filename for each in caught] == [__file__, __file__], caught\n"
    )
    assert ended(run)["status"] == "Completed"


@pytest.mark.parametrize("python", oldest_and_newest(), ids=lambda path: path.name)
def test_in_other_pythons(vault, shared, project, python):
    environment = Environment("other")
    environment.python.user_managed_dependencies = True
    environment.python.interpreter_path = str(python)
    source = project(train=f"{ASK}assert len(value) == {len(VALUE)}\n")
    config = ScriptRunConfig(str(source), script="train.py", compute_target="local", environment=environment)
    assert ended(Experiment(shared, "pythons").submit(config))["status"] == "Completed"


@pytest.mark.local_only("the secrets of a server are write-only")
def test_outside_of_a_job(vault, launch, shared):
    run = launch("print(1)")
    assert ended(run)["status"] == "Completed"
    assert run.get_secret("token") == VALUE
    with pytest.raises(UserErrorException, match="no running job"):
        shared.connection.call("secrets.fetch", run_id=run.id, names=["token"])


def test_job_waits_for_the_next_dispatcher(workspace, submit, gate):
    workspace.get_default_keyvault().set_secret("token", VALUE)
    wait = gate("gate")
    run = submit(f"{wait.wait}\n{ASK}assert len(value) == {len(VALUE)}\nprint(value)\n")
    wait.await_arrival()
    workspace.connection.close()
    stop_dispatcher(WorkspaceFolder(folder_of(workspace)))
    wait.open()
    assert ended(run)["status"] == "Completed"
    assert traces(folder_of(workspace)) == []


@pytest.mark.local_only("the secrets of a server are write-only")
def test_key_that_is_lost(workspace, home, submit):
    vault = workspace.get_default_keyvault()
    vault.set_secret("token", VALUE)
    run = submit(f"{ASK}print(len(value))")
    assert ended(run)["status"] == "Completed"
    key = next(home.rglob("*.key"))
    kept = key.read_text()
    key.chmod(0o644)
    with pytest.raises(WorkspaceException, match="can be read by others"):
        vault.get_secret("token")
    key.unlink()
    for call in (lambda: vault.get_secret("token"), lambda: vault.set_secret("other", "value")):
        with pytest.raises(WorkspaceException, match="key of this workspace's secrets is missing"):
            call()
    key.write_text("garbage")
    key.chmod(0o600)
    with pytest.raises(WorkspaceException, match="cannot be used"):
        vault.get_secret("token")
    key.write_text(kept[::-1].replace("=", "") + "=")
    with pytest.raises(WorkspaceException, match="cannot be"):
        vault.get_secret("token")
    key.unlink()
    assert "14" in run.get_details_with_logs()["logFiles"]["azureml-logs/70_driver_log.txt"]
    vault.delete_secret("token")
    vault.set_secret("token", "another")
    assert vault.get_secret("token") == "another"


def test_command_line(workspace):
    def trainmaster(*words: str, given: str = "") -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "trainmaster.cli", "secret", *words, "--workspace", workspace.backend.location]
        return subprocess.run(command, input=given, capture_output=True, text=True, timeout=120)

    assert trainmaster("set", "token", given=f"{VALUE}\n").returncode == 0
    assert workspace.get_default_keyvault().list_secrets() == ["token"]
    assert json.loads(trainmaster("list", "--json").stdout) == ["token"]
    assert trainmaster("set", "none").returncode == 2
    assert trainmaster("delete", "token").returncode == 0
    unknown = trainmaster("delete", "token")
    assert (unknown.returncode, "no secret 'token'" in unknown.stderr) == (2, True)


def test_typed_at_a_terminal(workspace):
    ours, theirs = pty.openpty()
    command = [
        sys.executable,
        "-m",
        "trainmaster.cli",
        "secret",
        "set",
        "typed",
        "--workspace",
        workspace.backend.location,
    ]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    os.close(theirs)
    shown = b""
    while b"Value of secret" not in shown:
        shown += os.read(ours, 1000)
    os.write(ours, b"hunter22\n")
    assert process.wait(timeout=120) == 0
    until(lambda: workspace.get_default_keyvault().list_secrets() == ["typed"])
    assert b"hunter22" not in shown + os.read(ours, 1000)
    os.close(ours)


def test_a_server_does_not_give_secrets_away(vault, shared, backend):
    if backend is None:
        assert vault.get_secret("token") == VALUE
        return
    with pytest.raises(UserErrorException, match="write-only") as refused:
        vault.get_secret("token")
    assert VALUE not in str(refused.value)
