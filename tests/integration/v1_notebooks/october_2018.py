# %% [markdown]
# # Distributed training with MPI
# In the manner of October 2018: BatchAI clusters, `distributed_backend`, the widget in `azureml.train`.

# %%
import azureml.core

print("SDK version:", azureml.core.VERSION)

# %%
from azureml.telemetry import set_diagnostics_collection

set_diagnostics_collection(send_diagnostics=True)

# %%
from azureml.core.workspace import Workspace

ws = Workspace.from_config()
print(
    "Workspace name: " + ws.name,
    "Azure region: " + ws.location,
    "Subscription id: " + ws.subscription_id,
    "Resource group: " + ws.resource_group,
    sep="\n",
)

# %%
from azureml.core.compute import BatchAiCompute, ComputeTarget
from azureml.core.compute_target import ComputeTargetException

cluster_name = "gpucluster"

try:
    compute_target = ComputeTarget(workspace=ws, name=cluster_name)
    print("Found existing compute target.")
except ComputeTargetException:
    print("Creating a new compute target...")
    compute_config = BatchAiCompute.provisioning_configuration(
        vm_size="STANDARD_D2_V2", autoscale_enabled=True, cluster_min_nodes=0, cluster_max_nodes=2
    )
    compute_target = ComputeTarget.create(ws, cluster_name, compute_config)
    compute_target.wait_for_completion(show_output=True)
    print(compute_target.status.serialize())

# %%
assert ws.compute_targets()[cluster_name].name == ws.compute_targets[cluster_name].name == cluster_name

# %%
import os
import shutil

project_folder = "./mpi-2018"
os.makedirs(project_folder, exist_ok=True)
shutil.copy("ranks_2018.py", project_folder)

# %%
from azureml.core import Experiment

experiment = Experiment(workspace_object=ws, name="mpi-2018")

# %%
from azureml.train.estimator import Estimator

estimator = Estimator(
    source_directory=project_folder,
    compute_target=compute_target,
    script_params={"--steps": 2, "--verbose": ""},
    entry_script="ranks_2018.py",
    node_count=2,
    process_count_per_node=1,
    distributed_backend="mpi",
)

# %%
run = experiment.submit(estimator)
print(run.get_details())

# %%
from azureml.train.widgets import RunDetails

RunDetails(run).show()

# %%
run.wait_for_completion(show_output=True)

# %%
assert run.get_status() == "Completed"
assert sorted(run.get_metrics()["rank"]) == [0, 0, 1, 1], run.get_metrics()
assert run.get_details()["runDefinition"]["Arguments"] == ["--steps", "2", "--verbose"]
assert "outputs/ranks.txt" in run.get_file_names()
print("DONE")
