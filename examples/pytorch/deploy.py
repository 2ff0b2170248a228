"""The network of the demo as a service: registered, converted to ONNX, deployed without a scoring script, asked."""

import json
import subprocess
import sys
import urllib.request

from trainmaster import Experiment, Model, Workspace

ws = Workspace.from_config()
run = next(Experiment(ws, "demo").get_runs())
network = run.register_model("spiral", "outputs/network.ts", model_framework=Model.Framework.PYTORCH)
# In a shell: trainmaster models to-onnx spiral --input input:float32:batch,2
convert = [sys.executable, "-m", "trainmaster.cli", "models", "to-onnx", "spiral", "--input", "input:float32:batch,2"]
subprocess.run(convert, check=True)

service = Model.deploy(ws, "spiral", [Model(ws, "spiral-onnx")], overwrite=True)
service.wait_for_deployment(show_output=True)
body = json.dumps({"data": [[-0.02, 0.87], [0.02, -0.87]]}).encode()
request = urllib.request.Request(service.scoring_uri, body, {"Content-Type": "application/json"})
with urllib.request.urlopen(request) as response:
    answers = next(iter(json.load(response).values()))
print("The two points lie on arms", [int(answer > 0) for (answer,) in answers])
service.delete()
