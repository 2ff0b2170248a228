"""Learns digits with FSDP2: every rank holds a part of each layer. It goes on from its last checkpoint."""

import argparse
import os
import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from digits import digits
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_state_dict,
    set_state_dict,
)
from torch.distributed.fsdp import fully_shard
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

from azureml.core import Run

LATEST = "outputs/latest"

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.005)
parser.add_argument("--epochs", type=int, default=6)
options = parser.parse_args()


def save(epoch):
    """Writes a checkpoint with the parts of all ranks, and then its number: half a checkpoint is never used."""
    weights, state = get_state_dict(model, optimizer)
    dcp.save({"weights": weights, "optimizer": state}, checkpoint_id=f"outputs/checkpoint-{epoch}")
    if rank == 0:
        with open(LATEST + ".part", "w") as file:
            file.write(str(epoch))
        os.replace(LATEST + ".part", LATEST)


def load():
    """The number of epochs that were done. The checkpoint may come from another number of ranks."""
    if not os.path.exists(LATEST):
        return 0
    with open(LATEST) as file:
        done = int(file.read())
    weights, state = get_state_dict(model, optimizer)
    found = {"weights": weights, "optimizer": state}
    dcp.load(found, checkpoint_id=f"outputs/checkpoint-{done}")
    set_state_dict(model, optimizer, model_state_dict=found["weights"], optim_state_dict=found["optimizer"])
    return done


dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
run = Run.get_context()
torch.manual_seed(0)

images, labels = map(torch.from_numpy, digits(3000))
data = TensorDataset(images, labels)
sampler = DistributedSampler(data, shuffle=True)
loader = DataLoader(data, batch_size=50, sampler=sampler)
model = torch.nn.Sequential(torch.nn.Linear(64, 96), torch.nn.ReLU(), torch.nn.Linear(96, 10))
mesh = dist.device_mesh.init_device_mesh("cpu", (size,))
for layer in model:
    if isinstance(layer, torch.nn.Linear):
        fully_shard(layer, mesh=mesh)
fully_shard(model, mesh=mesh)
optimizer = torch.optim.Adam(model.parameters(), lr=options.lr)

first = load()
print(f"rank {rank} of {size}, on node {os.environ['NODE_RANK']}: starts after epoch {first}")
for epoch in range(first, options.epochs):
    sampler.set_epoch(epoch)
    total = torch.zeros(1)
    for batch, wanted in loader:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(batch), wanted)
        loss.backward()
        optimizer.step()
        total += loss.detach()
    dist.all_reduce(total)
    mean = total.item() / len(loader) / size
    save(epoch + 1)
    print(f"epoch {epoch + 1}: loss {mean:.4f}")
    if rank == 0:
        run.log("loss", mean)

whole = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
if rank == 0:
    network = torch.nn.Sequential(torch.nn.Linear(64, 96), torch.nn.ReLU(), torch.nn.Linear(96, 10))
    network.load_state_dict(whole)
    unseen, truth = map(torch.from_numpy, digits(1000, seed=1))
    accuracy = (network(unseen).argmax(1) == truth).float().mean().item()
    run.log("accuracy", accuracy)
    torch.save(whole, "outputs/network.pt")
    print(f"accuracy on unseen digits: {accuracy:.3f}")
dist.destroy_process_group()
# torch 2.13 sometimes aborts while Python ends its threads, under torchrun as well. The work is done.
sys.stdout.flush()
os._exit(0)
