"""Learns digits with Hugging Face Accelerate. It goes on from its last checkpoint, if there is one."""

import argparse
import os
import sys

import torch
from accelerate import Accelerator
from digits import digits
from torch.utils.data import DataLoader, TensorDataset

from azureml.core import Run

CHECKPOINT = "outputs/checkpoint.pt"

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.005)
parser.add_argument("--epochs", type=int, default=6)
options = parser.parse_args()

accelerator = Accelerator()
run = Run.get_context()
torch.manual_seed(0)


def save(epoch):
    """Writes the whole state at once: half a checkpoint is never used."""
    if accelerator.is_main_process:
        weights = accelerator.unwrap_model(model).state_dict()
        torch.save({"epoch": epoch, "weights": weights, "optimizer": optimizer.state_dict()}, CHECKPOINT + ".part")
        os.replace(CHECKPOINT + ".part", CHECKPOINT)
    accelerator.wait_for_everyone()


images, labels = map(torch.from_numpy, digits(3000))
loader = DataLoader(TensorDataset(images, labels), batch_size=50, shuffle=True)
network = torch.nn.Sequential(torch.nn.Linear(64, 96), torch.nn.ReLU(), torch.nn.Linear(96, 10))
optimizer = torch.optim.Adam(network.parameters(), lr=options.lr)
first = 0
if os.path.exists(CHECKPOINT):
    found = torch.load(CHECKPOINT)
    first = found["epoch"]
    network.load_state_dict(found["weights"])
    optimizer.load_state_dict(found["optimizer"])
model, optimizer, loader = accelerator.prepare(network, optimizer, loader)
rank, size = accelerator.process_index, accelerator.num_processes
print(f"rank {rank} of {size}, on node {os.environ['NODE_RANK']}: starts after epoch {first}")

for epoch in range(first, options.epochs):
    total = torch.zeros(1)
    for batch, wanted in loader:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(batch), wanted)
        accelerator.backward(loss)
        optimizer.step()
        total += loss.detach()
    mean = accelerator.reduce(total, "mean").item() / len(loader)
    save(epoch + 1)
    print(f"epoch {epoch + 1}: loss {mean:.4f}")
    if accelerator.is_main_process:
        run.log("loss", mean)

if accelerator.is_main_process:
    unseen, truth = map(torch.from_numpy, digits(1000, seed=1))
    accuracy = (accelerator.unwrap_model(model)(unseen).argmax(1) == truth).float().mean().item()
    run.log("accuracy", accuracy)
    torch.save(accelerator.unwrap_model(model).state_dict(), "outputs/network.pt")
    print(f"accuracy on unseen digits: {accuracy:.3f}")
accelerator.end_training()
# torch 2.13 sometimes aborts while Python ends its threads, under torchrun as well. The work is done.
sys.stdout.flush()
os._exit(0)
