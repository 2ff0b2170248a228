"""Learns digits with DistributedDataParallel over Gloo, as a script for torchrun does."""

import argparse
import os
import sys

import torch
import torch.distributed as dist
from digits import digits
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

from azureml.core import Run

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.005)
parser.add_argument("--epochs", type=int, default=6)
options = parser.parse_args()

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
print(f"rank {rank} of {size}, on node {os.environ['NODE_RANK']}")
run = Run.get_context()
torch.manual_seed(0)

images, labels = map(torch.from_numpy, digits(3000))
data = TensorDataset(images, labels)
sampler = DistributedSampler(data, shuffle=True)
loader = DataLoader(data, batch_size=50, sampler=sampler)
network = torch.nn.Sequential(torch.nn.Linear(64, 96), torch.nn.ReLU(), torch.nn.Linear(96, 10))
model = DistributedDataParallel(network)
optimizer = torch.optim.Adam(model.parameters(), lr=options.lr)

for epoch in range(options.epochs):
    sampler.set_epoch(epoch)
    total = torch.zeros(1)
    for batch, wanted in loader:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(batch), wanted)
        loss.backward()
        optimizer.step()
        total += loss.detach()
    own = total.item() / len(loader)
    dist.all_reduce(total)
    mean = total.item() / len(loader) / size
    print(f"epoch {epoch + 1}: loss {own:.4f} on my part, {mean:.4f} on all")
    # Every rank may log: each point knows which rank it is of.
    run.log("loss on my part", own)
    if rank == 0:
        run.log("loss", mean)

if rank == 0:
    unseen, truth = map(torch.from_numpy, digits(1000, seed=1))
    accuracy = (network(unseen).argmax(1) == truth).float().mean().item()
    run.log("accuracy", accuracy)
    torch.save(network.state_dict(), "outputs/network.pt")
    print(f"accuracy on unseen digits: {accuracy:.3f}")
dist.destroy_process_group()
# torch 2.13 sometimes aborts while Python takes its threads down, under torchrun as well; the work is done.
sys.stdout.flush()
os._exit(0)
