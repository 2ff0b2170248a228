# %% [markdown]
# # Two nodes, data on a datastore, parameter servers
# In the manner of May 2019: AmlCompute, `MpiConfiguration`, `TensorflowConfiguration`, run configurations.

# %%
import os

import azureml.core
from azureml.core import Datastore, Experiment, Run, ScriptRunConfig, Workspace
from azureml.core.compute import AmlCompute, ComputeTarget
from azureml.core.compute_target import ComputeTargetException
from azureml.core.conda_dependencies import CondaDependencies
from azureml.core.runconfig import (
    DEFAULT_CPU_IMAGE,
    DataReferenceConfiguration,
    MpiConfiguration,
    RunConfiguration,
    TensorflowConfiguration,
)
from azureml.train.dnn import PyTorch, TensorFlow
from azureml.train.estimator import Estimator
from azureml.train.hyperdrive import *
from azureml.widgets import RunDetails

print("This notebook was created with 1.0.39; here is", azureml.core.VERSION)

# %%
ws = Workspace.from_config()
print(ws.name, ws.resource_group, ws.location, ws.subscription_id, sep="\t")
experiment = Experiment(ws, name="may-2019")

# %%
cluster_name = "cpu-cluster"
try:
    compute_target = ComputeTarget(workspace=ws, name=cluster_name)
    print("Found existing cluster, use it.")
except ComputeTargetException:
    compute_config = AmlCompute.provisioning_configuration(
        vm_size="STANDARD_D2_V2", vm_priority="lowpriority", max_nodes=2, idle_seconds_before_scaledown="300"
    )
    compute_target = ComputeTarget.create(ws, cluster_name, compute_config)

compute_target.wait_for_completion(show_output=True, min_node_count=None, timeout_in_minutes=20)
print(compute_target.get_status().serialize())
assert ws.get_default_compute_target("CPU").name == cluster_name

# %%
os.makedirs("numbers", exist_ok=True)
with open("numbers/one.txt", "w") as file:
    file.write("1\n2\n3\n")
ds = ws.get_default_datastore()
print(ds.datastore_type, ds.account_name, ds.container_name)
ds.upload(src_dir="numbers", target_path="numbers", overwrite=True, show_progress=True)
ds_data = ds.path("numbers").as_mount()
ds_data

# %%
estimator = Estimator(
    source_directory=".",
    compute_target=compute_target,
    entry_script="ranks_2019.py",
    script_params={"--data": ds_data},
    node_count=2,
    distributed_training=MpiConfiguration(),
)
run = experiment.submit(estimator, tags={"era": "2019"})
RunDetails(run).show()
run.wait_for_completion(show_output=False)

# %%
assert sorted(run.get_metrics()["sum"]) == [6, 6]
assert [each.id for each in experiment.get_runs(tags="era")] == [run.id]

# %%
distributed_training = TensorflowConfiguration()
distributed_training.worker_count = 2
distributed_training.parameter_server_count = 1
estimator = Estimator(
    source_directory=".",
    compute_target=compute_target,
    entry_script="roles_2019.py",
    node_count=2,
    distributed_training=distributed_training,
    user_managed=True,
)
run = experiment.submit(estimator)
run.wait_for_completion(show_output=False)
assert run.get_details()["status"] == "Completed"
assert sorted(run.get_metrics()["worker"]) == [0, 1]

# %%
run_config = RunConfiguration(framework="python")
run_config.target = compute_target.name
run_config.auto_prepare_environment = True
run_config.environment.docker.enabled = True
run_config.environment.docker.base_image = DEFAULT_CPU_IMAGE
run_config.environment.python.user_managed_dependencies = False
run_config.environment.python.conda_dependencies = CondaDependencies.create(pip_packages=["six"])
run_config.data_references = {ds.name: DataReferenceConfiguration(ds.name, "download", "numbers", "here")}
run_config.save(name="mine")
src = ScriptRunConfig(
    source_directory=".",
    script="plain_2019.py",
    arguments=["--data", "$AZUREML_DATAREFERENCE_" + ds.name],
    run_config=RunConfiguration.load(path=".", name="mine"),
)
run = experiment.submit(config=src)
run.wait_for_completion(show_output=True)

# %%
metrics = run.get_metrics()
assert metrics["lines"] == 3, metrics
run.download_file(name="outputs/kept.txt", output_file_path="kept.txt")
assert open("kept.txt").read() == "3"
model = run.register_model(model_name="numbers", model_path="outputs/kept.txt")
print(model.name, model.id, model.version, sep="\t")
assert open(ws.models["numbers"].download("model")).read() == "3"
print("DONE")
