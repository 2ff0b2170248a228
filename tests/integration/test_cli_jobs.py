"""Everything that `trainmaster submit` can run and say, as a person uses it: real processes, over both backends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.backends import new_name
from tests.conftest import end_workspace, until
from tests.integration.conftest import Gate

from trainmaster import Dataset, Environment, Workspace
from trainmaster.shared.job_spec import load_spec

BACKENDS = ("local", "server")
THIS_VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
COMMAND = [sys.executable, "-m", "trainmaster.cli"]
RANK = """\
import os, sys
from trainmaster import Run
run = Run.get_context()
run.log("rank", int(os.environ.get("RANK", -1)))
print("rank", os.environ.get("RANK"), "of", os.environ.get("WORLD_SIZE"), sys.argv[1:], os.environ.get("COLOUR"))
"""
READ = """\
import os
from trainmaster import Run
place = os.environ["AZUREML_DATAREFERENCE_data"]
print("read", open(os.path.join(place, "a.txt")).read())
"""


def notebook(*cells: str, tagged: bool = False) -> str:
    """A notebook with these cells, of which the first may have parameters."""
    made = [
        {"cell_type": "code", "source": text, "metadata": {}, "outputs": [], "execution_count": None} for text in cells
    ]
    if tagged:
        made[0]["metadata"] = {"tags": ["parameters"]}
    return json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 4})


class Shell:
    """Runs commands in a folder with a project, with a home of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.home = folder, folder / "home"
        self.variables = {**os.environ, "TRAINMASTER_HOME": str(self.home)}
        self.project = folder / "project"
        (self.project / "package").mkdir(parents=True)
        (self.project / "train.py").write_text(RANK)
        (self.project / "package" / "train.py").write_text(RANK)
        (self.project / "read.py").write_text(READ)
        (self.project / "run.sh").write_text('#!/bin/bash -e\necho "shell: $1"\nfalse\necho never\n')

    def __call__(self, *argv: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [*COMMAND, *argv], cwd=self.folder, env=self.variables, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == code, (argv, done.returncode, done.stdout, done.stderr)
        return done

    def data(self, *argv: str, code: int = 0) -> Any:
        return json.loads(self(argv[0], "--json", *argv[1:], code=code).stdout)

    def workspace(self) -> Workspace:
        name = self.variables.get("TRAINMASTER_WORKSPACE")
        if name:
            return Workspace.get(name, server=self.variables["TRAINMASTER_SERVER"])
        return Workspace(path=self.home / "workspaces" / "default")


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory, backend: Any) -> Iterator[Shell]:
    made = Shell(tmp_path_factory.mktemp("jobs"))
    if backend is not None:
        made.variables["TRAINMASTER_WORKSPACE"] = name = new_name("jobs")
        backend.create_workspace(name)
        yield made
        end_workspace(backend.root / "workspaces" / name)
        return
    yield made
    for identity in made.home.glob("workspaces/*/workspace.json"):
        end_workspace(identity.parent)


def test_a_distributed_run_from_the_shell(shell: Shell) -> None:
    run = shell.data(
        "submit", "project", "train.py", "--user-managed", "--nodes", "2", "--processes-per-node", "2", "--gloo",
        "--name", "four of them", "--tag", "kind=base", "--env", "COLOUR=blue", "--wait", "--", "--lr", "0.1",
    )  # fmt: skip
    assert (run["status"], run["display_name"], run["tags"]) == ("Completed", "four of them", {"kind": "base"})
    logs = shell("logs", run["id"], "--rank", "all").stdout
    assert all(f"rank {rank} of 4 ['--lr', '0.1'] blue" in logs for rank in range(4))


def test_save_submit_and_write_again(shell: Shell, tmp_path: Path) -> None:
    saved = tmp_path / "job.yaml"
    options = ("project", "train.py", "--user-managed", "--nodes", "2", "--gloo", "--env", "COLOUR=red")
    assert shell("submit", *options, "--save", str(saved), "--", "--lr", "1").stdout == f"{saved}\n"
    assert "already exists" in shell("submit", *options, "--save", str(saved), code=2).stderr
    first = shell.data("submit", str(saved), "--set", "env.COLOUR=green", "--tag", "from=file", "--wait")
    assert "rank 1 of 2 ['--lr', '1'] green" in shell("logs", first["id"], "--rank", "1").stdout
    run = shell.workspace().get_run(first["id"])
    written = Path(run.to_job_file(tmp_path / "again.yaml"))
    second = shell.data("submit", str(written), "--wait")
    assert (second["experiment"], second["tags"]) == ("project", {"from": "file"})
    before, after = (load_spec(shell.workspace().get_run(each["id"])._record.spec) for each in (first, second))
    assert replace(after, inherited_variables={}) == replace(before, inherited_variables={})


def test_options_beside_a_file(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(
        f"folder: {shell.project}\nscript: train.py\nuser_managed: true\narguments: [a]\nexperiment: other\n"
    )
    plan = shell.data("submit", str(file), "--dry-run", "-e", "mine", "--env", "COLOUR=red", "--", "b", "c")
    assert (plan["experiment"], plan["processes"][0]["command"][1:]) == ("mine", ["train.py", "b", "c"])
    assert plan["processes"][0]["variables"]["COLOUR"] == "red"


def test_all_mistakes_of_a_file(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("scrypt: train.py\nnodes: two\nframework: pytorc\nenv: [A]\n")
    told = shell("submit", str(file), code=2).stderr
    assert f"{file} has 4 mistakes" in told and "Traceback" not in told
    for words in ("line 1, scrypt: unknown key", "line 2, nodes: must be a whole number", "Did you mean pytorch?"):
        assert words in told


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--nodes", "2"), "--nodes needs --mpi, --gloo, --nccl or --ps"),
        (("--framework", "pytorch", "--ps", "2:1"), "--ps cannot be used with --framework pytorch"),
        (("--ps", "2"), "--ps '2' is not WORKERS:SERVERS"),
        (("--user-managed", "--pip", "numpy"), "--pip cannot be given together with --user-managed"),
        (("--environment", "mine"), "there is no environment 'mine'"),
        (("--user-managed", "--input", "data=nowhere/x"), "nowhere"),
    ],
)
def test_one_clear_error(shell: Shell, options: tuple[str, ...], words: str) -> None:
    told = shell("submit", "project", "train.py", *options, code=2).stderr
    assert words in told and "Traceback" not in told and told.count("error:") == 1


def test_a_framework_is_planned(shell: Shell) -> None:
    options = ("--framework", "pytorch=2.13", "--pip", "pandas", "--nodes", "2", "--gloo")
    plan = shell.data("submit", "project", "train.py", *options, "--dry-run")
    assert {"torch==2.13.0", "pandas"} <= set(plan["environment"]["packages"])
    assert len(plan["processes"]) == 2


def test_a_module(shell: Shell) -> None:
    done = shell("submit", "project", "-m", "package.train", "--user-managed", "--wait", "--", "x")
    assert "rank None of None ['x'] None" in done.stdout
    assert "does not exist" in shell("submit", "project", "-m", "package.trian", code=2).stderr


def test_a_shell_script_ends_at_its_first_error(shell: Shell) -> None:
    done = shell("submit", "project", "run.sh", "--user-managed", "--wait", "--", "two words", code=1)
    assert "shell: two words\n" in done.stdout and "never" not in done.stdout


def test_a_command_line(shell: Shell) -> None:
    line = "echo first && echo 'second one' > outputs/a.txt"
    run = shell.data("submit", "project", "--command", line, "--user-managed", "--wait")
    assert run["status"] == "Completed"
    assert "outputs/a.txt" in shell("files", run["id"]).stdout


@pytest.mark.local_only("the Python is one of this machine")
def test_the_python_of_a_command_line_is_that_of_the_run(shell: Shell, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "own")], check=True)
    line = "python -c 'import sys; print(sys.prefix)'"
    python = str(tmp_path / "own" / "bin" / "python")
    assert str(tmp_path / "own") in shell("submit", "project", "--command", line, "--python", python, "--wait").stdout
    assert sys.prefix in shell("submit", "project", "--command", line, "--user-managed", "--wait").stdout


def test_parameter_servers_from_the_shell(shell: Shell) -> None:
    (shell.project / "task.py").write_text(
        "import json, os, time\ntask = json.loads(os.environ['TF_CONFIG'])['task']\nprint(task, flush=True)\n"
        # The server has to be there before the workers may end: then it is seen to have printed.
        "if task['type'] == 'ps':\n"
        "    open('served', 'w').close()\n"
        "    time.sleep(600)\n"
        "while not os.path.exists('served'):\n"
        "    time.sleep(0.01)\n"
    )
    run = shell.data("submit", "project", "task.py", "--user-managed", "--nodes", "2", "--ps", "2:1", "--wait")
    assert run["status"] == "Completed"
    logs = shell("logs", run["id"], "--rank", "all").stdout
    assert all(str({"type": kind, "index": n}) in logs for kind, n in (("worker", 0), ("worker", 1), ("ps", 0)))


def test_datasets_outputs_and_checkpoints_from_the_shell(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    workspace = shell.workspace()
    store = workspace.get_default_datastore()
    store.upload(str(tmp_path), "tables", overwrite=True, show_progress=False)
    Dataset.File.from_files([(store, "tables")], validate=False).register(workspace, "tables", create_new_version=True)
    (shell.project / "use.py").write_text(
        "import os, sys\nfrom azureml.core import Run\n"
        "place = Run.get_context().input_datasets['given']\n"
        "print('dataset', open(os.path.join(place, 'a.csv')).read().split())\n"
        "out = os.environ['AZUREML_DATAREFERENCE_made']\n"
        "open(os.path.join(out, 'model.txt'), 'w').write('weights')\n"
        "print('resumed', open(os.path.join(sys.argv[sys.argv.index('--resume-from') + 1], 'a.csv')).read().split())\n"
    )
    done = shell(
        "submit", "project", "use.py", "--user-managed", "--dataset", "given=tables@download", "--output",
        f"made={store.name}/models/one", "--resume-from", f"{store.name}/tables", "--wait",
    )  # fmt: skip
    assert "dataset ['x,y', '1,2']" in done.stdout and "resumed ['x,y', '1,2']" in done.stdout
    store.download(str(tmp_path / "back"), prefix="models/one", overwrite=True, show_progress=False)
    assert (tmp_path / "back" / "models" / "one" / "model.txt").read_text() == "weights"


@pytest.mark.local_only("building does not depend on the backend")
def test_a_registered_environment_from_the_shell(shell: Shell) -> None:
    environment = Environment("with-six")
    environment.python.conda_dependencies.add_pip_package("six")
    environment.register(shell.workspace())
    (shell.project / "six_there.py").write_text("import sys, six\nprint(sys.prefix, six.__name__)\n")
    done = shell("submit", "project", "six_there.py", "--environment", "with-six", "--wait")
    assert "/environments/" in done.stdout and done.stdout.endswith(" six\n")


def test_data_of_a_datastore(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("something")
    store = shell.workspace().get_default_datastore()
    store.upload(str(tmp_path), "things", overwrite=True, show_progress=False)
    for mode in ("", "@download"):
        given = f"data={store.name}/things{mode}"
        done = shell("submit", "project", "read.py", "--user-managed", "--input", given, "--wait")
        assert "read something" in done.stdout


def test_a_notebook_is_kept_while_it_runs(shell: Shell, gate: Callable[..., Gate]) -> None:
    held = gate("cell")
    first = "rate = 0.5"
    second = "from trainmaster import Run\nrun = Run.get_context()\nrun.log('rate', rate)\nprint('rate is', rate)"
    (shell.project / "live.ipynb").write_text(notebook(first, second, f"{held.wait}; None", "'the end'", tagged=True))
    run_id = shell("submit", "project", "live.ipynb", "--user-managed", "--", "--rate", "0.25").stdout.strip()
    held.await_arrival()
    run = shell.workspace().get_run(run_id)
    until(lambda: "outputs/live.ipynb" in run.get_file_names())
    before = _cells(shell, run, "before.ipynb")
    # The cell with the parameters of the run is inserted behind the tagged one.
    assert before[1]["source"].endswith("rate = 0.25") and before[2]["outputs"][0]["text"] == "rate is 0.25\n"
    assert before[4]["outputs"] == []
    held.open()
    assert run.wait_for_completion(show_output=False)["status"] == "Completed"
    assert _cells(shell, run, "after.ipynb")[4]["outputs"][0]["data"] == {"text/plain": "'the end'"}
    assert run.get_metrics() == {"rate": 0.25}
    assert shell("logs", run_id).stdout.endswith("rate is 0.25\n'the end'\n")


def _cells(shell: Shell, run: Any, name: str) -> list[dict[str, Any]]:
    run.download_file("outputs/live.ipynb", str(shell.folder / name))
    cells: list[dict[str, Any]] = json.loads((shell.folder / name).read_text())["cells"]
    for cell in cells:
        cell["source"] = "".join(cell["source"])
        for output in cell.get("outputs", []):
            if "text" in output:
                output["text"] = "".join(output["text"])
            if "data" in output:
                output["data"] = {kind: "".join(text) for kind, text in output["data"].items()}
    return cells


def test_a_failing_cell_fails_every_rank_of_a_notebook(shell: Shell) -> None:
    text = "import os\nassert os.environ['RANK'] != '1', 'not this one'"
    (shell.project / "bad.ipynb").write_text(notebook(text, "print('next')"))
    options = ("--user-managed", "--nodes", "2", "--gloo", "--wait")
    run = shell.data("submit", "project", "bad.ipynb", *options, code=1)
    assert "AssertionError: not this one" in shell("show", run["id"]).stdout
    log = shell("logs", run["id"], "--rank", "1").stdout
    assert "Cell 1 of bad.ipynb failed.\nTraceback (most recent call last):\n" in log
    assert "outputs/bad_rank_1.ipynb" in shell("files", run["id"]).stdout


@pytest.mark.local_only("the Python is one of this machine")
def test_a_python_that_cannot_run_notebooks(shell: Shell, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    (shell.project / "plain.ipynb").write_text(notebook("1"))
    python = str(tmp_path / "bare" / "bin" / "python")
    told = shell("submit", "project", "plain.ipynb", "--python", python, "--wait", code=1).stderr
    assert f"this Python lacks nbclient and ipykernel, which run notebooks; install them: {python} -m pip" in told


@pytest.mark.local_only("building does not depend on the backend")
@pytest.mark.parametrize("version", ["", "3.9", "3.13"])
def test_a_notebook_in_an_environment_of_its_own(shell: Shell, version: str) -> None:
    code = "import sys, six\nprint(sys.prefix, '%d.%d' % sys.version_info[:2], six.__name__)"
    (shell.project / "own.ipynb").write_text(notebook(code))
    chosen = ("--python-version", version) if version else ()
    done = shell("submit", "project", "own.ipynb", "--pip", "six", *chosen, "--wait")
    assert "/environments/" in done.stdout and done.stdout.endswith(f" {version or THIS_VERSION} six\n")
