import argparse
import json
import os

from azureml.core.run import Run

parser = argparse.ArgumentParser()
parser.add_argument("--num_epochs", type=int, default=4)
parser.add_argument("--learning_rate", type=float, default=0.001)
parser.add_argument("--momentum", type=float, default=0.9)
args = parser.parse_args()

run = Run.get_context()
run.log("lr", args.learning_rate)
run.log("momentum", args.momentum)
for epoch in range(args.num_epochs):
    # The best learning rate is 0.002, and a larger momentum is better.
    best_val_acc = (1 - abs(args.learning_rate - 0.002) * 100 + args.momentum / 100) * (1 - 0.5 ** (epoch + 1))
    run.log("best_val_acc", best_val_acc)

os.makedirs("outputs", exist_ok=True)
with open("outputs/model.json", "w") as file:
    json.dump(vars(args), file)
