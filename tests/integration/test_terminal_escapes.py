"""A script that wants to control the terminal of who looks at it."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys

import pytest
from tests.backends import opening_code
from tests.conftest import ended, run_folder

from trainmaster import Workspace
from trainmaster.sdk.run.run import Run

ATTACKS = (
    "\x1b]0;EVIL\x07",
    "\x1b]52;c;EVIL\x07",
    "\x1b]2;EVIL\x1b\\",
    "\x1b[2J",
    "\x1b[H",
    "\x1b[9A",
    "\x1bc",
    "\x9b2J",
    "\x1bPEVIL\x1b\\",
    "\x1b[?1049h",
    "\x07",
)
SCRIPT = f"""\
import json, os, sys
attack = {"".join(ATTACKS)!r}
# Past the checks of the SDK.
with open(os.path.join(os.environ["TRAINMASTER_RUN_FOLDER"], "journals", "0-666-attack.jsonl"), "w") as journal:
    for record in (
        {{"k": "metric", "n": "loss" + attack, "v": 1.0, "t": 1.0}},
        {{"k": "list", "n": "list" + attack, "v": [attack, 2], "t": 1.0}},
        {{"k": "tags", "v": {{"tag" + attack: "value" + attack}}}},
        {{"k": "set", "v": {{"display_name": "name" + attack}}}},
    ):
        journal.write(json.dumps(record) + "\\n")
for letter in attack:
    sys.stdout.write(letter)
    sys.stdout.flush()
print("\\x1b[31mred\\x1b[0m", attack, "shown")
raise ValueError("no luck " + attack)
"""
# Colours; and what our own tables and live views are drawn with is not part of these commands.
STYLE = re.compile("\x1b\\[[0-9;:]*m")


@pytest.fixture(scope="module")
def run(shared: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Run:
    from trainmaster import Estimator, Experiment

    source = tmp_path_factory.mktemp("source")
    (source / "train.py").write_text(SCRIPT)
    run = Experiment(shared, "escapes").submit(
        Estimator(str(source), entry_script="train.py", compute_target="local", user_managed=True)
    )
    assert ended(run)["status"] == "Failed"
    return run


def on_a_terminal(command: list[str]) -> str:
    """What a program writes where it takes its output for a terminal."""
    ours, theirs = pty.openpty()
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8"},
        )
    finally:
        os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 65536):
            shown += piece
    except OSError:
        # So a terminal tells that nobody writes to it any more.
        pass
    finally:
        os.close(ours)
    process.wait(timeout=120)
    return shown.decode()


def trainmaster(run: Run, *words: str) -> list[str]:
    return [sys.executable, "-m", "trainmaster.cli", *words, "--workspace", run.experiment.workspace.backend.location]


def program(text: str, run: Run) -> list[str]:
    """A program that uses a run."""
    return [sys.executable, "-c", text.format(workspace=opening_code(run.experiment.workspace), run=run.id)]


def is_harmless(shown: str) -> bool:
    rest = STYLE.sub("", shown)
    return all(letter in "\r\n\t" or letter.isprintable() for letter in rest)


@pytest.mark.parametrize(
    "words", [("logs", "{}"), ("logs", "-f", "{}"), ("show", "{}"), ("metrics", "{}"), ("runs",), ("runs", "-a")]
)
def test_commands_on_a_terminal_show_colours_alone(run: Run, words: tuple[str, ...]) -> None:
    shown = on_a_terminal(trainmaster(run, *(word.format(run.id) for word in words)))
    assert is_harmless(shown), repr(shown)
    assert "\x1b]" not in shown
    if words[0] == "logs":
        assert "\x1b[31mred\x1b[0m" in shown and "shown" in shown and "EVIL" not in shown


STREAM = """
import sys
from trainmaster import Workspace
run = {workspace}.get_run({run!r})
run.wait_for_completion(show_output=True)
"""


def test_the_stream_of_a_program_on_a_terminal_shows_colours_alone(run: Run) -> None:
    shown = on_a_terminal(program(STREAM, run))
    assert "\x1b[31mred\x1b[0m" in shown and "no luck" in shown
    assert is_harmless(shown), repr(shown)


def test_files_and_pipes_get_every_byte(run: Run) -> None:
    log = run_folder(run).logs / "70_driver_log.txt"
    assert "".join(ATTACKS) in log.read_text()
    for command in (trainmaster(run, "logs", run.id), program(STREAM, run)):
        piped = subprocess.run(command, capture_output=True, timeout=120, check=False).stdout
        assert log.read_bytes() in piped


def test_a_live_view_obeys_itself_alone(run: Run) -> None:
    """It is drawn over itself; what it shows of a run is not."""
    shown = on_a_terminal(program(LOOK, run))
    drawn = re.sub("\x1b\\[(?:\\d+A|K|J)", "", shown)
    assert is_harmless(drawn), repr(shown)


LOOK = """
import sys
from trainmaster import Workspace
from trainmaster.notebook.widgets import RunDetails

BACKENDS = ("local", "server")
RunDetails({workspace}.get_run({run!r})).show()
"""
