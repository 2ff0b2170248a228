"""Submit training from a build machine. Usage: python submit.py --wait"""

import argparse
import os

from azureml.core import Datastore, Experiment, Workspace
from azureml.core.authentication import ServicePrincipalAuthentication
from azureml.core.compute import AmlCompute, ComputeTarget
from azureml.core.compute_target import ComputeTargetException
from azureml.data.data_reference import DataReference
from azureml.train.estimator import Estimator

parser = argparse.ArgumentParser()
parser.add_argument("--cluster", default="buildcluster")
parser.add_argument("--wait", action="store_true")
args = parser.parse_args()

auth = ServicePrincipalAuthentication(
    tenant_id="72f988bf-0000-0000-0000-2d7cd011db47",
    service_principal_id=os.environ.get("SP_ID", "an-id"),
    service_principal_password=os.environ.get("SP_PASSWORD", "a-password"),
)
ws = Workspace.from_config(auth=auth)
ws.get_default_keyvault().set_secret(name="db-password", value="s3cret")

try:
    cluster = ComputeTarget(ws, args.cluster)
except ComputeTargetException as e:
    print("no cluster yet:", e.message)
    cluster = ComputeTarget.create(
        ws,
        args.cluster,
        AmlCompute.provisioning_configuration(
            vm_size="Standard_D3_v2", vm_priority="lowpriority", min_nodes=0, max_nodes=2
        ),
    )
    cluster.wait_for_completion(show_output=True)

os.makedirs("raw", exist_ok=True)
with open("raw/numbers.txt", "w") as f:
    f.write("\n".join(map(str, range(10))))
store = Datastore.get(ws, "workspaceblobstore")
store.upload("raw", target_path="raw", overwrite=True)

estimator = Estimator(
    source_directory="src",
    entry_script="train.py",
    compute_target=cluster,
    script_params={
        "--numbers": DataReference(
            store, data_reference_name="numbers", path_on_datastore="raw", mode="download", path_on_compute="tmp/data"
        ),
        "--model-dir": "outputs/model",
        "--quiet": "",
    },
    node_count=2,
    process_count_per_node=1,
    distributed_backend="mpi",
    pip_requirements_file="requirements.txt",
)
run = Experiment(ws, "build").submit(estimator, tags={"build": "77"})
print("submitted", run.id)
if args.wait:
    details = run.wait_for_completion(show_output=True)
    print(details["status"], run.get_metrics())
    for name in run.get_file_names():
        print(name)
    model = run.register_model("sum", "outputs/model", tags={"build": "77"})
    target = model.download(target_dir="model", exist_ok=True)
    print("model in", target, os.listdir(target))
