"""From sampled values to command lines."""

import pytest
from sweeps import sweep

from trainmaster.shared.job_spec import JobSpec
from trainmaster.tuning.arguments import remove_arguments, trial_arguments, trial_job


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"learning_rate": 0.1}, ("--learning_rate", "0.1")),
        ({"--learning-rate": 1e-05}, ("--learning-rate", "1e-05")),
        ({"-l": 3}, ("-l", "3")),
        ({"--flag": ""}, ("--flag",)),
        ({"--flag": None}, ("--flag",)),
        ({"--zero": 0, "--no": False}, ("--zero", "0", "--no", "False")),
        ({"--layers": [64, 32]}, ("--layers", "64", "32")),
        ({"--text": "two words; rm $HOME"}, ("--text", "two words; rm $HOME")),
        ({"optimizer": {"--name": "sgd", "inner": {"m": 0.5}}, "b": 1}, ("--name", "sgd", "--m", "0.5", "--b", "1")),
    ],
)
def test_words(parameters, words):
    spec = sweep(job=JobSpec("/project", "local", script="train.py", arguments=("--data", "x")))
    assert trial_arguments(spec, parameters) == ("--data", "x", *words)
    assert trial_job(spec, parameters).arguments == ("--data", "x", *words)
    assert trial_job(spec, parameters).script == "train.py"


def test_a_command_gets_them_too_safe_from_the_shell():
    spec = sweep(job=JobSpec("/project", "local", command=("python train.py",)))
    job = trial_job(spec, {"--lr": 0.1, "--text": "a; b"})
    assert (job.command, job.arguments) == (("python train.py", "--lr", "0.1", "--text", "'a; b'"), ())


@pytest.mark.parametrize(
    ("words", "values_each", "left", "removed"),
    [
        (["--lr", "0.1", "--b", "2"], None, ("--b", "2"), ["--lr"]),
        (["--b", "2", "-lr", "0.1"], None, ("--b", "2"), ["-lr"]),
        (["--lr", "0.1", "0.2", "--b", "2"], None, ("--b", "2"), ["--lr"]),
        (["--lr", "0.1", "data.csv", "--b", "2"], 1, ("data.csv", "--b", "2"), ["--lr"]),
        (["--lr", "-0.1", "--b", "2"], 1, ("--b", "2"), ["--lr"]),
        (["--lr", "--b", "2"], 1, ("--b", "2"), ["--lr"]),
        (["--lr=0.1", "data.csv"], 1, ("data.csv",), ["--lr"]),
        (["--tune", "lr", "--lrs", "3"], None, ("--tune", "lr", "--lrs", "3"), []),
        (["--", "-", "lr"], None, ("--", "-", "lr"), []),
        ([], None, (), []),
    ],
)
def test_what_is_sampled_is_left_out(words, values_each, left, removed):
    assert remove_arguments(words, {"--lr"}, values_each) == (left, removed)
