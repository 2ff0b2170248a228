"""The command line as a person uses it: real processes, a workspace of its own."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.backends import new_name
from tests.conftest import end_workspace, until

BACKENDS = ("local", "server")
COMMAND = [sys.executable, "-m", "trainmaster.cli"]
RUN_ID = re.compile(r"\w[\w-]*_\d+_[0-9a-f]{8}")
SCRIPTS = {
    "hello.py": "import sys\nprint('hello', *sys.argv[1:])\nprint('to stderr', file=sys.stderr)\n",
    "fail.py": "print('before')\nraise ValueError('no luck')\n",
    "wait.py": "import time\nprint('waiting', flush=True)\ntime.sleep(600)\n",
    "variables.py": "import os\nprint(os.environ['COLOUR'], os.environ['EMPTY'] == '')\n",
    "work.py": """\
import os
from trainmaster import Run
run = Run.get_context()
for step in range(500):
    run.log("loss", 1 / (step + 1))
run.log("strange", float("nan"))
os.makedirs("outputs", exist_ok=True)
with open("outputs/model.txt", "w") as file:
    file.write("weights")
print("größe ✓")
""",
}


class Shell:
    """Runs commands in a folder, with a home of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.project = folder / "my project"
        self.project.mkdir()
        for name, text in SCRIPTS.items():
            (self.project / name).write_text(text)
        self.variables = {
            **{name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "TRAINMASTER_RUN_ID")},
            "TRAINMASTER_HOME": str(self.home),
            "TERM": "xterm-256color",
        }

    def __call__(self, *argv: str, code: int = 0, **variables: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [*COMMAND, *argv],
            cwd=self.folder,
            env={**self.variables, **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == code, (argv, done.returncode, done.stdout, done.stderr)
        assert "Traceback (most recent call last)" not in done.stderr
        assert "\x1b" not in done.stdout + done.stderr
        return done

    def data(self, *argv: str, code: int = 0) -> Any:
        return json.loads(self(*argv, "--json", code=code).stdout)

    def submit(self, script: str, *argv: str) -> str:
        """The id of a new run in this Python."""
        own, _, behind = " ".join(argv).partition("-- ")
        more = ["--", *behind.split()] if behind else []
        return self("submit", str(self.project), script, "--user-managed", *own.split(), *more).stdout.strip()

    def start(self, *argv: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*COMMAND, *argv],
            cwd=self.folder,
            env=self.variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory, backend: Any) -> Iterator[Shell]:
    """One home and one dispatcher for the tests that do not disturb it."""
    made = Shell(tmp_path_factory.mktemp("cli"))
    if backend is not None:
        made.variables["TRAINMASTER_WORKSPACE"] = name = new_name("cli")
        backend.create_workspace(name)
        yield made
        end_workspace(backend.root / "workspaces" / name)
        return
    yield made
    for identity in made.home.glob("workspaces/*/workspace.json"):
        end_workspace(identity.parent)


@pytest.fixture(scope="module")
def worked(shell: Shell) -> str:
    """A run that logged and wrote."""
    run = shell.submit("work.py", "--tag kind=work")
    shell("logs", "-f", run)
    return run


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Shell]:
    """A home that nobody has touched."""
    made = Shell(tmp_path)
    yield made
    for identity in made.home.glob("workspaces/*/workspace.json"):
        end_workspace(identity.parent)


# submit


def test_submit_prints_the_id_alone(shell: Shell) -> None:
    done = shell("submit", str(shell.project), "hello.py", "--user-managed")
    assert RUN_ID.fullmatch(done.stdout.strip())
    assert done.stdout.startswith("my-project_")


def test_waiting_shows_what_the_script_prints(shell: Shell) -> None:
    done = shell("submit", "my project", "hello.py", "--user-managed", "-w", "--", "--lr", "0.1", "--json")
    assert sorted(done.stdout.splitlines()) == ["hello --lr 0.1 --json", "to stderr"]
    assert "Completed after" in done.stderr


def test_the_exit_code_of_a_failed_run_is_1(shell: Shell) -> None:
    done = shell("submit", "my project", "fail.py", "--user-managed", "--wait", code=1)
    assert done.stdout.startswith("before\n")
    assert "ValueError: no luck" in done.stdout
    assert "Failed after" in done.stderr
    assert done.stderr.rstrip().endswith(": ValueError: no luck")


def test_the_exit_code_of_a_cancelled_run_is_3(shell: Shell) -> None:
    with shell.start("submit", "my project", "wait.py", "--user-managed", "--wait") as waiting:
        assert waiting.stdout is not None
        assert waiting.stdout.readline() == "waiting\n"
        run = shell.data("runs", "-n", "1")[0]["id"]
        assert shell.data("cancel", run, "--wait")[0]["status"] == "Canceled"
        assert waiting.wait(timeout=120) == 3


def test_waiting_with_json_gives_the_run_alone(shell: Shell) -> None:
    done = shell("submit", "my project", "hello.py", "--user-managed", "--wait", "--json", "--tag", "a=b")
    run = json.loads(done.stdout)
    assert (run["status"], run["tags"]) == ("Completed", {"a": "b"})
    assert "hello" in done.stderr


def test_variables_and_experiment(shell: Shell) -> None:
    options = ["--env", "COLOUR=red=blue", "--env", "EMPTY=", "-e", "paint", "--wait"]
    done = shell("submit", "my project", "variables.py", "--user-managed", *options)
    assert done.stdout == "red=blue True\n"
    assert shell.data("runs", "-e", "paint")[0]["experiment"] == "paint"


def test_a_python_by_its_path(shell: Shell) -> None:
    done = shell("submit", "my project", "hello.py", "--python", sys.executable, "--wait")
    assert "hello" in done.stdout


def test_an_environment_of_its_own_says_what_it_does(shell: Shell) -> None:
    done = shell("submit", "my project", "hello.py", "--wait")
    assert sorted(done.stdout.splitlines()) == ["hello", "to stderr"]


def test_the_time_limit(shell: Shell) -> None:
    done = shell("submit", "my project", "wait.py", "--user-managed", "--wait", "--max-seconds", "1", code=3)
    assert "max_run_duration_seconds=1" in done.stderr


@pytest.mark.parametrize(
    ("argv", "says", "code"),
    [
        (["submit", "nowhere", "a.py"], "does not exist", 2),
        (["submit", "my project", "nothing.py"], "nothing.py", 2),
        (["submit", "my project", "hello.py", "--lr", "1"], "--lr", 2),
        (["submit", "my project", "hello.py", "--env", "A"], "NAME=VALUE", 2),
        (["submit", "my project", "hello.py", "--pip", "a", "--user-managed"], "--pip", 2),
        (["submit", "my project", "hello.py", "--pip-file", "none.txt"], "none.txt", 2),
        (["submit", "my project", "hello.py", "--max-seconds", "0"], "--max-seconds", 2),
        (["submit", "my project", "hello.py", "--max-retries", "-1"], "--max-retries", 2),
        (["submit", "my project", "hello.py", "--hang-seconds", "nan"], "--hang-seconds", 2),
        (["submit", "my project", "hello.py", "-e", "no/name"], "no/name", 2),
        (["submit", "my project", "hello.py", "-t", "moon", "--user-managed"], "moon", 4),
        (["show", "no_such_run"], "no_such_run", 4),
        (["logs", "@9999"], "@9999", 4),
        (["compute", "delete", "moon"], "moon", 4),
        (["runs", "--workspace", "elsewhere"], "elsewhere", 5),
        (["runs", "--status", "odd"], "odd", 2),
        (["runs", "-n", "0"], "--limit", 2),
        (["unheard"], "unheard", 2),
    ],
)
def test_a_mistake_is_one_error_in_words_or_json(shell: Shell, argv: list[str], says: str, code: int) -> None:
    done = shell(*argv, code=code)
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert says in done.stderr
    told = json.loads(shell(*argv, "--json", code=code).stdout)
    assert set(told["error"]) == {"type", "headline", "cause", "hint", "exit_code"}
    assert told["error"]["exit_code"] == code


@pytest.mark.local_only("on a server the path is one of its machine, and the run says that it does not exist")
def test_a_python_that_does_not_exist(shell: Shell) -> None:
    argv = ["submit", "my project", "hello.py", "--python", "no-such-python"]
    assert "--python 'no-such-python' does not exist" in shell(*argv, code=2).stderr


# dry run


def test_a_dry_run_tells_the_plan(shell: Shell, worked: str) -> None:
    before = [run["id"] for run in shell.data("runs", "-n", "1000")]
    argv = ["submit", "my project", "hello.py", "--dry-run", "--pip", "nothing-like-this", "--env", "A=1"]
    plan = shell.data(*argv)
    assert plan["environment"]["ready"] is False
    assert plan["environment"]["packages"] == ["nothing-like-this"]
    assert plan["snapshot"]["files"] == len(SCRIPTS)
    assert plan["target"]["name"] == "local"
    process = plan["processes"][0]
    assert process["command"][1:] == ["hello.py"]
    assert process["variables"]["A"] == "1"
    assert process["variables"]["AZUREML_ARM_PROJECT_NAME"] == "my-project"
    assert [run["id"] for run in shell.data("runs", "-n", "1000")] == before
    text = shell(*argv).stdout
    assert plan["environment"]["digest"] in text
    assert "to be built" in text


def test_a_dry_run_in_a_fresh_home_makes_nothing(alone: Shell) -> None:
    plan = alone.data("submit", "my project", "hello.py", "--dry-run", "--user-managed")
    assert plan["workspace"]["exists"] is False
    assert plan["target"]["has_room"] is True
    assert not alone.home.exists()


def test_a_dry_run_has_the_same_errors(shell: Shell) -> None:
    shell("submit", "my project", "hello.py", "--dry-run", "-t", "moon", code=4)
    shell("submit", "my project", "nothing.py", "--dry-run", code=2)


# Looking


def test_runs_lists_the_newest_first_and_cuts_no_id(shell: Shell, worked: str) -> None:
    name = "long-" + "x" * 150
    run = shell.submit("hello.py", f"-e {name} --wait")
    run = shell.data("runs", "-n", "1")[0]["id"]
    lines = shell("runs", "-n", "2").stdout.splitlines()
    # The second run has a tag.
    assert lines[0].split() == ["RUN", "TAGS", "EXPERIMENT", "STATUS", "TOOK", "CREATED", "NOTE"]
    assert lines[1].startswith(f"{run} ")
    assert len(lines) == 3


def test_runs_can_be_narrowed(shell: Shell, worked: str) -> None:
    assert [run["id"] for run in shell.data("runs", "--tag", "kind=work", "--status", "completed")] == [worked]
    assert shell.data("runs", "--tag", "kind=play") == []
    assert worked in shell("runs", "--tag", "kind").stdout
    assert shell("runs", "--tag", "kind=play").stdout == ""


def test_the_name_of_an_experiment_is_its_newest_run(shell: Shell) -> None:
    for _ in range(2):
        newest = shell("submit", "my project", "hello.py", "--user-managed", "-e", "twice").stdout.strip()
    # Their ids begin with the same word.
    shell("submit", "my project", "hello.py", "--user-managed", "-e", "twice-more")
    done = shell("show", "twice")
    assert done.stdout.startswith(newest) and f"its newest run is {newest}" in done.stderr
    assert shell.data("show", "twice-more")["experiment"] == "twice-more"
    # What changes runs has to be told which.
    for command in (["cancel"], ["runs", "delete"]):
        told = shell(*command, "twice", code=4).stderr
        assert "'twice' is an experiment with several runs" in told and newest in told
    assert "3 runs begin with" in shell("show", "twic", code=4).stderr


def test_show_has_the_cause_first(shell: Shell) -> None:
    run = shell.submit("fail.py")
    shell("logs", "-f", run, code=1)
    text = shell("show", run).stdout
    assert text.index("ValueError: no luck") < text.index("exit code 1") < text.index("experiment")
    (row,) = [line for line in shell("runs").stdout.splitlines() if line.startswith(run)]
    assert row.endswith("ValueError: no luck")
    data = shell.data("show", run)
    assert data["error"]["exit_code"] == 1
    assert data["job"]["script"] == "fail.py"
    assert Path(data["folder"]).is_dir() or data["folder"].endswith(f"/runs/{run}")


def test_a_run_by_a_part_of_its_id(shell: Shell, worked: str) -> None:
    assert shell.data("show", worked[:-3])["id"] == worked
    newest = shell.data("runs", "-n", "2")
    assert shell.data("show", "last")["id"] == shell.data("show", "@1")["id"] == newest[0]["id"]
    assert shell.data("show", "@2")["id"] == newest[1]["id"]
    assert "begin with" in shell("show", "my-project_", code=4).stderr


def test_logs(shell: Shell, worked: str) -> None:
    assert shell("logs", worked).stdout == "größe ✓\n"
    assert shell.data("logs", worked) == {"run": worked, "status": "Completed", "rank": 0, "text": "größe ✓\n"}
    assert "rank 3" in shell("logs", worked, "--rank", "3", code=2).stderr
    assert shell("logs", worked, PYTHONIOENCODING="ascii").stdout == "gr??e ?\n"


def test_metrics(shell: Shell, worked: str) -> None:
    loss, strange = shell.data("metrics", worked, "--points", "50")
    assert (loss["name"], loss["count"], loss["max"]) == ("loss", 500, 1.0)
    assert len(loss["values"]) == len(loss["index"]) == len(loss["times"]) == len(loss["steps"]) <= 50
    assert (loss["index"][0], loss["index"][-1]) == (0, 499)
    assert strange["last"] == "NaN"
    text = shell("metrics", worked).stdout
    assert "█" in text
    assert shell("metrics", worked, "loss", "--points", "5").stdout.count("\n") <= 9
    assert "It has: loss, strange" in shell("metrics", worked, "accuracy", code=2).stderr


def test_files_and_download(shell: Shell, worked: str, tmp_path: Path) -> None:
    assert {"name": "outputs/model.txt", "bytes": 7} in shell.data("files", worked)
    done = shell.data("download", worked, "outputs", "-o", str(tmp_path))
    assert done["files"] == [f"{tmp_path}/outputs/model.txt"]
    assert (tmp_path / "outputs" / "model.txt").read_text() == "weights"
    shell("download", worked, "nothing/", code=2)
    (tmp_path / "file").write_text("")
    assert "file" in shell("download", worked, "-o", str(tmp_path / "file"), code=2).stderr


# Ending and leaving


def test_ctrl_c_ends_the_looking_and_not_the_run(shell: Shell) -> None:
    with shell.start("submit", "my project", "wait.py", "--user-managed", "--wait") as waiting:
        assert waiting.stdout is not None
        assert waiting.stdout.readline() == "waiting\n"
        waiting.send_signal(signal.SIGINT)
        _, told = waiting.communicate(timeout=120)
    assert waiting.returncode == 130
    assert "continues" in told
    run = shell.data("runs", "-n", "1")[0]
    assert run["id"] in told
    # Its script may be quicker to print than its agent to say that it runs.
    until(lambda: shell.data("show", run["id"])["status"] == "Running", what="that it runs")
    shell("cancel", run["id"], "--wait")


def test_a_reader_that_has_enough_is_no_error(shell: Shell, worked: str) -> None:
    command = " ".join(f"'{word}'" for word in [*COMMAND, "metrics", worked, "loss", "--points", "500"])
    done = subprocess.run(
        ["/bin/sh", "-c", f"{command} | head -n 1"],
        cwd=shell.folder, env=shell.variables, capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert done.stdout.startswith("METRIC")
    assert done.stderr == ""


def test_colours_are_for_a_terminal(shell: Shell, worked: str) -> None:
    assert "\x1b[" in on_terminal(shell, "runs")
    assert "\x1b[" not in on_terminal(shell, "runs", NO_COLOR="1")
    assert "\x1b[" not in on_terminal(shell, "runs", TERM="dumb")


def on_terminal(shell: Shell, *argv: str, **variables: str) -> str:
    """What a command prints on a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *argv],
        cwd=shell.folder,
        env={**shell.variables, **variables},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    parts: list[bytes] = []
    reader = threading.Thread(target=_drain, args=(ours, parts))
    reader.start()
    assert process.wait(timeout=120) == 0
    reader.join(timeout=120)
    os.close(ours)
    return b"".join(parts).decode()


def _drain(handle: int, parts: list[bytes]) -> None:
    while select.select([handle], [], [], 60)[0]:
        try:
            block = os.read(handle, 65536)
        except OSError:
            return
        if not block:
            return
        parts.append(block)


# Managing


def test_targets(shell: Shell) -> None:
    made = shell.data("compute", "create", "box", "--nodes", "3", "--cpus", "1", "--gpus", "0")
    assert (made["nodes"], made["cpus_per_node"], made["idle"]) == (3, 1, 3)
    assert [target["name"] for target in shell.data("compute", "list")] == ["local", "box"]
    assert "box" in shell("compute", "list").stdout
    shell("submit", "my project", "hello.py", "--user-managed", "-t", "box", "--wait")
    assert shell.data("compute", "delete", "box") == {"deleted": "box"}
    assert "the setting is kept" in shell("compute", "create", "box", "--gpus", "99").stderr
    shell("compute", "delete", "box")
    shell("compute", "create", "1", code=2)
    shell("compute", "create", "box", "--nodes", "0", code=2)


def test_a_warning_is_told_once(shell: Shell) -> None:
    shell("compute", "create", "odd", "--vm-size", "NO_SUCH_SIZE")
    told = shell("submit", "my project", "hello.py", "--user-managed", "-t", "odd", "--wait").stderr
    assert told.count("not in the table of sizes") == 1
    assert "not in the table of sizes" in shell("logs", "-f", "last").stderr
    shell("compute", "delete", "odd")


def test_up_status_and_down(alone: Shell) -> None:
    assert alone.data("status")["alive"] is False
    assert not alone.home.exists()
    assert alone.data("down")["stopped"] is False
    up = alone.data("up")
    assert (up["started"], up["alive"], up["active_runs"]) == (True, True, [])
    assert alone.data("up")["started"] is False
    run = alone.submit("wait.py")
    until_running(alone, run)
    down = alone.data("down")
    assert (down["stopped"], down["active_runs"]) == (True, [run])
    assert alone.data("status")["alive"] is False
    # The run goes on, and the next dispatcher knows it.
    until(lambda: alone.data("show", run)["status"] == "Running", what="that it runs")
    assert alone.data("cancel", run, "--wait")[0]["status"] == "Canceled"


def until_running(shell: Shell, run: str) -> None:
    """Returns when the script of a run has printed its first line."""
    with shell.start("logs", "-f", run) as following:
        assert following.stdout is not None
        assert following.stdout.readline() == "waiting\n"
        following.send_signal(signal.SIGINT)
        following.communicate(timeout=120)


def test_workspaces(alone: Shell, tmp_path: Path) -> None:
    assert alone.data("workspace")["exists"] is False
    made = alone.data("workspace", "create", "mine", "--path", str(tmp_path / "place"), "--use")
    try:
        assert made == {"name": "mine", "path": str(tmp_path / "place"), "exists": True}
        assert alone.data("workspace") == made
        assert alone.data("workspace", "--workspace", str(tmp_path / "place")) == made
        assert "already" in alone("workspace", "create", "mine", "--path", str(tmp_path / "place"), code=2).stderr
        assert alone.data("workspace", "list") == []
        assert alone.data("runs") == []
    finally:
        end_workspace(tmp_path / "place")


def test_what_is_made_on_first_use_is_not_said_among_the_data(alone: Shell) -> None:
    assert alone.data("runs") == []
    assert alone("runs").stdout == ""


@pytest.mark.local_only("on a server it examines both machines, under other names")
def test_doctor(shell: Shell) -> None:
    found = shell.data("doctor")
    assert found["ok"] is True
    assert {"Trainmaster", "uv", "workspace", "disk", "packages"} <= {each["name"] for each in found["findings"]}
    assert "Trainmaster" in shell("doctor").stdout


def test_without_a_place_for_its_config_no_workspace_is_made(alone: Shell, tmp_path: Path) -> None:
    (alone.folder / ".azureml").write_text("in the way")
    told = alone("workspace", "create", "mine", "--path", str(tmp_path / "place"), "--use", code=2)
    assert "--use cannot write" in told.stderr
    assert not (tmp_path / "place").exists()


def test_a_workspace_that_cannot_be_used_is_5(alone: Shell) -> None:
    alone("up")
    alone("down")
    (alone.home / "workspaces" / "default" / "trainmaster.db").write_bytes(b"no database" * 1000)
    assert alone("runs", code=5).stderr.startswith("error: ")


def test_a_fault_of_ours_is_70(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from trainmaster.cli import entry

    def break_down(argv: list[str]) -> int:
        raise RuntimeError("a bug")

    monkeypatch.setattr(entry, "_dispatch", break_down)
    assert entry.run(["runs"]) == 70
    assert "report" in capsys.readouterr().err


@pytest.mark.parametrize("argv", [["--help"], [], ["help"], ["--version"]])
def test_help_and_version(shell: Shell, argv: list[str]) -> None:
    assert shell(*argv).stdout.lower().startswith("trainmaster")


@pytest.mark.parametrize(("stream", "code"), [(">&-", 0), ("2>&-", 0), (">/dev/full", 2)])
def test_streams_that_take_nothing(shell: Shell, worked: str, stream: str, code: int) -> None:
    command = " ".join([*COMMAND, "runs"])
    done = subprocess.run(
        ["/bin/sh", "-c", f"{command} {stream}"],
        cwd=shell.folder, env=shell.variables, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_a_script_by_its_path_alone(shell: Shell) -> None:
    done = shell("submit", str(shell.project / "work.py"), "--user-managed", "--wait", "--json")
    run = json.loads(done.stdout)
    assert (run["status"], run["experiment"]) == ("Completed", "my-project")


def test_a_folder_without_a_script(shell: Shell) -> None:
    assert "SCRIPT is missing" in shell("submit", str(shell.project), code=2).stderr
