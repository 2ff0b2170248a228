"""Learns a spiral with a small network. Accuracy is logged after every epoch: that is what a policy compares."""

import argparse
import math

import torch

from trainmaster import Run

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.02)
parser.add_argument("--width", type=int, default=32)
parser.add_argument("--epochs", type=int, default=30)
options = parser.parse_args()

run = Run.get_context()
torch.manual_seed(0)
torch.set_num_threads(1)


def spirals(count):
    turn = torch.rand(count, 1).sqrt() * 2 * math.pi
    arm = torch.randint(0, 2, (count, 1))
    angle = turn * 1.5 + arm * math.pi
    points = torch.cat([turn * angle.cos(), turn * angle.sin()], 1) / 6 + torch.randn(count, 2) * 0.02
    return points, arm.float()


points, labels = spirals(2000)
network = torch.nn.Sequential(
    torch.nn.Linear(2, options.width),
    torch.nn.Tanh(),
    torch.nn.Linear(options.width, options.width),
    torch.nn.Tanh(),
    torch.nn.Linear(options.width, 1),
)
optimizer = torch.optim.Adam(network.parameters(), lr=options.lr)
for epoch in range(options.epochs):
    for part in torch.randperm(len(points)).split(50):
        loss = torch.nn.functional.binary_cross_entropy_with_logits(network(points[part]), labels[part])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        accuracy = ((network(points) > 0) == (labels > 0)).float().mean().item()
    run.log("accuracy", accuracy)
    print(f"epoch {epoch + 1:3d}  accuracy {accuracy:.3f}", flush=True)

torch.save(network.state_dict(), "outputs/network.pt")
