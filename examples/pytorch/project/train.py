"""Learns a spiral with a small network: loss and accuracy as metrics, the weights as a file."""

import argparse
import math

import torch

from trainmaster import Run

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.02)
parser.add_argument("--epochs", type=int, default=60)
options = parser.parse_args()

run = Run.get_context()
torch.manual_seed(0)


def spirals(count):
    turn = torch.rand(count, 1).sqrt() * 2 * math.pi
    arm = torch.randint(0, 2, (count, 1))
    angle = turn * 1.5 + arm * math.pi
    points = torch.cat([turn * angle.cos(), turn * angle.sin()], 1) / 6 + torch.randn(count, 2) * 0.02
    return points, arm.float()


points, labels = spirals(1000)
network = torch.nn.Sequential(
    torch.nn.Linear(2, 32), torch.nn.Tanh(), torch.nn.Linear(32, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1)
)
optimizer = torch.optim.Adam(network.parameters(), lr=options.lr)
for epoch in range(options.epochs):
    answers = network(points)
    loss = torch.nn.functional.binary_cross_entropy_with_logits(answers, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    accuracy = ((answers > 0) == (labels > 0)).float().mean()
    run.log("loss", loss.item())
    run.log("accuracy", accuracy.item())
    if epoch % 10 == 9:
        print(f"epoch {epoch + 1:3d}  loss {loss.item():.4f}  accuracy {accuracy.item():.3f}")

torch.save(network.state_dict(), "outputs/network.pt")
# With its structure, for whoever has no class to load the weights into.
torch.jit.script(network).save("outputs/network.ts")
run.tag("result", "trained")
