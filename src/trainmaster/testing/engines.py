"""What every engine has to do, whatever its nodes are: start, logs, metrics, files, cancel, limits, failures, recovery.

    from trainmaster.testing import EngineConformance, EnginePlace

    @pytest.fixture(scope="module")
    def place(tmp_path_factory):
        ...
        yield EnginePlace(workspace, target="my-target", lose=..., left=...)

    class TestMyEngine(EngineConformance):
        pass

All tests use real runs of a real workspace, and only what a person could do. Nothing in them depends on how fast the
machine is: they wait for events, `patience` seconds at most.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest

from trainmaster import Estimator, Experiment, Gloo, Model, PyTorch, Run, Workspace
from trainmaster.shared.folders import WorkspaceFolder

T = TypeVar("T")

_MEMORY = "system/memory_gb"
_HEAD = "import os, signal, sys, time\nfrom trainmaster import Run\nrun = Run.get_context()\n"
_LOG = "azureml-logs/70_driver_log.txt"


def _no_matter(run: Run) -> None:
    """Nothing has to be put right."""


def _unknown(run: Run) -> Sequence[str]:
    return ()


@dataclass(frozen=True)
class EnginePlace:
    """A target with two nodes at least, of the engine that is looked at, and what only its author can do to it."""

    workspace: Workspace
    target: str
    lose: Callable[[Run, int], None]
    """Ends node `number` of a run as a power failure would: its agent and processes are gone and have said nothing."""
    restore: Callable[[Run], None] = _no_matter
    """Brings back what `lose` took away."""
    left: Callable[[Run], Sequence[str]] = _unknown
    """The processes of a run that still live, on whatever node."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Further settings of every estimator, such as the Python that the nodes have."""
    patience: float = 240.0
    """Seconds that anything may take."""


class EngineConformance:
    """Inherit this and give the fixture `place`."""

    @pytest.fixture
    def bench(self, place: EnginePlace, tmp_path: Path) -> Bench:
        """Submits scripts to the place."""
        return Bench(place, tmp_path / "sources")

    def test_start(self, bench: Bench) -> None:
        """The script runs in its folder, with its arguments and variables, and with one process per node."""
        run = bench.submit(
            _HEAD
            + """
import helper
print('arguments', sys.argv[1:], os.environ['GIVEN'], helper.WORD, open('data/words.txt').read())
print('run', run.id, os.environ['AZUREML_RUN_ID'])
""",
            {"helper.py": "WORD = 'helped'\n", "data/words.txt": "zwölf"},
            script_params={"--lr": 0.1},
            environment_variables={"GIVEN": "a b"},
        )
        assert bench.wait_for_end(run)["status"] == "Completed"
        lines = bench.log(run).splitlines()
        assert lines == ["arguments ['--lr', '0.1'] a b helped zwölf", f"run {run.id} {run.id}"]

    def test_nodes(self, bench: Bench) -> None:
        """Two nodes: each process knows its place, and all write to one run."""
        run = bench.submit_pair(
            _HEAD
            + """
names = ('RANK', 'WORLD_SIZE', 'LOCAL_RANK', 'NODE_RANK')
print(*(os.environ[name] for name in names))
print(os.environ['MASTER_ADDR'], os.environ['MASTER_PORT'])
run.log('rank', int(os.environ['RANK']))
"""
        )
        assert bench.wait_for_end(run)["status"] == "Completed"
        first, second = (bench.log(run, rank).splitlines() for rank in (0, 1))
        assert [first[0], second[0]] == ["0 2 0 0", "1 2 0 1"]
        assert first[1] == second[1]
        by_rank = run.get_metrics_by_rank()
        assert {rank: by_rank[rank]["rank"] for rank in (0, 1)} == {0: 0, 1: 1}

    def test_logs_while_it_runs(self, bench: Bench) -> None:
        """What a script prints is seen while it runs, and so is what it logs."""
        run = bench.submit(_HEAD + "print('here')\nrun.log('loss', 0.5)\nrun.log('loss', 0.25)\ntime.sleep(3600)")
        bench.wait_until(lambda: bench.log(run) == "here\n", "its first line")
        bench.wait_until(lambda: run.get_metrics().get("loss") == [0.5, 0.25], "its metrics")
        bench.wait_until(lambda: run.get_status() == "Running", "that it is Running")
        run.cancel()
        assert bench.wait_for_end(run)["status"] == "Canceled"

    def test_metrics(self, bench: Bench) -> None:
        """All of them, once each and in order, and readable as soon as the run has ended."""
        run = bench.submit_pair(
            _HEAD
            + """
for number in range(500):
    run.log('value', number)
run.log_table('table', {'a': [1, 2], 'b': [3, 4]})
"""
        )
        bench.wait_for_end(run)
        by_rank = run.get_metrics_by_rank()
        assert [by_rank[rank]["value"] for rank in (0, 1)] == [list(range(500))] * 2
        assert by_rank[0]["table"] == {"a": [1, 2], "b": [3, 4]}

    def test_files(self, bench: Bench, tmp_path: Path) -> None:
        """outputs/, logs/ and what was uploaded are files of the run, whole, as soon as it has ended."""
        run = bench.submit(
            _HEAD
            + """
os.makedirs('outputs/deep/er'); os.makedirs('logs', exist_ok=True)
open('outputs/empty', 'w').close()
open('outputs/deep/er/bytes', 'wb').write(bytes(range(256)) * 4096)
with open('logs/events', 'ab') as file:
    for number in range(200):
        file.write(b'event %d\\n' % number); file.flush()
open('outputs/model', 'w').write('first, and longer')
open('outputs/model', 'w').write('last')
run.upload_file('given/model', 'outputs/model')
with run.child_run('part') as child:
    child.upload_file('given/part', 'outputs/model')
"""
        )
        assert bench.wait_for_end(run)["status"] == "Completed"
        names = {"outputs/empty", "outputs/deep/er/bytes", "outputs/model", "logs/events", "given/model"}
        assert names <= set(run.get_file_names())
        run.download_files(prefix="outputs", output_directory=str(tmp_path))
        run.download_file("logs/events", str(tmp_path / "events"))
        assert (tmp_path / "outputs" / "empty").read_bytes() == b""
        assert (tmp_path / "outputs" / "deep" / "er" / "bytes").read_bytes() == bytes(range(256)) * 4096
        assert (tmp_path / "outputs" / "model").read_text() == "last"
        assert (tmp_path / "events").read_text() == "".join(f"event {number}\n" for number in range(200))
        assert [child.get_file_names() for child in run.get_children()] == [["given/part"]]

    def test_questions(self, bench: Bench, tmp_path: Path) -> None:
        """A script asks its workspace for secrets and models, and registers what it made."""
        workspace = bench.place.workspace
        workspace.get_default_keyvault().set_secret("conformance", "twelve chars")
        (tmp_path / "weights").write_text("of the workspace")
        theirs = Model.register(workspace, str(tmp_path / "weights"), "conformance-theirs")
        run = bench.submit(
            _HEAD
            + f"""
from trainmaster import Model
print(len(run.get_secret('conformance')), open(Model.get_model_path({theirs.name!r})).read())
open('outputs/weights', 'w').write('of the script')
print(run.register_model('conformance-ours', 'outputs/weights').name)
"""
        )
        assert bench.wait_for_end(run)["status"] == "Completed", bench.log(run)
        assert bench.log(run).splitlines() == ["12 of the workspace", "conformance-ours"]
        assert Path(Model(workspace, "conformance-ours").path).read_text() == "of the script"

    def test_cancel(self, bench: Bench) -> None:
        """The script may clean up; then every process of the run is gone, and what it wrote stays."""
        run = bench.submit(
            _HEAD
            + """
import subprocess
def stop(*_):
    print('cleaning up')
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(3600)'], start_new_session=True)
os.makedirs('outputs', exist_ok=True)
open('outputs/so_far', 'w').write('this')
run.log('ready', 1)
time.sleep(3600)
"""
        )
        bench.wait_until(lambda: run.get_metrics().get("ready") == 1, "that it runs")
        run.cancel()
        details = bench.wait_for_end(run)
        assert details["status"] == "Canceled"
        assert "error" not in details
        assert bench.log(run) == "cleaning up\n"
        assert "outputs/so_far" in run.get_file_names()
        bench.nothing_left(run)

    def test_cancel_before_it_runs(self, bench: Bench) -> None:
        """At whatever moment it is cancelled, it is Canceled and leaves nothing."""
        run = bench.submit("import time\ntime.sleep(3600)")
        run.cancel()
        assert bench.wait_for_end(run)["status"] == "Canceled"
        bench.nothing_left(run)

    def test_time_limit(self, bench: Bench) -> None:
        """A run that takes longer than it may is ended, and says so."""
        run = bench.submit("import time\nprint('begun')\ntime.sleep(3600)", max_run_duration_seconds=1)
        details = bench.wait_for_end(run)
        assert details["status"] == "Canceled"
        assert details["error"]["code"] == "MaxRunDurationExceeded"
        bench.nothing_left(run)

    def test_exit_code(self, bench: Bench) -> None:
        """A script that fails: its exit code, its last lines, and the files it left."""
        run = bench.submit(
            "open('outputs/so_far', 'w').write('this')\nprint('last words')\nraise SystemExit(7)", {"outputs/kept": ""}
        )
        details = bench.wait_for_end(run)
        assert details["status"] == "Failed"
        error = details["error"]
        assert (error["code"], error["rank"], error["exit_code"]) == ("ScriptFailed", 0, 7)
        assert "last words" in error["message"]
        assert "outputs/so_far" in run.get_file_names()

    def test_failing_rank(self, bench: Bench) -> None:
        """One failing rank ends the run, which names it; the other does not stay behind."""
        run = bench.submit_pair(
            _HEAD
            + """
if os.environ['RANK'] == '1':
    raise ValueError('the real mistake')
time.sleep(3600)
"""
        )
        details = bench.wait_for_end(run)
        assert details["status"] == "Failed"
        error = details["error"]
        assert (error["code"], error["rank"], error["node"]) == ("ScriptFailed", 1, 1)
        assert "the real mistake" in error["message"]
        bench.nothing_left(run)

    def test_lost_node(self, bench: Bench) -> None:
        """A node that goes without a word fails the run, which names it; nothing stays on the other nodes."""
        run = bench.submit_pair(_HEAD + "run.log('rank', int(os.environ['RANK']))\ntime.sleep(3600)")
        bench.wait_until(lambda: set(run.get_metrics_by_rank()) == {0, 1}, "both ranks")
        # Until then, what both nodes use is measured.
        bench.wait_until(lambda: set(run.get_system_metrics().get(_MEMORY, ())) == {0, 1}, "measurements of both ranks")
        bench.place.lose(run, 1)
        try:
            details = bench.wait_for_end(run)
        finally:
            bench.place.restore(run)
        assert details["status"] == "Failed"
        assert details["error"]["node"] == 1
        assert "node 1" in details["error"]["message"]
        bench.wait_until(lambda: not bench.place.left(run), "the end of all its processes")

    def test_adopted(self, bench: Bench) -> None:
        """The dispatcher is killed while a run goes on: the next one has all of its logs and metrics, once each."""
        run = bench.submit_pair(
            _HEAD
            + """
for number in range(40):
    print('line', number)
    run.log('number', number)
    time.sleep(0.1)
os.makedirs('outputs', exist_ok=True)
open('outputs/done_' + os.environ['RANK'], 'w').close()
"""
        )
        bench.wait_until(lambda: set(run.get_metrics_by_rank()) == {0, 1}, "both ranks")
        bench.kill_dispatcher()
        assert bench.wait_for_end(run)["status"] == "Completed"
        by_rank = run.get_metrics_by_rank()
        for rank in (0, 1):
            assert by_rank[rank]["number"] == list(range(40))
            assert bench.log(run, rank) == "".join(f"line {number}\n" for number in range(40))
        assert {"outputs/done_0", "outputs/done_1"} <= set(run.get_file_names())

    def test_ends_without_dispatcher(self, bench: Bench) -> None:
        """A run that ended while nobody looked has ended as it did."""
        run = bench.submit(_HEAD + "run.log('begun', 1)\ntime.sleep(1)\nprint('the end')\nraise SystemExit(3)")
        bench.wait_until(lambda: run.get_metrics().get("begun") == 1, "that it runs")
        bench.kill_dispatcher()
        details = bench.wait_for_end(run)
        assert (details["status"], details["error"]["exit_code"]) == ("Failed", 3)
        assert bench.log(run) == "the end\n"

    def test_cancelled_after_adoption(self, bench: Bench) -> None:
        """A run that an earlier dispatcher started can be cancelled."""
        run = bench.submit(_HEAD + "run.log('begun', 1)\ntime.sleep(3600)")
        bench.wait_until(lambda: run.get_metrics().get("begun") == 1, "that it runs")
        bench.kill_dispatcher()
        run.cancel()
        assert bench.wait_for_end(run)["status"] == "Canceled"
        bench.nothing_left(run)

    def test_two_runs_at_once(self, bench: Bench) -> None:
        """Two runs on two nodes: both run at the same time, and neither sees anything of the other."""
        text = _HEAD + "open('mine', 'x').write(run.id)\nprint(open('mine').read())\nrun.log('begun', 1)\n"
        runs = [bench.submit(text + "time.sleep(3600)") for _ in range(2)]
        for run in runs:
            bench.wait_until(lambda run=run: run.get_metrics().get("begun") == 1, "that it runs")  # type: ignore[misc]
        for run in runs:
            bench.wait_until(lambda run=run: run.get_status() == "Running", "that it is Running")  # type: ignore[misc]
        for run in runs:
            run.cancel()
        for run in runs:
            assert bench.wait_for_end(run)["status"] == "Canceled"
            assert bench.log(run) == f"{run.id}\n"

    def test_retry(self, bench: Bench) -> None:
        """The second attempt goes on in the working folder of the first, and each has its own log."""
        run = bench.submit(
            _HEAD
            + """
attempt = os.environ['TRAINMASTER_ATTEMPT']
print('attempt', attempt)
run.log('attempt', int(attempt))
if attempt == '1':
    open('checkpoint', 'w').write('half')
    raise SystemExit(5)
print(open('checkpoint').read())
""",
            max_retries=1,
        )
        assert bench.wait_for_end(run)["status"] == "Completed"
        assert bench.log(run) == "attempt 2\nhalf\n"
        first = bench.read(run, "azureml-logs/attempt_1/70_driver_log.txt")
        assert first.startswith("attempt 1\n")
        assert run.get_metrics()["attempt"] == [1, 2]


class Bench:
    """Submits scripts and looks at what becomes of them."""

    def __init__(self, place: EnginePlace, sources: Path) -> None:
        self.place = place
        self._sources = sources
        self._count = 0

    def submit(self, script: str, files: dict[str, str] | None = None, **settings: Any) -> Run:
        """One process on one node."""
        return self._send(Estimator, script, files or {}, settings)

    def submit_pair(self, script: str, **settings: Any) -> Run:
        """One process on each of two nodes."""
        return self._send(PyTorch, script, {}, {"node_count": 2, "distributed_training": Gloo(), **settings})

    def _send(self, kind: type[Any], script: str, files: dict[str, str], settings: dict[str, Any]) -> Run:
        self._count += 1
        source = self._sources / str(self._count)
        for name, text in {"train.py": script, **files}.items():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_text(text)
        known = {"compute_target": self.place.target, "user_managed": True, **self.place.settings}
        estimator = kind(str(source), entry_script="train.py", **{**known, **settings})
        return Experiment(self.place.workspace, "conformance").submit(estimator)

    def wait_for_end(self, run: Run) -> dict[str, Any]:
        """The details of a run, once it has ended."""
        self.wait_until(lambda: run.get_status() in ("Completed", "Failed", "Canceled"), "the end of the run")
        return run.get_details()

    def log(self, run: Run, rank: int | None = None) -> str:
        """What a process has printed so far."""
        return self.read(run, _LOG if rank is None else _LOG.replace(".txt", f"_{rank}.txt"))

    def read(self, run: Run, name: str) -> str:
        """A file of the run as text; empty if it is not there."""
        return str(run.get_details_with_logs()["logFiles"].get(name, ""))

    def nothing_left(self, run: Run) -> None:
        """No process of a run that has ended lives anywhere."""
        assert list(self.place.left(run)) == []

    def kill_dispatcher(self) -> None:
        """SIGKILL, as the kernel would send it; returns when it is gone."""
        pid = int(WorkspaceFolder(self.place.workspace.path).lock.read_text())
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        self.wait_until(lambda: not _drivers(pid), "the end of the dispatcher")

    def wait_until(self, condition: Callable[[], T], what: str) -> T:
        """Waits for what comes in its own time."""
        deadline = time.monotonic() + self.place.patience
        while not (found := condition()):
            assert time.monotonic() < deadline, f"{what} did not come within {self.place.patience} s"
            time.sleep(0.05)
        return found


def _drivers(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False
