"""sweep.yaml: what it can say, and that every mistake is told with its line, its key and what to write instead."""

import pytest

from trainmaster.cli.sweep_file import EXAMPLE, read_sweep_file
from trainmaster.job.errors import UserErrorException
from trainmaster.tuning.goal import PrimaryMetricGoal
from trainmaster.tuning.spec import PolicySpec

GOOD = """\
job:
  script: train.py
  arguments: --epochs 10 --name 'a b'
  env: {A: 1, B: true}
  user_managed: true
space:
  --lr: loguniform(-7, -1)
  --batch: [16, 32]
metric: accuracy
goal: maximize
max_total_runs: 5
"""


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "my project"
    folder.mkdir()
    (folder / "train.py").write_text("")
    return folder


def written(project, text):
    path = project / "sweep.yaml"
    path.write_text(text)
    return path


def spec_of(project, text):
    return read_sweep_file(written(project, text)).config.compile({})


def error_of(project, text):
    with pytest.raises(UserErrorException) as caught:
        read_sweep_file(written(project, text))
    assert str(project) in caught.value.headline
    return caught.value


def test_a_small_file(project):
    found = read_sweep_file(written(project, GOOD + "tags: {phase: 2}\n"))
    spec = found.config.compile({})
    assert (found.experiment, found.tags) == ("my-project", {"phase": "2"})
    assert spec.job.script == "train.py"
    assert spec.job.arguments == ("--epochs", "10", "--name", "a b")
    assert dict(spec.job.environment_variables) == {"A": "1", "B": "true"}
    assert spec.job.source_directory == str(project)
    assert spec.space == {"--lr": ["loguniform", [-7, -1]], "--batch": ["choice", [[16, 32]]]}
    assert (spec.metric, spec.goal, spec.sampling.kind) == ("accuracy", PrimaryMetricGoal.MAXIMIZE, "random")
    assert (spec.max_total_runs, spec.max_concurrent_runs, spec.policy) == (5, 5, PolicySpec())


def test_everything(project):
    text = (
        GOOD.replace("maximize", "MINIMIZE")
        + """\
experiment: digits
sampling: {kind: random, seed: 7}
policy: {kind: bandit, slack_amount: 0.2, evaluation_interval: 2}
max_concurrent_runs: 2
max_duration_minutes: 60
max_failures_in_a_row: 3
resume_from: [old_1]
"""
    )
    found = read_sweep_file(written(project, text))
    spec = found.config.compile({})
    assert found.experiment == "digits"
    assert spec.goal == PrimaryMetricGoal.MINIMIZE
    assert (spec.sampling.seed, spec.resume_from) == (7, ("old_1",))
    assert spec.policy == PolicySpec("bandit", slack_amount=0.2, evaluation_interval=2)
    assert (spec.max_concurrent_runs, spec.max_duration_minutes, spec.max_failures_in_a_row) == (2, 60, 3)


@pytest.mark.parametrize(
    ("written_as", "expression"),
    [
        ("[1e-3, 1.5e-4]", ["choice", [[0.001, 0.00015]]]),
        ("choice(range(1, 4))", ["choice", [[1, 2, 3]]]),
        ("choice('a', \"b\")", ["choice", [["a", "b"]]]),
        ("uniform(min_value=0.1, max_value=0.9)", ["uniform", [0.1, 0.9]]),
        ("[[64, 32], [128]]", ["choice", [[[64, 32], [128]]]]),
        ("['uniform(1)', x]", ["choice", [["uniform(1)", "x"]]]),
        (
            "[{--opt: sgd, --momentum: 'uniform(0.5, 0.9)'}, {--opt: adam}]",
            ["choice", [[{"--opt": "sgd", "--momentum": ["uniform", [0.5, 0.9]]}, {"--opt": "adam"}]]],
        ),
    ],
)
def test_expressions(project, written_as, expression):
    assert spec_of(project, GOOD.replace("[16, 32]", written_as)).space["--batch"] == expression


@pytest.mark.parametrize(
    ("change", "line", "words"),
    [
        (("metric: accuracy\n", ""), 1, "metric is missing"),
        (("max_total_runs: 5", "max_total_run: 5"), 11, "max_total_run: unknown key"),
        (("max_total_runs: 5", "max_total_runs: 0"), 11, "max_total_runs: max_total_runs must be at least 1"),
        (("max_total_runs: 5", "max_total_runs: many"), 11, "max_total_runs must be a whole number, not 'many'"),
        (("goal: maximize", "goal: up"), 10, "goal: must be maximize or minimize, not 'up'"),
        (("metric: accuracy", "metric: 3"), 9, "metric: must be text, not 3"),
        (("metric: accuracy", "metric: ''"), 9, "metric: primary_metric_name must be one line of text"),
        (("script: train.py", "scrypt: train.py"), 2, "job.scrypt: unknown key"),
        (("  script: train.py\n", ""), 2, "job: script is missing"),
        (("script: train.py", "script: gone.py"), 2, "gone.py"),
        (("--name 'a b'", "--name 'a b"), 3, "job.arguments: \"--epochs 10 --name 'a b\" cannot be split"),
        (("user_managed: true", "max_seconds: 0"), 5, "job.max_seconds: max_seconds must be a positive number"),
        (("user_managed: true", "pip_file: gone.txt"), 5, "gone.txt"),
        (("user_managed: true", "user_managed: maybe"), 5, "job.user_managed: must be true or false, not 'maybe'"),
        (("loguniform(-7, -1)", "logunifrom(-7, -1)"), 7, "space.--lr: unknown expression 'logunifrom'"),
        (("loguniform(-7, -1)", "loguniform(-7)"), 7, "space.--lr: loguniform does not take these arguments"),
        (("loguniform(-7, -1)", "uniform(2, 1)"), 7, "min_value of uniform must be less than max_value"),
        (("loguniform(-7, -1)", "uniform(__import__('os'), 1)"), 7, "cannot be read"),
        (("loguniform(-7, -1)", "uniform(range(), 1)"), 7, "cannot be read"),
        (("loguniform(-7, -1)", "0.1"), 7, "space.--lr: must be a parameter expression, not 0.1"),
        (("[16, 32]", "[]"), 8, "choice has no values"),
        (("--batch: [16, 32]", "--lr: [16, 32]"), 8, "--lr is already set in line 7"),
        (("--batch: [16, 32]", "lr: [16, 32]"), 8, "the parameter 'lr' occurs twice"),
        (("goal: maximize", "goal: maximize\nsampling: grid"), 7, "GridParameterSampling allows only choice"),
        (("goal: maximize", "goal: maximize\nsampling: gird"), 11, "sampling: unknown kind 'gird'"),
        (("goal: maximize", "goal: maximize\nsampling: {seed: 3}"), 11, "sampling: kind is missing"),
        (("goal: maximize", "goal: maximize\nsampling: {kind: random, sead: 3}"), 11, "unknown key"),
        (("goal: maximize", "goal: maximize\npolicy: {kind: bandit}"), 11, "BanditPolicy needs either slack_factor"),
        (("goal: maximize", "goal: maximize\npolicy: {kind: bandit, slak: 1}"), 11, "slak: unknown key"),
        (("goal: maximize", "goal: maximize\npolicy: truncation"), 11, "truncation_percentage is missing"),
        (("goal: maximize", "goal: maximize\npolicy:\n  kind: bandit\n  slack_factor: -1"), 13, "must be 0 or more"),
        (("goal: maximize", "goal: maximize\n  x: 1"), 11, "this is not YAML"),
        (("metric: accuracy", "metric: !!python/object:os.system x"), 9, "metric: 'x' cannot be read"),
        (("env: {A: 1, B: true}", "env: &e {A: *e}"), 4, "contains itself"),
        (("env: {A: 1, B: true}", "env: [A]"), 4, "job.env: must be names and values, not ['A']"),
    ],
)  # fmt: skip
def test_mistakes_are_told_with_their_line(project, change, line, words):
    assert change[0] in GOOD
    error = error_of(project, GOOD.replace(*change))
    assert f"sweep.yaml, line {line}" in error.headline
    assert words in error.headline


@pytest.mark.parametrize(
    ("change", "guess"),
    [
        (("max_total_runs: 5", "max_total_runs: 5\nmax_concurent_runs: 2"), "Did you mean max_concurrent_runs?"),
        (("loguniform(-7, -1)", "logunifrom(-7, -1)"), "Did you mean loguniform?"),
        (("goal: maximize", "goal: maximize\nsampling: baysian"), "Did you mean bayesian?"),
        (("[16, 32]", "uniform(1, 2"), "The bracket is not closed"),
    ],
)
def test_what_was_meant_is_guessed(project, change, guess):
    assert guess in error_of(project, GOOD.replace(*change)).hint


@pytest.mark.parametrize("text", ["", "- 1", "just text", "\x00", "a: [1"])
def test_what_is_no_sweep(project, text):
    error_of(project, text)


def test_no_file_shows_one(project):
    with pytest.raises(UserErrorException, match="does not exist") as caught:
        read_sweep_file(project / "gone.yaml")
    assert EXAMPLE in caught.value.hint
    with pytest.raises(UserErrorException, match="is a folder"):
        read_sweep_file(project)


def test_bytes_that_are_no_text(project):
    (project / "sweep.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserErrorException, match="not text in UTF-8"):
        read_sweep_file(project / "sweep.yaml")


def test_the_example_is_a_sweep(project):
    spec = spec_of(project, EXAMPLE)
    assert (spec.policy.delay_evaluation, spec.max_concurrent_runs, spec.job.arguments) == (5, 4, ("--epochs", "10"))
