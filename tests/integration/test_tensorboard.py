"""A real TensorBoard on real runs, and metrics that it reads."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.backends import opening_code
from tests.conftest import ended, until
from tests.integration.conftest import Gate

from trainmaster import Experiment, Workspace
from trainmaster.job.errors import UserErrorException
from trainmaster.notebook.tensorboard import Tensorboard, board, export_to_tensorboard
from trainmaster.sdk.run.run import Run

BACKENDS = ("local", "server")

LIVE = """\
import os, sys
sys.path.insert(0, {writer!r})
import events
os.makedirs("logs", exist_ok=True)
with open("logs/events.out.tfevents.1.host", "wb") as file:
    file.writelines(events.event_file(1000.0, [events.scalar("loss", 0.5, 0, 1000.0)]))
    file.flush()
    {wait}
    file.write(events.record(events.scalar("loss", 0.25, 1, 1001.0)))
"""


def free_port() -> int:
    with socket.socket() as place:
        place.bind(("localhost", 0))
        return int(place.getsockname()[1])


def get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=120) as answer:
        return json.loads(answer.read())


def shown(url: str, run: str, tag: str) -> list[float]:
    try:
        return [value for _, _, value in get(f"{url}data/plugin/scalars/scalars?run={run}&tag={tag}")]
    except OSError:
        # Not there yet, or too busy to answer.
        return []


def refuses(url: str) -> bool:
    try:
        urllib.request.urlopen(url, timeout=120).close()
    except OSError:
        return True
    return False


def test_logs_are_shown_while_they_grow_and_after_the_end(
    launch: Callable[..., Run], gate: Callable[..., Gate], tmp_path: Path
) -> None:
    between = gate("between")
    run = launch(LIVE.format(wait=between.wait, writer=str(Path(board.__file__).parent)))
    between.await_arrival()
    tensorboard = Tensorboard([run], port=free_port())
    url = tensorboard.start()
    try:
        assert tensorboard.start() == url
        until(lambda: shown(url, run.id, "loss") == [0.5], what="the first value")
        between.open()
        assert ended(run)["status"] == "Completed"
        until(lambda: shown(url, run.id, "loss") == [0.5, 0.25], what="the second value")
    finally:
        tensorboard.stop()
    assert refuses(url)
    tensorboard.stop()
    assert "logs/events.out.tfevents.1.host" in run.get_file_names()


@pytest.fixture(scope="module")
def quiet(shared: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run that has ended, with metrics of all kinds and a child."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("current"))
        run = Experiment(shared, "exported").start_logging(snapshot_directory=None)
    run.display_name = "first: try"
    for value in (0.5, 0.25, float("nan")):
        run.log("loss", value)
    run.log("accuracy", 1, step=500)
    run.log("note", "a text")
    run.log_row("both", x=1, y="z")
    child = run.child_run()
    child.log("loss", 7)
    child.complete()
    run.complete()
    return run


@pytest.mark.local_only("ports do not depend on the workspace")
@pytest.mark.parametrize("listens", [True, False])
def test_a_taken_port_leads_to_the_next(quiet: Run, tmp_path: Path, listens: bool) -> None:
    with socket.socket() as taken:
        taken.bind(("localhost", 0))
        if listens:
            taken.listen()
        port = taken.getsockname()[1]
        tensorboard = Tensorboard(quiet, local_root=tmp_path / "root", port=port, use_display_name=True)
        url = tensorboard.start()
        try:
            assert f":{port}/" not in url
            assert get(f"{url}data/environment")["data_location"] == str(tmp_path / "root")
            assert [path.name for path in (tmp_path / "root").iterdir()] == ["first_ try"]
        finally:
            tensorboard.stop()
    assert list((tmp_path / "root").iterdir()) == []


def test_it_ends_with_the_program_that_started_it(quiet: Run, tmp_path: Path) -> None:
    script = (
        "import sys, time; from trainmaster import Workspace\n"
        "from trainmaster.notebook.tensorboard import Tensorboard\n"
        f"run = {opening_code(quiet.experiment.workspace)}.get_run({quiet.id!r})\n"
        f"print(Tensorboard([run], local_root={str(tmp_path / 'root')!r}, port={free_port()}).start(), flush=True)\n"
        "sys.stdin.read()\n"
    )
    for end in ("kill", "exit"):
        program = subprocess.Popen(
            [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert program.stdin is not None and program.stdout is not None
        url = program.stdout.readline().strip()
        assert not refuses(url)
        if end == "kill":
            os.kill(program.pid, signal.SIGKILL)
        program.stdin.close()
        program.wait(120)
        program.stdout.close()
        until(lambda url=url: refuses(url), what="its end")
    assert list((tmp_path / "root").iterdir()) == []


def test_what_stands_in_the_way_is_left_alone(quiet: Run, tmp_path: Path) -> None:
    (tmp_path / quiet.id).write_text("mine")
    with pytest.raises(UserErrorException, match="cannot create"):
        Tensorboard(quiet, local_root=tmp_path, port=free_port()).start()
    assert (tmp_path / quiet.id).read_text() == "mine"


def test_without_the_package_the_error_says_what_to_do(quiet: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(board, "find_spec", lambda name: None)
    with pytest.raises(UserErrorException, match="pip install tensorboard"):
        Tensorboard(quiet).start()


@pytest.mark.parametrize("wrong", [{"runs": "run_1"}, {"runs": 7}, {"port": 0}, {"port": "6006"}])
def test_wrong_parameters(quiet: Run, wrong: dict[str, Any]) -> None:
    with pytest.raises(UserErrorException):
        Tensorboard(**{"runs": quiet, **wrong})


def test_metrics_can_be_read_by_tensorboard(quiet: Run, tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_multiplexer import EventMultiplexer

    for _ in range(2):
        export_to_tensorboard(quiet, str(tmp_path / "logs"))
    found = EventMultiplexer().AddRunsFromDirectory(str(tmp_path / "logs")).Reload()
    child = next(iter(quiet.get_children()))
    assert set(found.Runs()) == {quiet.id, child.id}
    loss = found.Scalars(quiet.id, "loss")
    assert [event.step for event in loss] == [0, 1, 2]
    assert [event.value for event in loss][:2] == [0.5, 0.25]
    assert loss[0].wall_time == pytest.approx(quiet._record.created_at, abs=600)
    assert [(event.step, event.value) for event in found.Scalars(quiet.id, "accuracy")] == [(500, 1.0)]
    assert [event.value for event in found.Scalars(quiet.id, "both/x")] == [1.0]
    assert found.Tensors(quiet.id, "both/y")[0].tensor_proto.string_val == [b"z"]
    assert [event.value for event in found.Scalars(child.id, "loss")] == [7.0]


def test_without_recursive_only_the_run_itself(quiet: Run, tmp_path: Path) -> None:
    export_to_tensorboard([quiet], tmp_path, recursive=False)
    assert [path.name for path in tmp_path.iterdir() if path.name != "home"] == [quiet.id]
