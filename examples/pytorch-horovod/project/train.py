"""Learns digits with Horovod: every rank has its part of the data, and gradients are averaged before each step."""

import argparse

import horovod.torch as hvd
import torch
from digits import digits
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

import trainmaster.onnx
from azureml.core import Run

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.0025)
parser.add_argument("--epochs", type=int, default=6)
options = parser.parse_args()

hvd.init()
print(f"rank {hvd.rank()} of {hvd.size()}")
run = Run.get_context()
torch.manual_seed(hvd.rank())

images, labels = map(torch.from_numpy, digits(3000))
data = TensorDataset(images, labels)
sampler = DistributedSampler(data, num_replicas=hvd.size(), rank=hvd.rank())
loader = DataLoader(data, batch_size=50, sampler=sampler)
model = torch.nn.Sequential(torch.nn.Linear(64, 96), torch.nn.ReLU(), torch.nn.Linear(96, 10))
# Twice the ranks, twice the data in each step: the step may be twice as long.
optimizer = torch.optim.Adam(model.parameters(), lr=options.lr * hvd.size())
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
hvd.broadcast_optimizer_state(optimizer, root_rank=0)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())

for epoch in range(options.epochs):
    sampler.set_epoch(epoch)
    total = 0.0
    for batch, wanted in loader:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(batch), wanted)
        loss.backward()
        optimizer.step()
        total += loss.item()
    mean = hvd.allreduce(torch.tensor(total / len(loader)), name="loss").item()
    print(f"epoch {epoch + 1}: loss {mean:.4f}")
    if hvd.rank() == 0:
        run.log("loss", mean)

if hvd.rank() == 0:
    unseen, truth = map(torch.from_numpy, digits(1000, seed=1))
    accuracy = (model(unseen).argmax(1) == truth).float().mean().item()
    run.log("accuracy", accuracy)
    torch.save(model.state_dict(), "outputs/network.pt")
    # Kept only if it answers as the model does.
    print(trainmaster.onnx.export(model, unseen[:10], "outputs/model.onnx"))
    print(f"accuracy on unseen digits: {accuracy:.3f}")
hvd.shutdown()
