"""Metrics: what the script logs is what get_metrics gives, with v1's rules."""

from __future__ import annotations

import math
import sqlite3
from contextlib import closing

import pytest
from tests.backends import folder_of, opening_code
from tests.conftest import ended, until

from trainmaster import Experiment
from trainmaster.job.errors import UserErrorException
from trainmaster.shared.folders import WorkspaceFolder

BACKENDS = ("local", "server")

pytestmark = pytest.mark.usefixtures("notebook_folder")

HEAD = "from azureml.core import Run\nrun = Run.get_context()\n"


def test_shapes(launch):
    run = launch(
        HEAD
        + """
run.log('once', 0.5)
for n in range(3):
    run.log('many', n)
run.log_list('list', (x * x for x in range(4)))
run.log_row('row', x=1, y='a')
run.log_row('rows', x=1)
run.log_row('rows', x=2, y=3)
run.log_table('table', {'a': [1, 2], 'b': [3, 4]})
run.log('text', 'hello'); run.log('yes', True); run.log('none', None)
run.log('nan', float('nan')); run.log('inf', float('inf'))
"""
    )
    ended(run)
    metrics = run.get_metrics()
    assert math.isnan(metrics.pop("nan"))
    assert metrics == {
        "once": 0.5,
        "many": [0, 1, 2],
        "list": [0, 1, 4, 9],
        "row": {"x": 1, "y": "a"},
        "rows": {"x": [1, 2], "y": [None, 3]},
        "table": {"a": [1, 2], "b": [3, 4]},
        "text": "hello",
        "yes": True,
        "none": None,
        "inf": math.inf,
    }
    assert run.get_metrics(name="many") == {"many": [0, 1, 2]}
    assert run.get_metrics(name="unknown") == {}


def test_seen_while_it_runs(launch, gate):
    here = gate("here")
    run = launch(f"{HEAD}run.log('live', 1)\n{here.wait}\nrun.log('live', 2)")
    here.await_arrival()
    assert run.get_metrics() == {"live": 1}
    here.open()
    ended(run)
    assert run.get_metrics() == {"live": [1, 2]}


def test_kept_through_sigkill(launch):
    run = launch(HEAD + "import os\nfor n in range(5000): run.log('n', n)\nos.kill(os.getpid(), 9)")
    assert ended(run)["status"] == "Failed"
    assert run.get_metrics() == {"n": list(range(5000))}


def test_pictures_and_json(launch, tmp_path):
    run = launch(
        HEAD
        + """
import base64
png = base64.b64decode('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9Q'
                       'DwADhgGAWjR9awAAAABJRU5ErkJggg==')
open('dot.png', 'wb').write(png)
run.log_image('dot', path='dot.png')
matrix = {'schema_type': 'confusion_matrix', 'schema_version': 'v1', 'data': {'matrix': [[1]]}}
run.log_confusion_matrix('matrix', matrix)
inside = run.get_metrics(populate=True)
assert inside == {'dot': png, 'matrix': matrix}, inside
"""
    )
    assert ended(run)["status"] == "Completed"
    metrics = run.get_metrics()
    assert metrics["dot"] == "aml://artifactId/dot.png"
    assert "dot.png" in run.get_file_names()
    assert metrics["matrix"].startswith("aml://artifactId/matrix")
    contents = run.get_metrics(populate=True)
    assert contents["matrix"]["data"] == {"matrix": [[1]]} and contents["dot"].startswith(b"\x89PNG"), "as in the job"


def test_wrong_values_are_the_scripts_fault(launch):
    error = ended(launch(HEAD + "run.log('list', [1, 2])"))["error"]
    assert error["code"] == "ScriptFailed"
    assert "UserErrorException" in error["message"]
    assert "log_list" in error["message"]


def test_recursive(shared):
    parent = Experiment(shared, "tree").start_logging(snapshot_directory=None)
    parent.log("m", 1)
    child = parent.child_run("child")
    child.log("m", 2)
    grandchild = child.child_run("grandchild")
    grandchild.log("other", 3)
    assert parent.get_metrics() == {"m": 1}
    assert parent.get_metrics(recursive=True) == {parent.id: {"m": 1}, child.id: {"m": 2}, grandchild.id: {"other": 3}}
    assert parent.get_metrics("m", recursive=True)[grandchild.id] == {}
    parent.complete()


def test_logged_from_outside(launch):
    run = launch("")
    ended(run)
    run.log("after", 1)
    run.flush()
    again = run.experiment.workspace.get_run(run.id)
    assert again.get_metrics() == {"after": 1}
    with pytest.raises(UserErrorException):
        run.log("bad", [1])


def test_two_programs_log_to_one_run(shared):
    import subprocess
    import sys

    run = Experiment(shared, "two").start_logging(snapshot_directory=None)
    run.log("m", 0)
    code = (
        "import sys\nfrom trainmaster import Workspace\n"
        f"run = {opening_code(shared)}.get_run(sys.argv[1])\nrun.log('m', 1)\nrun.tag('from', 'there')\n"
    )
    subprocess.run([sys.executable, "-c", code, run.id], check=True, timeout=120)
    assert sorted(run.get_metrics()["m"]) == [0, 1]
    assert run.get_tags() == {"from": "there"}
    assert run.get_status() == "Running"
    run.complete()


def test_names_in_the_folder_of_journals_that_cannot_be_read(launch, gate, shared):
    """They cost nothing: neither this run its end and its metrics, nor other runs that theirs are read in time."""
    here, there = gate("here"), gate("there")
    run = launch(
        f"""{HEAD}
import os
folder = os.path.abspath('../journals')
os.symlink('nowhere', os.path.join(folder, '0-0-dangling.jsonl'))
os.symlink('0-0-loop.jsonl', os.path.join(folder, '0-0-loop.jsonl'))
os.mkdir(os.path.join(folder, '0-0-folder.jsonl'))
open(os.path.join(os.fsencode(folder), b'0-\\xff.jsonl'), 'w').close()
run.log('loss', 0.5)
{here.wait}
"""
    )
    here.await_arrival()
    other = launch(f"{HEAD}run.log('loss', 0.25)\n{there.wait}")
    there.await_arrival()
    until(lambda: other.id in read_runs(shared), what="reading the other run's journal without being asked")
    there.open()
    here.open()
    assert ended(run)["status"] == ended(other)["status"] == "Completed"
    assert (run.get_metrics(), other.get_metrics()) == ({"loss": 0.5}, {"loss": 0.25})
    (warning,) = run.get_details()["warnings"]
    assert "skipped 4 entries that cannot be read" in str(warning)


def read_runs(workspace):
    """The runs of which something was brought into the database."""
    database = WorkspaceFolder(folder_of(workspace)).database
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as connection:
        rows = connection.execute("SELECT runs.id FROM runs JOIN journals ON journals.run_seq = runs.seq").fetchall()
    return {run_id for (run_id,) in rows}
