"""Learns digits with DeepSpeed (ZeRO, stage 2). It goes on from its last checkpoint, if there is one."""

import argparse
import os
import sys

import deepspeed
import torch
from digits import digits
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

from azureml.core import Run

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.005)
parser.add_argument("--epochs", type=int, default=6)
options = parser.parse_args()

deepspeed.init_distributed("gloo")
run = Run.get_context()
torch.manual_seed(0)


def save(epoch):
    """DeepSpeed writes the name of a checkpoint when it is whole: half a checkpoint is never used."""
    engine.save_checkpoint("outputs", tag=f"checkpoint-{epoch}", client_state={"epoch": epoch})


images, labels = map(torch.from_numpy, digits(3000))
data = TensorDataset(images, labels)
sampler = DistributedSampler(data, shuffle=True)
loader = DataLoader(data, batch_size=50, sampler=sampler)
network = torch.nn.Sequential(torch.nn.Linear(64, 96), torch.nn.ReLU(), torch.nn.Linear(96, 10))
engine, *_ = deepspeed.initialize(
    model=network,
    model_parameters=network.parameters(),
    config={
        "train_micro_batch_size_per_gpu": 50,
        "optimizer": {"type": "Adam", "params": {"lr": options.lr, "torch_adam": True}},
        "zero_optimization": {"stage": 2},
    },
)
first = 0
if os.path.exists("outputs/latest"):
    # Only the weights: the parts of the optimizer belong to the number of ranks that wrote them.
    first = engine.load_checkpoint("outputs", load_module_only=True)[1]["epoch"]
rank, size = engine.global_rank, engine.world_size
print(f"rank {rank} of {size}, on node {os.environ['NODE_RANK']}: starts after epoch {first}")

for epoch in range(first, options.epochs):
    sampler.set_epoch(epoch)
    total = torch.zeros(1)
    for batch, wanted in loader:
        loss = torch.nn.functional.cross_entropy(engine(batch), wanted)
        engine.backward(loss)
        engine.step()
        total += loss.detach()
    torch.distributed.all_reduce(total)
    mean = total.item() / len(loader) / size
    save(epoch + 1)
    print(f"epoch {epoch + 1}: loss {mean:.4f}")
    if rank == 0:
        run.log("loss", mean)

if rank == 0:
    unseen, truth = map(torch.from_numpy, digits(1000, seed=1))
    accuracy = (network(unseen).argmax(1) == truth).float().mean().item()
    run.log("accuracy", accuracy)
    torch.save(network.state_dict(), "outputs/network.pt")
    print(f"accuracy on unseen digits: {accuracy:.3f}")
torch.distributed.destroy_process_group()
# torch 2.13 sometimes aborts while Python ends its threads, under torchrun as well. The work is done.
sys.stdout.flush()
os._exit(0)
