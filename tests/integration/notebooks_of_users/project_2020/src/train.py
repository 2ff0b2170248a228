import argparse
import json
import os

from mpi4py import MPI

from azureml.core import Run

parser = argparse.ArgumentParser()
parser.add_argument("--numbers")
parser.add_argument("--model-dir")
parser.add_argument("--quiet", action="store_true")
args = parser.parse_args()

comm = MPI.COMM_WORLD
with open(os.path.join(args.numbers, "numbers.txt")) as f:
    numbers = [int(line) for line in f][comm.rank :: comm.size]
total = comm.allreduce(sum(numbers))

run = Run.get_context()
print("rank", comm.rank, "of", comm.size, "sum", total, "secret", len(run.get_secret("db-password")))
run.log("rank", comm.rank)
if comm.rank == 0:
    run.log("total", total)
    os.makedirs(args.model_dir, exist_ok=True)
    with open(os.path.join(args.model_dir, "sum.json"), "w") as f:
        json.dump({"total": total}, f)
