"""The model of the last run as a service: registered, deployed without a scoring script, asked, taken down."""

import json
import urllib.request

from trainmaster import Experiment, Model, Workspace

ws = Workspace.from_config()
run = next(Experiment(ws, "iris").get_runs())
model = run.register_model("iris", "outputs/model.onnx", model_framework=Model.Framework.ONNX)
service = Model.deploy(ws, "iris", [model], overwrite=True)
service.wait_for_deployment(show_output=True)

body = json.dumps({"data": [[5.1, 3.5, 1.4, 0.2], [6.7, 3.0, 5.2, 2.3]]}).encode()
request = urllib.request.Request(service.scoring_uri, body, {"Content-Type": "application/json"})
with urllib.request.urlopen(request) as response:
    print("The two flowers are", next(iter(json.load(response).values())))
service.delete()
