import argparse
import os

from azureml.core import Run

parser = argparse.ArgumentParser()
parser.add_argument("--data", dest="data_folder")
args = parser.parse_args()

run = Run.get_context()
assert os.environ["OMPI_COMM_WORLD_SIZE"] == "2"
with open(os.path.join(args.data_folder, "one.txt")) as file:
    run.log("sum", sum(int(line) for line in file))
