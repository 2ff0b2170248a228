"""Commands and their options."""

from __future__ import annotations

import shlex
from importlib import import_module

import pytest

from trainmaster.cli.commands import EXIT_CODES, all_commands
from trainmaster.cli.entry import run, wants_json
from trainmaster.cli.manual import manual
from trainmaster.cli.parsing import find_command, parse
from trainmaster.job.errors import UserErrorException


@pytest.mark.parametrize("name", all_commands())
def test_every_command_is_there_and_says_what_it_does(name: str) -> None:
    command = all_commands()[name]
    module = import_module(command.module if "." in command.module else f"trainmaster.cli.{command.module}")
    assert getattr(module, command.function).__doc__
    assert command.summary in manual()


@pytest.mark.parametrize("name", all_commands())
def test_every_command_has_help_and_json(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse([*name.split(), "--help"])
    assert ended.value.code == 0
    printed = capsys.readouterr().out
    assert "--json" in printed
    assert "--workspace" in printed
    assert printed.startswith(f"usage: trainmaster {name}")


@pytest.mark.parametrize("name", all_commands())
def test_the_help_of_every_command_has_examples_that_are_valid(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse([*name.split(), "--help"])
    lines = [line.strip() for line in capsys.readouterr().out.splitlines() if line.startswith("  trainmaster ")]
    assert any(line.startswith(f"trainmaster {name}") for line in lines)
    for line in lines:
        words = shlex.split(line, comments=True)
        # What follows is for the shell.
        end = next((at for at, word in enumerate(words) if word in ("<", ">", "|", "&&")), len(words))
        parse(words[1:end])


def test_the_help_of_submit_names_its_words(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["submit", "--help"])
    printed = capsys.readouterr().out
    assert "FOLDER" in printed
    assert "SCRIPT" in printed


@pytest.mark.parametrize(
    "argv",
    [
        ["submit", ".", "train.py", "--wait", "--", "--lr", "0.1", "--", "--json"],
        ["submit", "--wait", ".", "train.py", "--", "--lr", "0.1", "--", "--json"],
        ["submit", ".", "-w", "train.py", "--", "--lr", "0.1", "--", "--json"],
    ],
)
def test_options_stand_anywhere_and_the_script_gets_what_is_behind_the_dashes(argv: list[str]) -> None:
    _, options = parse(argv)
    assert (options.folder, options.script, options.wait) == (".", "train.py", True)
    assert options.arguments == ["--lr", "0.1", "--", "--json"]
    assert not options.json
    assert not wants_json(argv)


def test_an_optional_word_may_stand_behind_an_option() -> None:
    _, options = parse(["metrics", "last", "--json", "loss"])
    assert (options.run, options.name, options.json) == ("last", "loss", True)
    _, options = parse(["cancel", "a", "--wait", "b"])
    assert options.run == ["a", "b"]


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["submt", "."], "Did you mean 'trainmaster submit'"),
        (["compute", "lst"], "compute list, compute show, compute create"),
        (["compute"], "needs one of"),
        (["--json", "runs"], "after the command"),
        (["submit", ".", "a.py", "--lr", "1"], "--lr"),
        (["runs", "-n", "many"], "many"),
        (["runs", "--", "x"], "x"),
        (["runs", "--stat", "failed"], "--stat"),
    ],
)
def test_a_wrong_word_is_named(argv: list[str], says: str) -> None:
    with pytest.raises(UserErrorException) as raised:
        parse(argv)
    assert says in raised.value.message


def test_two_words_win_over_one() -> None:
    assert find_command(["workspace", "create", "x"])[0].name == "workspace create"
    assert find_command(["workspace", "--json"])[0].name == "workspace"


def test_the_manual_has_every_exit_code() -> None:
    assert all(f"{code}" in manual() and meaning in manual() for code, meaning in EXIT_CODES)


def test_a_word_that_several_commands_begin_with_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["env", "--help"]) == 0
    assert "env prune" in capsys.readouterr().out


def test_help_of_a_command_in_either_order(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["help", "env"]) == 0
    assert "env prune" in capsys.readouterr().out
    with pytest.raises(SystemExit) as left:
        run(["help", "submit"])
    assert left.value.code == 0
    assert "--max-retries" in capsys.readouterr().out
