"""On the command line errors name its options, not the parameters of Python programs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from trainmaster.cli.commands import all_commands
from trainmaster.cli.entry import run
from trainmaster.cli.option_names import _OPTIONS, use_option_names
from trainmaster.cli.parsing import parse
from trainmaster.job.errors import UserErrorException, WebserviceException


@pytest.mark.parametrize(
    ("command", "text", "told"),
    [
        ("submit", "Write compute_target='local'.", "Write --target local."),
        ("submit", "entry_script 'a.py' is missing in source_directory", "SCRIPT 'a.py' is missing in FOLDER"),
        ("submit", "with user_managed=True and its interpreter_path", "with --user-managed and its --python"),
        ("submit", 'pip_packages=["a b"] or pip_requirements_file', "--pip a b or --pip-file"),
        ("models register", "model_framework_version, model_framework", "--framework-version, --framework"),
        ("models register", "such as model_framework='PyTorch'.", "such as --framework PyTorch."),
        ("models download", "Give exist_ok=True to write over it.", "Give --overwrite to write over it."),
        ("services deploy", "Give an InferenceConfig with a scoring script.", "Give --script score.py."),
        ("services deploy", "Use overwrite=True, or another name.", "Use --overwrite, or another name."),
        ("compute create", "name one with login=.", "name one with --login."),
        ("compute create", "a login node, such as login='me@there'.", "a login node, such as --login me@there."),
        ("compute create", "Such as hosts=['gpu1'].", "Such as HOST gpu1."),
        # What somebody gave, and what only looks like a parameter.
        ("submit", "there is no target 'compute_target'", "there is no target 'compute_target'"),
        ("submit", "/data/entry_script/x.py and my_entry_script", "/data/entry_script/x.py and my_entry_script"),
        ("runs", "compute_target='local'", "compute_target='local'"),
    ],
)  # fmt: skip
def test_parameters_become_options(command: str, text: str, told: str) -> None:
    error = use_option_names(WebserviceException(text, cause=text, hint=text), [*command.split(), "and", "more"])
    assert (error.headline, error.cause, error.hint) == (told, told, told)
    assert isinstance(error, WebserviceException) and error.to_wire()["hint"] == told


@pytest.mark.parametrize("command", _OPTIONS)
def test_every_option_is_one_of_the_command(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command in all_commands()
    with pytest.raises(SystemExit):
        parse([*command.split(), "--help"])
    page = capsys.readouterr().out
    for option in _OPTIONS[command].values():
        if "models register" not in option:
            assert all(word in page for word in re.findall(r"--[\w-]+", option) or [option]), option


def test_through_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "train.py").touch()
    assert run(["submit", str(tmp_path), "trian.py", "--dry-run"]) == 2
    told = capsys.readouterr().err
    assert "SCRIPT 'trian.py' does not exist in FOLDER" in told and "Did you mean 'train.py'?" in told
    assert run(["submit", str(tmp_path / "trian.py")]) == 2
    assert f"Did you mean {tmp_path}/train.py?" in capsys.readouterr().err
    assert run(["services", "deploy", "mine"]) == 2
    assert "Write -m NAME" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("--pip-packages", "--pip"),
        ("--exp", "--experiment"),
        ("--max_retries=2", "--max-retries"),
        ("--waot", "--wait"),
    ],
)
def test_an_option_with_another_name(given: str, meant: str) -> None:
    with pytest.raises(UserErrorException, match="unrecognized arguments") as caught:
        parse(["submit", ".", "train.py", given])
    assert f"Did you mean {meant}?" in caught.value.hint


@pytest.mark.parametrize("given", ["--lr", "--zzzz", "more"])
def test_no_option_is_like_this_one(given: str) -> None:
    with pytest.raises(UserErrorException) as caught:
        parse(["submit", ".", "train.py", given])
    assert "Did you mean" not in caught.value.hint


def test_the_package_is_a_program() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "trainmaster", "--version"], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.startswith("trainmaster ")
