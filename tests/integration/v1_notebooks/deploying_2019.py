# %% [markdown]
# # From a run to a web service
# In the manner of the tutorials of 2019: register the model of a run, deploy it to ACI from the model and an image,
# try it locally first, then ask it over plain HTTP.

# %%
import json
import os
import urllib.request

import azureml.core
from azureml.core import Environment, Experiment, Image, Model, ScriptRunConfig, Webservice, Workspace
from azureml.core.conda_dependencies import CondaDependencies
from azureml.core.image import ContainerImage
from azureml.core.model import InferenceConfig
from azureml.core.runconfig import RunConfiguration
from azureml.core.webservice import AciWebservice, AksWebservice, LocalWebservice
from azureml.exceptions import WebserviceException

print("SDK version:", azureml.core.VERSION)
ws = Workspace.from_config()

# %%
run_config = RunConfiguration()
run_config.environment.python.user_managed_dependencies = True
run = Experiment(ws, "deploying").submit(ScriptRunConfig(".", "trains_2019.py", run_config=run_config))
run.wait_for_completion(show_output=True)
print(run.get_file_names())

# %%
model = run.register_model(model_name="line", model_path="outputs/line.json", tags={"area": "lines"})
print(model.name, model.id, model.version, sep="\t")

# %%
with open("score.py", "w") as file:
    file.write("""
import json
from azureml.core.model import Model

def init():
    global slope
    model_path = Model.get_model_path("line")
    slope = json.load(open(model_path))["slope"]

def run(raw_data):
    try:
        data = json.loads(raw_data)["data"]
        return [slope * each for each in data]
    except Exception as e:
        return json.dumps({"error": str(e)})
""")

# %%
myenv = CondaDependencies()
myenv.add_pip_package("iniconfig")
with open("myenv.yml", "w") as f:
    f.write(myenv.serialize_to_string())
with open("myenv.yml") as f:
    print(f.read())

# %%
aciconfig = AciWebservice.deploy_configuration(
    cpu_cores=1, memory_gb=1, tags={"data": "lines", "method": "none"}, description="Predict a line"
)
image_config = ContainerImage.image_configuration(execution_script="score.py", runtime="python", conda_file="myenv.yml")
service = Webservice.deploy_from_model(
    workspace=ws, name="line-svc", deployment_config=aciconfig, models=[model], image_config=image_config
)
service.wait_for_deployment(show_output=True)
print(service.state)
assert service.state == "Healthy"

# %%
print(service.scoring_uri, service.swagger_uri)
test_samples = bytes(json.dumps({"data": [1, 2, 3]}), encoding="utf8")
result = service.run(input_data=test_samples)
assert result == [4, 8, 12]

# %%
request = urllib.request.Request(service.scoring_uri, test_samples, {"Content-Type": "application/json"})
with urllib.request.urlopen(request) as answer:
    assert json.load(answer) == [4, 8, 12]
with urllib.request.urlopen(service.swagger_uri) as answer:
    print(json.load(answer)["info"])

# %% [markdown]
# ## The image way

# %%
image = ContainerImage.create(name="line-image", models=[model], image_config=image_config, workspace=ws)
image.wait_for_creation(show_output=True)
print(image.image_location, image.image_build_log_uri)
for i in Image.list(workspace=ws, tags=[]):
    print(f"{i.name}(v.{i.version} [{i.creation_state}]) stored at {i.image_location}")
image_service = Webservice.deploy_from_image(deployment_config=aciconfig, image=image, name="line-svc-2", workspace=ws)
image_service.wait_for_deployment(True)
assert image_service.run(test_samples) == [4, 8, 12]
assert sorted(ws.webservices) == ["line-svc", "line-svc-2"] and "line-image" in ws.images

# %% [markdown]
# ## A newer model, at the same address

# %%
with open("line.json", "w") as file:
    json.dump({"slope": 10}, file)
newer = Model.register(model_path="line.json", model_name="line", workspace=ws)
address = service.scoring_uri
inference_config = InferenceConfig(runtime="python", entry_script="score.py", conda_file="myenv.yml")
service.update(models=[newer], inference_config=inference_config)
service.wait_for_deployment(show_output=True)
assert service.run(test_samples) == [10, 20, 30] and service.scoring_uri == address

# %% [markdown]
# ## Locally, in an environment

# %%
environment = Environment.from_conda_specification("line-env", "myenv.yml")
inference_config = InferenceConfig(entry_script="score.py", environment=environment)
local_service = Model.deploy(
    ws, "line-local", [model], inference_config, LocalWebservice.deploy_configuration(), overwrite=True
)
local_service.wait_for_deployment()
print("Local service port:", local_service.port)
assert local_service.run(input_data=test_samples) == [4, 8, 12]
with open("score.py", "a") as file:
    file.write("\nprint('read again')\n")
local_service.reload(wait=True)
assert "read again" in local_service.get_logs()

# %% [markdown]
# ## With keys

# %%
aks_service = Model.deploy(
    ws, "line-aks", [model], inference_config, AksWebservice.deploy_configuration(num_replicas=1)
)
aks_service.wait_for_deployment(show_output=True)
key1, key2 = aks_service.get_keys()
headers = {"Content-Type": "application/json", "Authorization": "Bearer " + key1}
with urllib.request.urlopen(urllib.request.Request(aks_service.scoring_uri, test_samples, headers)) as answer:
    assert json.load(answer) == [4, 8, 12]

# %%
try:
    model.delete()
except WebserviceException as e:
    print(e.message)

# %%
for each in ws.webservices.values():
    each.delete()
assert sorted(ws.images) == ["line-image", "line-svc"]
for each in ws.images.values():
    each.delete()
newer.delete()
model.delete()
assert not ws.webservices and not ws.images
print("DONE")
