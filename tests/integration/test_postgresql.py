"""A workspace whose database is on a PostgreSQL server."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from tests.conftest import end_workspace
from tests.postgresql import Server, run_server

from trainmaster import Experiment, Workspace
from trainmaster.dispatcher.store.sessions import find_leader
from trainmaster.job.errors import UserErrorException, WorkspaceException
from trainmaster.sdk.run.run import Run
from trainmaster.shared.database_address import read_address
from trainmaster.shared.folders import WorkspaceFolder

HERE = Path(__file__).parent
# Tests of runs, metrics, sweeps and models that are run once more with a database on a server.
ALSO_ON_POSTGRESQL = {
    "test_run.py": ("test_submit_to_completed", "test_failed_script_says_why", "test_states_on_the_way"),
    "test_metrics.py": ("test_shapes", "test_seen_while_it_runs", "test_recursive", "test_logged_from_outside"),
    "test_sweeps.py": (
        "test_a_sweep_finds_the_best_trial_and_tells_all_of_v1",
        "test_a_policy_cuts_trials_and_says_why",
        "test_cancelling_a_sweep_ends_its_trials_and_starts_no_more",
    ),
    "test_models.py": ("test_a_model_from_its_registration_to_its_end", "test_filters"),
}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with run_server() as server:
        yield server


@pytest.fixture(scope="module")
def url(server: Server) -> str:
    return server.create_database()


@pytest.fixture(scope="module")
def shared(url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """Replaces the workspace on a file."""
    ws = Workspace.create("shared", path=tmp_path_factory.mktemp("shared") / "ws", show_output=False, database=url)
    yield ws
    end_workspace(ws.path)


def schemas(url: str) -> set[str]:
    with psycopg.connect(url) as connection:
        return {row[0] for row in connection.execute("SELECT nspname FROM pg_namespace")}


def test_a_run(shared: Workspace, launch: Callable[..., Run]) -> None:
    run = launch("from azureml.core import Run\nfor n in range(200): Run.get_context().log('n', n)")
    run.wait_for_completion()
    assert run.get_metrics()["n"] == list(range(200))
    assert not (Path(shared.path) / "trainmaster.db").exists()


def test_the_address_is_private(shared: Workspace, url: str) -> None:
    folder = WorkspaceFolder(Path(shared.path))
    assert stat.S_IMODE(folder.database_address.stat().st_mode) == 0o600
    identity = json.loads(folder.identity.read_text())
    assert identity["database"] == "postgresql" and url not in folder.identity.read_text()
    assert read_address(folder).schema in schemas(url)


def test_two_workspaces_share_a_database(shared: Workspace, url: str, tmp_path: Path) -> None:
    other = Workspace.create("other", path=tmp_path / "other", show_output=False, database=url)
    try:
        Experiment(other, "mine").start_logging().complete()
        assert "mine" in other.experiments and "mine" not in shared.experiments
    finally:
        end_workspace(other.path)


def test_the_lock_says_where_the_dispatcher_is(shared: Workspace) -> None:
    pid = shared.connection.call("status")["pid"]
    leader = find_leader(read_address(WorkspaceFolder(Path(shared.path))))
    assert leader.pid == pid and leader.is_here


def test_a_dispatcher_on_another_machine_does_not_start(shared: Workspace) -> None:
    shared.connection.call("status")
    words = [sys.executable, "-m", "trainmaster", "runs", "--workspace", str(shared.path)]
    variables = {**os.environ, "TRAINMASTER_HOST_NAME": "elsewhere"}
    done = subprocess.run(words, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "another dispatcher serves the workspace" in done.stderr and os.uname().nodename in done.stderr


@pytest.mark.parametrize("end", ["fast", "immediate", "killed"])
def test_a_restart_of_the_server_is_not_noticed(
    server: Server, shared: Workspace, launch: Callable[..., Run], gate: Callable[..., object], end: str
) -> None:
    shared.connection.call("status")
    door = gate(end)
    run = launch(f"from azureml.core import Run\n{door.wait}\nRun.get_context().log('after', 1)")
    door.await_arrival()
    before = shared.connection.call("status")["pid"]
    server.kill() if end == "killed" else server.stop(end)
    server.start()
    door.open()
    other = Experiment(shared, "restarts").start_logging()
    other.log("x", 1)
    other.complete()
    run.wait_for_completion()
    assert run.get_metrics() == {"after": 1} and other.get_metrics() == {"x": 1}
    assert shared.connection.call("status")["pid"] == before


def test_a_connection_that_is_cut_while_it_writes(server: Server, shared: Workspace) -> None:
    cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'trainmaster%'"
    runs = []
    for number in range(30):
        if number % 10 == 5:
            server.execute(cut)
        run = Experiment(shared, "cuts").start_logging()
        run.log("n", number)
        run.complete()
        runs.append(run)
    assert [run.get_metrics()["n"] for run in runs] == list(range(30))
    assert {run.id for run in Experiment(shared, "cuts").get_runs()} == {run.id for run in runs}


def test_a_server_that_stays_away_is_one_clear_error(url: str, tmp_path: Path) -> None:
    with run_server() as gone:
        ws = Workspace.create("gone", path=tmp_path / "gone", show_output=False, database=gone.create_database())
        end_workspace(ws.path)
        gone.stop()
        with pytest.raises(WorkspaceException, match="cannot be used") as caught:
            ws.connection.call("status")
        assert "Check that the server is running" in caught.value.hint
        gone.start()
        assert ws.connection.call("status")["active"] == []
        end_workspace(ws.path)


def test_a_password_is_never_shown(tmp_path: Path) -> None:
    address = f"postgresql://me:hunter2@/db?host={tmp_path}"
    words = [sys.executable, "-m", "trainmaster", "workspace", "create", "locked", "--path", str(tmp_path / "ws")]
    done = subprocess.run(
        [*words, "--database", "-"], input=address + "\n", capture_output=True, text=True, check=False
    )
    assert done.returncode != 0 and "cannot be used" in done.stderr
    said = done.stdout + done.stderr + "".join(path.read_text() for path in (tmp_path / "ws").glob("*.log"))
    assert "hunter2" not in said and "me:***@" in said
    assert not (tmp_path / "ws" / "workspace.json").exists()


def test_a_password_of_a_server_is_never_shown(tmp_path: Path) -> None:
    address = f"postgresql://me:hunter2@/db?host={tmp_path}"
    words = [sys.executable, "-m", "trainmaster", "server", "init", "--root", str(tmp_path / "root")]
    done = subprocess.run(
        [*words, "--database", "-"], input=address + "\n", capture_output=True, text=True, check=False
    )
    assert done.returncode not in (0, 70), done
    assert "hunter2" not in done.stdout + done.stderr and "me:***@" in done.stderr
    assert not (tmp_path / "root" / "server.json").exists()


def test_a_user_who_may_not_create_schemas(server: Server, url: str, tmp_path: Path) -> None:
    server.execute("CREATE ROLE poor LOGIN")
    with pytest.raises(WorkspaceException, match="no schema can be created") as caught:
        Workspace.create("poor", path=tmp_path / "ws", database=url.replace("postgres@", "poor@"))
    assert "GRANT CREATE ON DATABASE" in caught.value.hint


@pytest.mark.parametrize("wrong", ["mysql://me@host/db", "postgresql://host", "trainmaster.db", 7])
def test_an_address_of_something_else(wrong: object, tmp_path: Path) -> None:
    with pytest.raises(UserErrorException, match="not the URL of a PostgreSQL database"):
        Workspace.create("wrong", path=tmp_path / "ws", database=wrong)
    assert not (tmp_path / "ws").exists()


def test_a_lost_address_is_not_an_empty_workspace(url: str, tmp_path: Path) -> None:
    ws = Workspace.create("lost", path=tmp_path / "ws", show_output=False, database=url)
    end_workspace(ws.path)
    (tmp_path / "ws" / "database.json").unlink()
    with pytest.raises(WorkspaceException, match="address of the workspace's database is missing"):
        Workspace(path=ws.path).connection.call("status")


def test_deleting_a_workspace_drops_its_schema(url: str, tmp_path: Path) -> None:
    ws = Workspace.create("short", path=tmp_path / "ws", show_output=False, database=url)
    name = read_address(WorkspaceFolder(Path(ws.path))).schema
    assert name in schemas(url)
    ws.delete(no_wait=False)
    assert name not in schemas(url) and not (tmp_path / "ws" / "database.json").exists()


@pytest.mark.timeout(600)
def test_tests_of_runs_metrics_sweeps_and_models_pass(server: Server) -> None:
    wanted = " or ".join(name for names in ALSO_ON_POSTGRESQL.values() for name in names)
    files = [str(HERE / name) for name in ALSO_ON_POSTGRESQL]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-k",
        f"({wanted}) and not remote",
        *files,
    ]
    variables = {**os.environ, "TRAINMASTER_TESTS_DATABASE": server.create_database()}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout[-10_000:]}\n{done.stderr[-3000:]}"
    assert sum(map(len, ALSO_ON_POSTGRESQL.values())) <= int(done.stdout.rpartition(" passed")[0].split()[-1])
