# %% [markdown]
# # Environments, datasets, `Mpi()`
# In the manner of September 2020.

# %%
import os

import azureml.core
from azureml.core import Dataset, Environment, Experiment, ScriptRunConfig, Workspace
from azureml.core.compute import AmlCompute, ComputeTarget
from azureml.core.conda_dependencies import CondaDependencies
from azureml.core.runconfig import DockerConfiguration, MpiConfiguration, PyTorchConfiguration
from azureml.exceptions import ActivityFailedException, ComputeTargetException
from azureml.train.dnn import Mpi, ParameterServer
from azureml.train.estimator import Estimator
from azureml.widgets import RunDetails

print("Azure ML SDK version:", azureml.core.VERSION)

# %%
ws = Workspace.from_config()
ws.get_details()

# %%
cluster_name = "two-nodes"
if cluster_name in ws.compute_targets:
    compute_target = ws.compute_targets[cluster_name]
else:
    provisioning_config = AmlCompute.provisioning_configuration(vm_size="STANDARD_D2_V2", min_nodes=0, max_nodes=2)
    compute_target = ComputeTarget.create(ws, cluster_name, provisioning_config)
    compute_target.wait_for_completion(show_output=True)

# %%
experiment = Experiment(workspace=ws, name="september-2020")
estimator = Estimator(
    source_directory="./",
    compute_target=compute_target,
    entry_script="ranks_2020.py",
    node_count=2,
    distributed_training=Mpi(process_count_per_node=1),
)
run = experiment.submit(estimator)
run

# %%
run.wait_for_completion(show_output=True)
assert sorted(run.get_metrics()["rank"]) == [0, 1]

# %%
env = Environment("september")
env.docker.enabled = True
env.python.conda_dependencies = CondaDependencies.create(pip_packages=["six", "azureml-defaults"])
env.environment_variables = {"GREETING": "hello"}
env.register(workspace=ws)
env = Environment.get(workspace=ws, name="september")

# %%
os.makedirs("lines", exist_ok=True)
with open("lines/a.csv", "w") as file:
    file.write("x,y\n1,2\n3,4\n")
datastore = ws.get_default_datastore()
datastore.upload_files(files=["lines/a.csv"], relative_root="lines", target_path="lines", overwrite=True)
dataset = Dataset.File.from_files(path=[(datastore, "lines/a.csv")])
dataset = dataset.register(workspace=ws, name="lines", description="some lines", create_new_version=True)
dataset.to_path()

# %%
src = ScriptRunConfig(
    source_directory=".",
    script="plain_2020.py",
    arguments=["--data-folder", dataset.as_named_input("lines").as_mount(), "--rate", 0.5],
    compute_target=compute_target,
    environment=env,
)
run = experiment.submit(src)
RunDetails(run).show()
run.wait_for_completion(show_output=True)

# %%
details = run.get_details()
assert details["status"] == "Completed" and details["runDefinition"]["arguments"][2:] == ["--rate", "0.5"], details
assert run.get_metrics()["rows"] == 2
assert run.get_environment().name

# %%
bad = ScriptRunConfig(source_directory=".", script="fails_2020.py", compute_target="local")
bad.run_config.environment.python.user_managed_dependencies = True
failed = experiment.submit(bad)
try:
    failed.wait_for_completion()
    raise AssertionError("the run failed, and nobody was told")
except ActivityFailedException as error:
    assert "no such luck" in str(error)
assert failed.get_details()["error"]["error"]["message"]

# %%
compute_target.delete()
try:
    ComputeTarget(ws, cluster_name)
except ComputeTargetException as error:
    assert "ComputeTargetNotFound" in error.message
print("DONE")
