"""Changes of a job that is run again."""

from __future__ import annotations

import pytest

from trainmaster.job.errors import UserErrorException
from trainmaster.shared.job_changes import change_job, set_argument
from trainmaster.shared.job_spec import Distribution, JobSpec

SPEC = JobSpec("/code", "local", script="train.py", arguments=("data", "--lr", "0.1", "--layers", "64", "32", "-v"))


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("lr", "1e-3", ["data", "--lr", "1e-3", "--layers", "64", "32", "-v"]),
        ("layers", "8 8 8", ["data", "--lr", "0.1", "--layers", "8", "8", "8", "-v"]),
        ("v", "false", ["data", "--lr", "0.1", "--layers", "64", "32"]),
        ("v", "true", list(SPEC.arguments)),
        ("--batch-size", "8", [*SPEC.arguments, "--batch-size", "8"]),
        ("lr", "-1", ["data", "--lr", "-1", "--layers", "64", "32", "-v"]),
    ],
)
def test_an_argument_is_replaced_where_it_stands(name: str, text: str, words: list[str]) -> None:
    assert set_argument(SPEC.arguments, name, text) == words


def test_the_last_one_of_a_name_counts() -> None:
    assert set_argument(["--lr=1", "--lr=2"], "lr", "3") == ["--lr=1", "--lr=3"]


def test_settings_and_variables_are_changed_by_name() -> None:
    changed = change_job(SPEC, {"target": "gpu", "max_seconds": "60", "env.SEED": "1", "arg.target": "cat"})
    assert (changed.target, changed.max_run_duration_seconds) == ("gpu", 60)
    assert change_job(SPEC, {"priority": "-7"}).priority == -7
    assert changed.environment_variables == {"SEED": "1"} and changed.arguments[-2:] == ("--target", "cat")


def test_more_nodes_have_as_many_processes_each() -> None:
    spec = JobSpec("", "local", script="a.py", node_count=2, distribution=Distribution("torch", process_count=4))
    changed = change_job(spec, {"nodes": "3"})
    assert (changed.node_count, changed.distribution.process_count) == (3, 6)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"taget": "gpu"}, "Did you mean target"),
        ({"nodes": "0"}, "at least 1"),
        ({"nodes": "2"}, "one node"),
        ({"hang_seconds": "nan"}, "positive number"),
        ({"priority": "101"}, "whole number between -100 and 100"),
        ({"priority": "high"}, "whole number between -100 and 100"),
        ({"max_retries": "x"}, "whole number"),
    ],
)
def test_what_cannot_be_set_is_refused(settings: dict[str, str], said: str) -> None:
    with pytest.raises(UserErrorException, match=said):
        change_job(SPEC, settings)


def test_a_command_has_no_arguments_to_set() -> None:
    with pytest.raises(UserErrorException, match="has a command"):
        change_job(JobSpec("", "local", command=("ls",)), {"lr": "1"})
