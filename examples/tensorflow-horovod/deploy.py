"""The model of the last run as a service: registered, deployed without a scoring script, asked, taken down."""

import json
import urllib.request

from trainmaster import Experiment, Model, Workspace

PICTURE = """
........
...###..
.....#..
....#...
....#...
....#...
........
........
"""

ws = Workspace.from_config()
run = next(Experiment(ws, "digits-tensorflow-horovod").get_runs())
model = run.register_model("digits-tensorflow-horovod", "outputs/model.onnx", model_framework=Model.Framework.ONNX)
service = Model.deploy(ws, "digits-tf-horovod", [model], overwrite=True)
service.wait_for_deployment(show_output=True)

pixels = [float(sign == "#") for sign in PICTURE if sign in ".#"]
body = json.dumps({"data": [pixels]}).encode()
request = urllib.request.Request(service.scoring_uri, body, {"Content-Type": "application/json"})
with urllib.request.urlopen(request) as response:
    (scores,) = next(iter(json.load(response).values()))
print("The picture shows a", scores.index(max(scores)))
service.delete()
