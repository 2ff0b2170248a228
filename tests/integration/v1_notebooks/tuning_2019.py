# %% [markdown]
# # Train, hyperparameter tune, and register with PyTorch
# In the manner of 2018 (`HyperDriveRunConfig`), 2019 (`HyperDriveConfig`) and 2020 (of a `ScriptRunConfig`).

# %%
import json

import azureml.core
from azureml.core import Environment, Experiment, ScriptRunConfig, Workspace
from azureml.train.dnn import PyTorch
from azureml.train.hyperdrive import *
from azureml.train.hyperdrive.parameter_expressions import choice, uniform
from azureml.train.hyperdrive.policy import BanditPolicy, MedianStoppingPolicy, TruncationSelectionPolicy
from azureml.train.hyperdrive.run import HyperDriveRun
from azureml.train.hyperdrive.runconfig import HyperDriveConfig, HyperDriveRunConfig
from azureml.train.hyperdrive.sampling import GridParameterSampling, RandomParameterSampling
from azureml.widgets import RunDetails

print("SDK version:", azureml.core.VERSION)

# %%
ws = Workspace.from_config()
experiment = Experiment(ws, name="tuning-2019")
script_params = {"--num_epochs": 4, "--output_dir": "./outputs"}
estimator = PyTorch(
    source_directory=".",
    script_params={"--num_epochs": 4},
    compute_target="local",
    entry_script="tunes_2019.py",
    use_gpu=False,
    user_managed=True,
)

# %% [markdown]
# ## As in 2019

# %%
param_sampling = RandomParameterSampling({"learning_rate": uniform(0.0005, 0.005), "momentum": choice(0.9, 0.95, 0.99)})
early_termination_policy = BanditPolicy(slack_factor=0.15, evaluation_interval=1, delay_evaluation=10)
hyperdrive_config = HyperDriveConfig(
    estimator=estimator,
    hyperparameter_sampling=param_sampling,
    policy=early_termination_policy,
    primary_metric_name="best_val_acc",
    primary_metric_goal=PrimaryMetricGoal.MAXIMIZE,
    max_total_runs=4,
    max_concurrent_runs=2,
)
hyperdrive_run = experiment.submit(hyperdrive_config)
RunDetails(hyperdrive_run).show()

# %%
hyperdrive_run.wait_for_completion(show_output=True)
assert hyperdrive_run.get_status() == "Completed"

# %%
best_run = hyperdrive_run.get_best_run_by_primary_metric()
best_run_metrics = best_run.get_metrics()
print(best_run)
print(
    "Best Run is:\n  Validation accuracy: {:.5f} \n  Learning rate: {:.5f} \n  Momentum: {:.5f}".format(
        best_run_metrics["best_val_acc"][-1], best_run_metrics["lr"], best_run_metrics["momentum"]
    )
)
parameter_values = best_run.get_details()["runDefinition"]["arguments"]
print(parameter_values)
assert parameter_values[:3] == ["--num_epochs", "4", "--learning_rate"]

# %%
children = list(hyperdrive_run.get_children())
assert len(children) == len(hyperdrive_run.get_metrics()) == 4
values = {each.id: each.get_metrics()["best_val_acc"][-1] for each in children}
assert best_run.id == max(values, key=values.get)
ordered = hyperdrive_run.get_children_sorted_by_primary_metric(top=2)
assert [each["run_id"] for each in ordered] == sorted(values, key=values.get, reverse=True)[:2]
assert set(json.loads(hyperdrive_run.get_hyperparameters()[best_run.id])) == {"learning_rate", "momentum"}

# %%
print(best_run.get_file_names())
model = best_run.register_model(model_name="tuned", model_path="outputs/model.json")
print(model.name, model.id, model.version, sep="\t")
assert json.load(open(ws.models["tuned"].download("model"))) == {
    "num_epochs": 4,
    "learning_rate": best_run_metrics["lr"],
    "momentum": best_run_metrics["momentum"],
}

# %% [markdown]
# ## As in 2018

# %%
hyperdrive_run_config = HyperDriveRunConfig(
    estimator=estimator,
    hyperparameter_sampling=GridParameterSampling({"--learning_rate": choice([0.001, 0.002]), "momentum": choice(0.9)}),
    policy=MedianStoppingPolicy(evaluation_interval=1, delay_evaluation=5),
    primary_metric_name="best_val_acc",
    primary_metric_goal=PrimaryMetricGoal.MAXIMIZE,
    max_total_runs=20,
    max_concurrent_runs=4,
)
run = experiment.submit(hyperdrive_run_config)
run.wait_for_completion()
assert len(list(run.get_children())) == 2
assert run.get_best_run_by_primary_metric().get_metrics()["lr"] == 0.002

# %% [markdown]
# ## As in 2020

# %%
environment = Environment("mine")
environment.python.user_managed_dependencies = True
src = ScriptRunConfig(
    source_directory=".",
    script="tunes_2019.py",
    arguments=["--num_epochs", 2],
    compute_target="local",
    environment=environment,
)
hd_config = HyperDriveConfig(
    run_config=src,
    hyperparameter_sampling=RandomParameterSampling({"--learning_rate": uniform(0.001, 0.003)}),
    policy=TruncationSelectionPolicy(truncation_percentage=20, evaluation_interval=2, delay_evaluation=4),
    primary_metric_name="best_val_acc",
    primary_metric_goal=PrimaryMetricGoal.MAXIMIZE,
    max_total_runs=2,
)
run = experiment.submit(config=hd_config)
run.wait_for_completion(show_output=False)
found = HyperDriveRun(experiment, run.id)
assert found.get_status() == "Completed" and found.hyperdrive_config.run_config is not None
assert len(found.get_metrics()) == 2

# %%
run = experiment.submit(hyperdrive_config)
run.cancel()
run.wait_for_completion(raise_on_error=False)
assert run.get_status() == "Canceled"
print("DONE")
