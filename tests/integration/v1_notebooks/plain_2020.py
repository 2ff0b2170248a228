import argparse
import glob
import os

import six
from azureml.core import Dataset, Run, Workspace

parser = argparse.ArgumentParser()
parser.add_argument("--data-folder", type=str, dest="data_folder")
parser.add_argument("--rate", type=float)
args = parser.parse_args()

run = Run.get_context()
assert os.environ["GREETING"] == "hello" and run.input_datasets["lines"] == args.data_folder
files = glob.glob(os.path.join(args.data_folder, "**", "*.csv"), recursive=True) or [args.data_folder]
with open(files[0]) as file:
    run.log("rows", len(file.readlines()) - 1)
again = Dataset.get_by_name(run.experiment.workspace, name="lines")
assert again.name == "lines"
