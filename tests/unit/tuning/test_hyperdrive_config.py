"""HyperDriveConfig: v1's signature, defaults, checks, and compiling."""

import inspect
import json

import pytest
from sweeps import MAXIMIZE, MINIMIZE

from trainmaster.job.errors import (
    HyperDriveConfigException,
    HyperDriveScenarioNotSupportedException,
    TrainingException,
)
from trainmaster.sdk.estimators.distributed_job import PyTorchConfiguration
from trainmaster.sdk.estimators.estimator import Estimator
from trainmaster.sdk.estimators.script_run_config import ScriptRunConfig
from trainmaster.sdk.sweeps.config import HyperDriveConfig, HyperDriveRunConfig
from trainmaster.tuning.arguments import trial_arguments
from trainmaster.tuning.parameter_expressions import choice, uniform
from trainmaster.tuning.policies import BanditPolicy
from trainmaster.tuning.sampling import BayesianParameterSampling, GridParameterSampling, RandomParameterSampling
from trainmaster.tuning.spec import PolicySpec, dump_sweep, load_sweep

RANDOM = RandomParameterSampling({"--lr": uniform(0, 1), "batch": choice(16, 32)}, {"seed": 3})


class SomeRun:
    def __init__(self, run_id):
        self.id = run_id


@pytest.fixture
def project(tmp_path):
    (tmp_path / "train.py").write_text("print('hello')\n")
    return tmp_path


@pytest.fixture
def config(project):
    """Makes a config that would run, but for what a test changes."""

    def made(**changes):
        settings = {
            "hyperparameter_sampling": RANDOM,
            "primary_metric_name": "accuracy",
            "primary_metric_goal": MAXIMIZE,
            "max_total_runs": 10,
            **changes,
        }
        if not {"estimator", "run_config", "pipeline"} & set(changes):
            settings["run_config"] = ScriptRunConfig(project, "train.py")
        return HyperDriveConfig(**settings)

    return made


def test_signature_is_that_of_v1():
    parameters = inspect.signature(HyperDriveConfig).parameters.values()
    ours = {each.name for each in parameters if each.kind == each.KEYWORD_ONLY}
    assert ours == {"max_failures_in_a_row"}
    assert [(each.name, each.default) for each in parameters if each.name not in ours] == [
        ("hyperparameter_sampling", inspect.Parameter.empty),
        ("primary_metric_name", inspect.Parameter.empty),
        ("primary_metric_goal", inspect.Parameter.empty),
        ("max_total_runs", inspect.Parameter.empty),
        ("max_concurrent_runs", None),
        ("max_duration_minutes", 10080),
        ("policy", None),
        ("estimator", None),
        ("run_config", None),
        ("resume_from", None),
        ("resume_child_runs", None),
        ("pipeline", None),
        ("debug_flag", None),
        ("custom_run_id", None),
    ]


def test_defaults(config):
    spec = config().compile({})
    assert load_sweep(dump_sweep(spec)) == spec
    assert (spec.metric, spec.goal, spec.max_total_runs) == ("accuracy", MAXIMIZE, 10)
    assert (spec.max_concurrent_runs, spec.max_duration_minutes, spec.policy) == (10, 10080, PolicySpec())
    assert (spec.sampling.kind, spec.sampling.seed, list(spec.space)) == ("random", 3, ["--lr", "batch"])
    assert (spec.job.target, spec.job.script) == ("local", "train.py")


def test_everything_given(config):
    spec = config(
        primary_metric_goal=MINIMIZE,
        max_concurrent_runs=4,
        max_duration_minutes=30,
        policy=BanditPolicy(slack_factor=0.1),
        resume_from=[SomeRun("a"), "b"],
        resume_child_runs=SomeRun("a_0"),
        custom_run_id="mine",
        max_failures_in_a_row=2,
    ).compile({})
    assert (spec.goal, spec.max_concurrent_runs, spec.max_duration_minutes) == (MINIMIZE, 4, 30)
    assert spec.policy == PolicySpec("bandit", slack_factor=0.1)
    assert (spec.resume_from, spec.resume_child_runs) == (("a", "b"), ("a_0",))
    assert (spec.custom_run_id, spec.max_failures_in_a_row) == ("mine", 2)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"run_config": None}, "one of estimator, run_config and pipeline, not none"),
        ({"run_config": "train.py"}, "run_config must be a ScriptRunConfig, not str"),
        ({"run_config": PyTorchConfiguration()}, "run_config must be a ScriptRunConfig"),
        ({"estimator": "train.py"}, "estimator must be an estimator, not str"),
        ({"hyperparameter_sampling": None}, "hyperparameter_sampling must be a sampling"),
        ({"hyperparameter_sampling": {"--lr": uniform(0, 1)}}, "hyperparameter_sampling must be a sampling"),
        ({"primary_metric_name": ""}, "primary_metric_name"),
        ({"primary_metric_name": None}, "primary_metric_name"),
        ({"primary_metric_goal": "MAXIMIZE"}, "PrimaryMetricGoal.MAXIMIZE"),
        ({"primary_metric_goal": None}, "PrimaryMetricGoal.MAXIMIZE"),
        ({"max_total_runs": 0}, "max_total_runs must be at least 1"),
        ({"max_total_runs": "10"}, "max_total_runs must be a whole number"),
        ({"max_total_runs": None}, "max_total_runs must be a whole number"),
        ({"max_concurrent_runs": 0}, "max_concurrent_runs must be at least 1"),
        ({"max_concurrent_runs": 1.5}, "max_concurrent_runs must be a whole number"),
        ({"max_duration_minutes": 0}, "max_duration_minutes must be at least 1"),
        ({"max_duration_minutes": None}, "max_duration_minutes must be a whole number"),
        ({"policy": "bandit"}, "policy must be an early termination policy"),
        ({"resume_from": list("abcdef")}, "resume_from may have at most 5 runs, not 6"),
        ({"resume_from": ["a", SomeRun("a")]}, "resume_from has the run a twice"),
        ({"resume_from": []}, "resume_from must be a list of runs"),
        ({"resume_from": [3]}, "resume_from must be a list of runs"),
        ({"resume_child_runs": [str(n) for n in range(11)]}, "resume_child_runs may have at most 10 runs, not 11"),
        ({"custom_run_id": ""}, "custom_run_id"),
        ({"max_failures_in_a_row": 0}, "max_failures_in_a_row must be at least 1"),
    ],
)
def test_refused(config, changes, message):
    with pytest.raises(HyperDriveConfigException, match=message):
        config(**changes)


def test_one_program_only(config, project):
    both = {"estimator": Estimator(project, compute_target="local"), "run_config": ScriptRunConfig(project, "train.py")}
    with pytest.raises(HyperDriveConfigException, match="not 2"):
        config(**both)
    with pytest.raises(HyperDriveConfigException, match="Give it as run_config"):
        config(estimator=both["run_config"])


def test_pipelines_are_not_here(config):
    with pytest.raises(HyperDriveScenarioNotSupportedException, match="has no pipelines"):
        config(pipeline=object())


def test_a_duration_is_capped(config):
    with pytest.warns(UserWarning, match="max_duration_minutes=10081"):
        spec = config(max_duration_minutes=10081).compile({})
    assert spec.max_duration_minutes == 10080


def test_no_more_at_once_than_in_all(config):
    assert config(max_concurrent_runs=50).compile({}).max_concurrent_runs == 10


def test_more_than_the_service_allowed(config):
    assert config(max_total_runs=5000, max_concurrent_runs=200).compile({}).max_total_runs == 5000


def test_advice_for_bayesian(config):
    sampling = BayesianParameterSampling({"--lr": uniform(0, 1), "--b": choice(1, 2)})
    with pytest.warns(UserWarning, match="of 2 parameters needs 40 or more"):
        config(hyperparameter_sampling=sampling, max_total_runs=39, max_concurrent_runs=20)
    with pytest.warns(UserWarning, match="max_concurrent_runs=21"):
        config(hyperparameter_sampling=sampling, max_total_runs=40, max_concurrent_runs=21)
    config(hyperparameter_sampling=sampling, max_total_runs=40, max_concurrent_runs=20)


def test_what_it_holds(config, project):
    of_script = config()
    assert isinstance(of_script.run_config, ScriptRunConfig)
    assert (of_script.estimator, of_script.pipeline) == (None, None)
    estimator = Estimator(project, entry_script="train.py", compute_target="local")
    of_estimator = config(estimator=estimator)
    assert of_estimator.estimator is estimator
    assert of_estimator.run_config is None
    assert of_estimator.source_directory == of_script.source_directory == str(project)


def test_edits_count_until_submit(config, project):
    run_config = ScriptRunConfig(project, "train.py")
    made = config(run_config=run_config)
    run_config.run_config.target = "elsewhere"
    assert made.compile({}).job.target == "elsewhere"


def test_the_scripts_own_errors_are_its_own(config, project):
    made = config(estimator=Estimator(project, entry_script="absent.py", compute_target="local"))
    with pytest.raises(TrainingException, match=r"absent\.py"):
        made.compile({})


def test_sampled_arguments_replace_those_of_an_estimator(config, project):
    params = {"--data": "x", "--lr": [0.1, 0.2], "-batch": 3, "--epochs": 5}
    made = config(
        estimator=Estimator(project, entry_script="train.py", compute_target="local", script_params=params),
    )
    with pytest.warns(UserWarning, match="--lr, -batch of the script's arguments: ignored"):
        spec = made.compile({})
    assert spec.job.arguments == ("--data", "x", "--epochs", "5")
    words = trial_arguments(spec, {"--lr": 0.5, "batch": 16})
    assert words == ("--data", "x", "--epochs", "5", "--lr", "0.5", "--batch", "16")


def test_sampled_arguments_replace_those_of_a_script(config, project):
    arguments = ["--lr", 0.1, "data.csv", "--gamma", 2]
    branches = GridParameterSampling({"o": choice({"--gamma": 1}, {"--lr": choice(1, 2)})})
    made = config(
        run_config=ScriptRunConfig(project, "train.py", arguments=arguments), hyperparameter_sampling=branches
    )
    with pytest.warns(UserWarning, match="--lr, --gamma"):
        assert made.compile({}).job.arguments == ("data.csv",)


def test_the_name_of_2018(project):
    estimator = Estimator(project, entry_script="train.py", compute_target="local")
    with pytest.warns(DeprecationWarning, match="HyperDriveRunConfig is deprecated"):
        made = HyperDriveRunConfig(estimator, RANDOM, "loss", MINIMIZE, 8, 2, 60, BanditPolicy(slack_amount=1))
    assert isinstance(made, HyperDriveConfig)
    spec = made.compile({})
    assert (spec.metric, spec.goal, spec.max_total_runs, spec.max_concurrent_runs) == ("loss", MINIMIZE, 8, 2)
    assert (spec.max_duration_minutes, spec.policy.kind) == (60, "bandit")
    assert json.loads(dump_sweep(spec))["goal"] == "MINIMIZE"
