"""Fits a line, and says with what."""

import argparse
import sys

import torch
import torchvision

from azureml.core import Run

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=20)
epochs = parser.parse_args().epochs

run = Run.get_context()
python = f"{sys.version_info[0]}.{sys.version_info[1]}"
run.tag("releases", f"Python {python}, torch {torch.__version__}, torchvision {torchvision.__version__}")
x = torch.linspace(-1, 1, 50).unsqueeze(1)
y = 3 * x + 1
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
for _ in range(epochs):
    loss = torch.nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    run.log("loss", loss.item())
print(f"weight {model.weight.item():.3f}, bias {model.bias.item():.3f}")
torch.save(model.state_dict(), "outputs/line.pt")
