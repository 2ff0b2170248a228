import argparse
import os

import six
from azureml.core import Run
from azureml.core.model import Model

parser = argparse.ArgumentParser()
parser.add_argument("--data")
args = parser.parse_args()
run = Run.get_context()
with open(os.path.join(args.data, "one.txt")) as file:
    lines = len(file.readlines())
run.log("lines", lines)
os.makedirs("outputs", exist_ok=True)
with open("outputs/kept.txt", "w") as file:
    file.write(six.text_type(lines))
