import argparse
import os

from azureml.core.run import Run

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=1)
parser.add_argument("--verbose", action="store_true")
args = parser.parse_args()

run = Run.get_submitted_run()
rank = int(os.environ["OMPI_COMM_WORLD_RANK"])
assert os.environ["OMPI_COMM_WORLD_SIZE"] == "2" and args.verbose
for _ in range(args.steps):
    run.log("rank", rank)
if rank == 0:
    with open("outputs/ranks.txt", "w") as file:
        file.write(os.environ["OMPI_COMM_WORLD_SIZE"])
