import json
import os

from azureml.core.run import Run

config = json.loads(os.environ["TF_CONFIG"])
assert len(config["cluster"]["ps"]) == 1 and len(config["cluster"]["worker"]) == 2, config
task = config["task"]
if task["type"] == "ps":
    import time

    time.sleep(600)
Run.get_context().log("worker", task["index"])
